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

// Carry begins the container of a job, or takes over the one that was begun for it before. Its
// report names what is waited for.
func (s *Service) Carry(ctx context.Context, job flow.Job) flow.Report {
	if s.client == nil {
		return flow.Report{Fatal: true, Error: notAllowedText}
	}
	p, err := s.planContainer(ctx, &job)
	if err == nil {
		s.rememberSecrets(p.Name, p.hide)
		err = s.runContainer(ctx, p, job.ID(), s.opts.Logs.Open(job.Task, job.ID()))
	}
	if ctx.Err() != nil {
		s.triggerSweep() // nobody may wait for it any longer
	}
	if err != nil {
		if p != nil {
			s.forgetContainer(p.Name)
		}
		return flow.Report{Error: err.Error(), Fatal: flow.ErrorKindOf(err) != "", Log: s.opts.Logs != nil}
	}
	return flow.Report{Worker: "container:" + p.Name, Log: s.opts.Logs != nil,
		Deferred: []flow.External{{Service: Name, ID: p.Name, Data: p.note.encodeData(), Pending: p.note.Files != nil}}}
}

// runContainer has the container run. What it does it may do again: a container that runs, or has
// ended, is left alone.
func (s *Service) runContainer(ctx context.Context, p *containerPlan, job string, to *logs.Writer) error {
	defer to.End()
	if p.pull == flow.PullAlways {
		if err := s.pullImage(ctx, p.Config.Image, to); err != nil {
			return err
		}
	}
	state, err := s.ensureCreated(ctx, p, job, to)
	if err != nil || state != container.StateCreated {
		return err
	}
	if err := s.writeFiles(ctx, p.Name, p.files); err != nil {
		s.removeUnstarted(ctx, p.Name)
		return s.describeError(err)
	}
	if err := s.startContainer(ctx, p); err != nil {
		s.removeUnstarted(ctx, p.Name)
		return fmt.Errorf("failed to start %s: %w", p.Config.Image, s.describeError(err))
	}
	return nil
}

// removeUnstarted removes a container that cannot be started, unless it may be another member's by
// now. What is left over is looked for.
func (s *Service) removeUnstarted(ctx context.Context, name string) {
	if ctx.Err() == nil && tenure.Held(ctx) {
		_ = s.removeContainer(ctx, name)
	}
}

// ensureCreated says how the container is: new, or there already. Container hosts tell in different
// words that a name is taken, so it is looked who has it.
func (s *Service) ensureCreated(ctx context.Context, p *containerPlan, job string, to *logs.Writer) (container.ContainerState, error) {
	created, err := s.createContainer(ctx, p)
	if cerrdefs.IsNotFound(err) && p.pull != flow.PullAlways {
		if p.pull == flow.PullNever {
			return "", fmt.Errorf("the image %s is not on the container host, and is not fetched (pull: never)", p.Config.Image)
		}
		if err = s.pullImage(ctx, p.Config.Image, to); err != nil {
			return "", err
		}
		created, err = s.createContainer(ctx, p)
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
		return "", fmt.Errorf("failed to make a container of %s: %w", p.Config.Image, s.describeError(err))
	case there.Container.Config == nil || there.Container.Config.Labels[labelJob] != job || there.Container.Config.Labels[labelStore] != s.opts.Store:
		return "", fmt.Errorf("the container host has a container %s that is not ours", p.Name)
	}
	return stateOf(&there.Container), nil
}

// createContainer makes a container, unless the attempt may be another member's by now: that one's
// container can have ended and been removed, so that its name is free.
func (s *Service) createContainer(ctx context.Context, p *containerPlan) (client.ContainerCreateResult, error) {
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

// pullImage fetches an image.
func (s *Service) pullImage(ctx context.Context, image string, to io.Writer) error {
	fmt.Fprintf(to, "fetching the image %s\n", image)
	as, err := registryLogins(s.opts.Logins).headerFor(image)
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
		return fmt.Errorf("the image %s cannot be fetched: %w", image, s.describeError(err))
	}
	return nil
}

// removeContainer removes a container, whatever it does.
func (s *Service) removeContainer(ctx context.Context, name string) error {
	_, err := s.client.ContainerRemove(ctx, name, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
	if cerrdefs.IsNotFound(err) {
		return nil
	}
	return err
}

// describeError say which container host cannot be reached.
func (s *Service) describeError(err error) error {
	if client.IsErrConnectionFailed(err) {
		return fmt.Errorf("the container host %s cannot be reached: %w", s.client.DaemonHost(), err)
	}
	return err
}
