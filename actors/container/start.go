package container

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/troupe-engine/troupe/actors/logs"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/tenure"
)

// errLeaseLost is told by a member that slept too long.
var errLeaseLost = errors.New("this member has lost its lease, and begins no container any more")

// Carry begins the container of a job, or takes over the one that was begun for it before. Its report names what is waited for.
func (s *Service) Carry(ctx context.Context, job flow.Job) flow.Report {
	if s.client == nil {
		return flow.Report{Fatal: true, Error: refusal}
	}
	p, err := s.plan(ctx, &job)
	if err == nil {
		s.hide(p.Name, p.hide)
		err = s.begin(ctx, p, job.ID(), s.opts.Logs.Open(job.Task, job.ID()))
	}
	if ctx.Err() != nil {
		s.lookSoon() // nobody may wait for it any longer
	}
	if err != nil {
		if p != nil {
			s.forget(p.Name)
		}
		return flow.Report{Error: err.Error(), Fatal: flow.ErrorKindOf(err) != "", Log: s.opts.Logs != nil}
	}
	return flow.Report{Worker: "container:" + p.Name, Log: s.opts.Logs != nil,
		Deferred: []flow.External{{Service: Name, ID: p.Name, Data: p.note.written(), Pending: p.note.Files != nil}}}
}

// begin has the container run. What it does it may do again: a container that runs, or has ended, is left alone.
func (s *Service) begin(ctx context.Context, p *plan, job string, to *logs.Writer) error {
	defer to.End()
	if p.pull == flow.PullAlways {
		if err := s.pull(ctx, p.Config.Image, to); err != nil {
			return err
		}
	}
	state, err := s.made(ctx, p, job, to)
	if err != nil || state != container.StateCreated {
		return err
	}
	if err := s.put(ctx, p.Name, p.files); err != nil {
		s.undo(ctx, p.Name)
		return s.words(err)
	}
	if err := s.start(ctx, p); err != nil {
		s.undo(ctx, p.Name)
		return fmt.Errorf("failed to start %s: %w", p.Config.Image, s.words(err))
	}
	return nil
}

// undo removes a container that cannot be started, unless it may be another member's by now. What is left over is looked for.
func (s *Service) undo(ctx context.Context, name string) {
	if ctx.Err() == nil && tenure.Held(ctx) {
		_ = s.remove(ctx, name)
	}
}

// made says how the container is: new, or there already. Container hosts tell in different words that a name is taken, so it is looked who has it.
func (s *Service) made(ctx context.Context, p *plan, job string, to *logs.Writer) (container.ContainerState, error) {
	created, err := s.create(ctx, p)
	if cerrdefs.IsNotFound(err) && p.pull != flow.PullAlways {
		if p.pull == flow.PullNever {
			return "", fmt.Errorf("the image %s is not on the container host, and is not fetched (pull: never)", p.Config.Image)
		}
		if err = s.pull(ctx, p.Config.Image, to); err != nil {
			return "", err
		}
		created, err = s.create(ctx, p)
	}
	for _, warning := range created.Warnings { // such as of limits that it cannot set
		fmt.Fprintln(to, "the container host warns:", warning)
	}
	if err == nil {
		return container.StateCreated, nil
	}
	if errors.Is(err, errLeaseLost) {
		return "", err
	}
	there, lookErr := s.client.ContainerInspect(ctx, p.Name, client.ContainerInspectOptions{})
	switch {
	case lookErr != nil:
		return "", fmt.Errorf("failed to make a container of %s: %w", p.Config.Image, s.words(err))
	case there.Container.Config == nil || there.Container.Config.Labels[labelJob] != job || there.Container.Config.Labels[labelStore] != s.opts.Store:
		return "", fmt.Errorf("the container host has a container %s that is not ours", p.Name)
	}
	return stateOf(&there.Container), nil
}

// create makes a container, unless the attempt may be another member's by now: that one's container can have ended and been removed, so that its
// name is free.
func (s *Service) create(ctx context.Context, p *plan) (client.ContainerCreateResult, error) {
	if !tenure.Held(ctx) {
		return client.ContainerCreateResult{}, errLeaseLost
	}
	return s.client.ContainerCreate(ctx, p.ContainerCreateOptions)
}

// stateOf is how a container is. Podman has a word of its own for one that is about to start.
func stateOf(c *container.InspectResponse) container.ContainerState {
	if c.State == nil {
		return ""
	}
	if c.State.Status == "initialized" || c.State.Status == "configured" {
		return container.StateCreated
	}
	return c.State.Status
}

// pull fetches an image.
func (s *Service) pull(ctx context.Context, image string, to io.Writer) error {
	fmt.Fprintf(to, "fetching the image %s\n", image)
	as, err := logins(s.opts.Logins).of(image)
	if err != nil {
		return err
	}
	fetched, err := s.client.ImagePull(ctx, image, client.ImagePullOptions{RegistryAuth: as})
	if err == nil {
		err = fetched.Wait(ctx)
	}
	switch {
	case err != nil && as != "" && strings.Contains(err.Error(), as):
		return fmt.Errorf("the image %s cannot be fetched with the login of its registry", image)
	case err != nil:
		return fmt.Errorf("the image %s cannot be fetched: %w", image, s.words(err))
	}
	return nil
}

// remove removes a container, whatever it does.
func (s *Service) remove(ctx context.Context, name string) error {
	_, err := s.client.ContainerRemove(ctx, name, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
	if cerrdefs.IsNotFound(err) {
		return nil
	}
	return err
}

// words say which container host cannot be reached.
func (s *Service) words(err error) error {
	if client.IsErrConnectionFailed(err) {
		return fmt.Errorf("the container host %s cannot be reached: %w", s.client.DaemonHost(), err)
	}
	return err
}
