package containers

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
	// defaultMaxRunning is the default limit of running containers.
	defaultMaxRunning = 64
	// slotRecheck is the pause between checks for a free slot.
	slotRecheck = 200 * time.Millisecond
)

// startContainer starts a container when fewer than the limit are running. Several members that
// check at the same time may exceed the limit slightly.
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

// checkMounts checks the mounts again before the start, because a folder may have been replaced by
// a link meanwhile. A short time between this check and the start remains.
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
		if !slices.ContainsFunc(there.Container.Mounts,
			func(has container.MountPoint) bool {
				return has.Destination == m.Target &&
					has.Source == m.Source
			}) {
			return flow.Errorf(flow.Denied, "what is to be mounted at %s has been replaced since the container was made", m.Target)
		}
	}
	return nil
}

// reserveSlot waits for a free slot and reserves it. Callers check one after another.
func (s *Service) reserveSlot(ctx context.Context) error {
	select {
	case s.slotLock <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-s.slotLock }()
	for {
		// Read before the list: a container that starts in between is counted twice instead of
		// never.
		starting := int(s.starting.Load())
		running, err := s.client.ContainerList(ctx,
			client.ContainerListOptions{Filters: client.Filters{}.Add("label", labelStore+"="+s.opts.Store)})
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
