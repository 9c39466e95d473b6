package containers

import (
	"context"
	"errors"
	"time"

	"github.com/moby/moby/client"

	"github.com/troupe-engine/troupe/internal/logids"
)

// sweepEvery is the pause between searches for orphaned containers. sweepTimeout bounds the check
// of each container.
const (
	sweepEvery   = time.Minute
	sweepTimeout = 30 * time.Second
)

// triggerSweep requests a search for orphaned containers.
func (s *Service) triggerSweep() {
	select {
	case s.sweepSignal <- struct{}{}:
	default:
	}
}

// runSweeper periodically removes orphaned containers, which were started but are no longer needed.
func (s *Service) runSweeper() {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	reached := true
	for {
		err := s.sweepOnce()
		if s.ctx.Err() != nil {
			return
		}
		if err != nil && reached {
			s.opts.Logger.Warn("listing orphaned containers failed, retrying", "error", s.describeError(err))
		}
		reached = err == nil
		s.forgetUnasked()
		select {
		case <-tick.C:
		case <-s.sweepSignal:
		case <-s.ctx.Done():
			return
		}
	}
}

func (s *Service) sweepOnce() error {
	ctx, cancel := context.WithTimeout(s.ctx, sweepTimeout)
	defer cancel()
	all, err := s.client.ContainerList(ctx, client.ContainerListOptions{All: true,
		Filters: client.Filters{}.Add("label", labelStore+"="+s.opts.Store)})
	if err != nil {
		return err
	}
	var failed error
	for _, c := range all.Items { // an error does not prevent the removal of others
		failed = errors.Join(failed, s.sweepOne(c.ID, c.Labels[labelJob]))
	}
	return failed
}

// sweepOne removes a container that is no longer needed.
func (s *Service) sweepOne(id, job string) error {
	ctx, cancel := context.WithTimeout(s.ctx, sweepTimeout)
	defer cancel()
	if live, err := s.opts.Live(ctx, job); err != nil || live {
		return err
	}
	s.opts.Logger.InfoContext(logids.JobID(ctx, job), "removing an orphaned container",
		"container", s.containerName(job), "job", job)
	return s.removeContainer(ctx, id)
}
