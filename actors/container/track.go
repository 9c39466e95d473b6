package container

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/program"
	"github.com/troupe-engine/troupe/job"
)

// Pauses between two looks at a container: the first, then each twice as long as the one before, up
// to the last.
const (
	firstLook = 100 * time.Millisecond
	lastLook  = 2 * time.Second
)

// unreachableLimit is how long a container host may be out of reach until its containers count as
// lost.
const unreachableLimit = 10 * time.Minute

// Poll looks at a container. One that has ended stays until its end is stored.
func (s *Service) Poll(ctx context.Context, x flow.External) (flow.ExternalStatus, error) {
	switch {
	case s.client == nil:
		return flow.ExternalStatus{Ended: true, Error: notAllowedText}, nil
	case s.isForeign(x):
		return flow.ExternalStatus{Ended: true, Error: fmt.Sprintf("the container %.100q was not begun for this attempt: only a node of type container begins one that is waited for", x.ID)}, nil
	}
	status, err := s.pollContainer(ctx, x)
	if err != nil && x.FailingAt > 0 && time.Since(time.UnixMilli(x.FailingAt)) > unreachableLimit {
		return flow.ExternalStatus{Ended: true, Error: "given up looking at the container: " + s.describeError(err).Error()}, nil
	}
	status.Again = min(lastLook, firstLook<<min(x.Polls, 10))
	return status, err
}

// isForeign says that external work is no container of its attempt. A program may say that it waits
// for whatever it likes, and is to reach no container by that: not another attempt's, nor one that
// is not ours.
func (s *Service) isForeign(x flow.External) bool { return x.ID != s.containerName(x.Job) }

func (s *Service) pollContainer(ctx context.Context, x flow.External) (status flow.ExternalStatus, err error) {
	there, err := s.client.ContainerInspect(ctx, x.ID, client.ContainerInspectOptions{})
	switch {
	case cerrdefs.IsNotFound(err):
		s.forgetContainer(x.ID)
		return flow.ExternalStatus{Ended: true, Error: "the container " + x.ID + " is gone: somebody has removed it, or this member has another container host than who began it"}, nil
	case err != nil:
		return status, err
	}
	n := &trackerNote{}
	n.decodeData(x)
	w, err := s.ensureWatch(x, n, hasEnded(&there.Container))
	if err != nil {
		return status, err
	}
	if n.Files != nil {
		return s.pollReported(ctx, x, n, w, hasEnded(&there.Container))
	}
	if !hasEnded(&there.Container) {
		select {
		case <-w.done: // the container host went away in between
			s.stopWatch(x.ID)
		default:
		}
		return status, nil
	}
	if !s.awaitComplete(ctx, w) {
		return status, nil
	}
	if w.err != nil {
		return status, fmt.Errorf("what it has printed cannot be read: %w", w.err)
	}
	status, err = s.resultOf(ctx, x.ID, n, w, there.Container.State)
	w.log.Close()
	return status, err
}

// hasEnded reports whether a container has ended.
func hasEnded(c *container.InspectResponse) bool {
	switch stateOf(c) {
	case container.StateExited, container.StateDead, "stopped":
		return true
	}
	return false
}

// resultOf is what a container has come to.
func (s *Service) resultOf(ctx context.Context, name string, n *trackerNote, w *containerWatch, state *container.State) (flow.ExternalStatus, error) {
	w.resultMu.Lock()
	defer w.resultMu.Unlock()
	if w.endStatus != nil {
		return *w.endStatus, nil
	}
	res, err := s.collectResult(ctx, name, n, w, state)
	if err != nil {
		return flow.ExternalStatus{}, err
	}
	metrics := job.NumbersJSON(program.HideMetrics(res.Metrics, w.hide))
	w.endStatus = &flow.ExternalStatus{Ended: true, Output: w.hide.JSON(res.Output), Error: w.hide.Text(res.Error), Details: w.hide.JSON(res.Details),
		Metrics: metrics}
	return *w.endStatus, nil
}

// collectResult is what a container has said, and how it has ended. It has an error where that
// could not be read.
func (s *Service) collectResult(ctx context.Context, name string, n *trackerNote, w *containerWatch, state *container.State) (program.Result, error) {
	how, sure := exitReason(state, n)
	switch {
	case sure:
		return program.Result{Error: how, Metrics: w.listener.Result(how).Metrics}, nil
	case how != "" || n.FromFile == "" || w.listener.Marked():
		return w.listener.Result(how), nil
	}
	output, err := s.readOutput(ctx, name, n.FromFile)
	if errors.Is(err, errBroken) || client.IsErrConnectionFailed(err) || ctx.Err() != nil {
		return program.Result{}, err
	}
	res := program.Result{Output: output, Metrics: w.listener.Result(how).Metrics}
	if err != nil {
		res.Error = err.Error()
	}
	return res, nil
}

// killedExitCode is the exit code of what SIGKILL has ended.
const killedExitCode = 128 + 9

// exitReason is what is said of a container that has ended badly; "" = well. When it is sure,
// nothing that the container has said matters. Not all container hosts can tell that memory was the
// reason: Podman cannot with cgroups of version 1.
func exitReason(state *container.State, n *trackerNote) (how string, sure bool) {
	limit := ""
	if n.Memory > 0 {
		limit = " (limit " + flow.MemoryText(n.Memory) + ")"
	}
	switch {
	case state.ExitCode == 0:
		return "", false
	case state.OOMKilled:
		return "out of memory" + limit, true
	case state.ExitCode == killedExitCode && limit != "":
		return "exit status 137: killed, as when it is out of memory" + limit, true
	}
	return "exit status " + strconv.Itoa(state.ExitCode), false
}

// Cancel ends a container that nobody waits for any longer, and removes it.
func (s *Service) Cancel(ctx context.Context, x flow.External) error {
	if s.client == nil || s.isForeign(x) {
		return nil
	}
	n := &trackerNote{}
	n.decodeData(x)
	w, err := s.ensureWatch(x, n, false) // so that its last words are heard
	seconds := n.graceSeconds()
	if _, err := s.client.ContainerStop(ctx, x.ID, client.ContainerStopOptions{Timeout: &seconds}); err != nil && !cerrdefs.IsNotFound(err) {
		return s.describeError(err)
	}
	if err == nil {
		w.awaitLastOutput(ctx)
	}
	if n.Files != nil {
		_ = s.opts.Files.Cancel(ctx, n.Files.externalFor(x, &reportMemo{})) // for what it may have started elsewhere
	}
	err = s.removeContainer(ctx, x.ID)
	s.forgetContainer(x.ID)
	return err
}

// awaitLastOutput waits a little for what a container prints that was told to end.
func (w *containerWatch) awaitLastOutput(ctx context.Context) {
	select {
	case <-w.done:
	case <-time.After(2 * time.Second):
	case <-ctx.Done():
	}
	w.log.Close()
}

// Ended removes a container whose end is stored.
func (s *Service) Ended(ctx context.Context, x flow.External) {
	if s.client == nil || s.isForeign(x) {
		return
	}
	if err := s.removeContainer(ctx, x.ID); err != nil {
		s.opts.Logger.WarnContext(ctx, "a container that has ended cannot be removed; it is tried again", "container", x.ID, "error", err)
	}
	s.forgetContainer(x.ID)
}
