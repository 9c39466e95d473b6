package container

import (
	"context"
	"slices"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/tenure"
)

const (
	// defaultMaxRunning is how many containers run at once.
	defaultMaxRunning = 64
	// slotRecheck is how long it is until somebody looks again whether another one may.
	slotRecheck = 200 * time.Millisecond
)

// startContainer starts a container as soon as few enough others run. A member never starts too
// many; members that look at the same moment may have a few too many together.
func (s *Service) startContainer(ctx context.Context, p *containerPlan) error {
	if err := s.reserveSlot(ctx); err != nil {
		return err
	}
	defer s.starting.Add(-1)
	if err := s.checkMounts(ctx, p); err != nil {
		return err
	}
	if !tenure.Held(ctx) {
		return errLeaseLost
	}
	_, err := s.client.ContainerStart(ctx, p.Name, client.ContainerStartOptions{})
	return err
}

// checkMounts reports whether a container that is about to start still sees what it may: it can
// have waited long, and somebody can have put a link in the place of a folder meanwhile. Between
// this look and the start there is a moment that nobody can close from here.
func (s *Service) checkMounts(ctx context.Context, p *containerPlan) error {
	if len(p.HostConfig.Mounts) == 0 {
		return nil
	}
	mounts, err := p.mounts()
	if err != nil {
		return err
	}
	there, err := s.client.ContainerInspect(ctx, p.Name, client.ContainerInspectOptions{})
	if err != nil {
		return err
	}
	for _, m := range mounts {
		if !slices.ContainsFunc(there.Container.Mounts, func(has container.MountPoint) bool { return has.Destination == m.Target && has.Source == m.Source }) {
			return flow.Errorf(flow.Denied, "what is to be mounted at %s has been replaced since the container was made", m.Target)
		}
	}
	return nil
}

// reserveSlot returns when another container may be started, which counts from then on. One after
// the other looks.
func (s *Service) reserveSlot(ctx context.Context) error {
	select {
	case s.slotLock <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-s.slotLock }()
	for {
		// Counted before the look: a container that starts meanwhile is counted twice then, and not
		// left out.
		starting := int(s.starting.Load())
		running, err := s.client.ContainerList(ctx, client.ContainerListOptions{Filters: client.Filters{}.Add("label", labelStore+"="+s.opts.Store)})
		if err != nil {
			return err
		}
		if len(running.Items)+starting < s.opts.Most {
			s.starting.Add(1)
			return nil
		}
		select {
		case <-time.After(slotRecheck):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
