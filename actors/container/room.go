package container

import (
	"context"
	"time"

	"github.com/moby/moby/client"
)

const (
	// defaultMost is how many containers run at once.
	defaultMost = 64
	// roomAgain is how long it is until somebody looks again whether another one may.
	roomAgain = 200 * time.Millisecond
)

// start starts a container as soon as few enough others run. A member never starts too many; members that look at the same moment may have a few
// too many together.
func (s *Service) start(ctx context.Context, name string) error {
	if err := s.takeRoom(ctx); err != nil {
		return err
	}
	defer s.starting.Add(-1)
	_, err := s.client.ContainerStart(ctx, name, client.ContainerStartOptions{})
	return err
}

// takeRoom returns when another container may be started, which counts from then on. One after the other looks.
func (s *Service) takeRoom(ctx context.Context) error {
	select {
	case s.looking <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-s.looking }()
	for {
		running, err := s.client.ContainerList(ctx, client.ContainerListOptions{Filters: client.Filters{}.Add("label", labelStore+"="+s.opts.Store)})
		if err != nil {
			return err
		}
		if len(running.Items)+int(s.starting.Load()) < s.opts.Most {
			s.starting.Add(1)
			return nil
		}
		select {
		case <-time.After(roomAgain):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
