package containers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/troupe-engine/troupe/carriers/logs"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/tenure"
)

// errLeaseLost is the error of a member without a valid lease.
var errLeaseLost = errors.New("this member has lost its lease, and begins no container any more")

// Carry starts the container of a job, or takes over the existing one. The report names the
// container as external work.
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
		s.triggerSweep() // the job may have been canceled
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

// runContainer creates and starts the container. It may be called repeatedly, and leaves a running
// or ended container unchanged.
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

// removeUnstarted removes a container that cannot be started, unless another member may own the
// job. The sweeper removes the remaining ones.
func (s *Service) removeUnstarted(ctx context.Context, name string) {
	if ctx.Err() == nil && tenure.Held(ctx) {
		_ = s.removeContainer(ctx, name)
	}
}

// ensureCreated creates the container or finds the existing one, and returns its state. It checks
// for an existing container after any error, because container hosts report name conflicts
// differently.
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
	for _, warning := range created.Warnings { // for example, limits that the host cannot set
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
	case there.Container.Config == nil || there.Container.Config.Labels[labelJob] != job ||
		there.Container.Config.Labels[labelStore] != s.opts.Store:
		return "", fmt.Errorf("the container host has a container %s that is not ours", p.Name)
	}
	return stateOf(&there.Container), nil
}

// createContainer creates a container if the member holds its lease. A free name is not enough,
// because the container of another member may have been removed already.
func (s *Service) createContainer(ctx context.Context, p *containerPlan) (client.ContainerCreateResult, error) {
	if !tenure.Held(ctx) {
		return client.ContainerCreateResult{}, errLeaseLost
	}
	return s.client.ContainerCreate(ctx, p.ContainerCreateOptions)
}

// stateOf returns the state of a container, with Podman's names converted to Docker's.
func stateOf(c *container.InspectResponse) container.ContainerState {
	if c.State == nil {
		return ""
	}
	if c.State.Status == "initialized" || c.State.Status == "configured" {
		return container.StateCreated
	}
	return c.State.Status
}

// pullImage pulls an image and writes progress to the log.
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

// removeContainer removes a container in any state.
func (s *Service) removeContainer(ctx context.Context, name string) error {
	_, err := s.client.ContainerRemove(ctx, name, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
	if cerrdefs.IsNotFound(err) {
		return nil
	}
	return err
}

// describeError adds the address of the container host to connection errors.
func (s *Service) describeError(err error) error {
	if client.IsErrConnectionFailed(err) {
		return fmt.Errorf("the container host %s cannot be reached: %w", s.client.DaemonHost(), err)
	}
	return err
}
