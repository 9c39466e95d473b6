package containers

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

// firstLook and lastLook bound the pause between polls of a container. The pause doubles each time.
const (
	firstLook = 100 * time.Millisecond
	lastLook  = 2 * time.Second
)

// unreachableLimit is how long a container host may be unreachable before its containers count as
// lost.
const unreachableLimit = 10 * time.Minute

// Poll returns the status of a container. An ended container is kept until its end is stored.
func (s *Service) Poll(ctx context.Context, x flow.External) (flow.ExternalStatus, error) {
	switch {
	case s.client == nil:
		return flow.ExternalStatus{Ended: true, Error: notAllowedText}, nil
	case s.isForeign(x):
		return flow.ExternalStatus{Ended: true,
			Error: fmt.Sprintf("the container %.100q was not begun for this attempt: only a "+
				"node of type container begins one that is waited for", x.ID)}, nil
	}
	status, err := s.pollContainer(ctx, x)
	if err != nil && x.FailingAt > 0 && time.Since(time.UnixMilli(x.FailingAt)) > unreachableLimit {
		return flow.ExternalStatus{Ended: true, Error: "given up looking at the container: " + s.describeError(err).Error()}, nil
	}
	status.Again = min(lastLook, firstLook<<min(x.Polls, 10))
	return status, err
}

// isForeign reports whether external work is not the container of its own attempt. A program may
// name any external work in its output, but must not reach other containers.
func (s *Service) isForeign(x flow.External) bool { return x.ID != s.containerName(x.Job) }

func (s *Service) pollContainer(ctx context.Context, x flow.External) (status flow.ExternalStatus, err error) {
	there, err := s.client.ContainerInspect(ctx, x.ID, client.ContainerInspectOptions{})
	switch {
	case cerrdefs.IsNotFound(err):
		s.forgetContainer(x.ID)
		return flow.ExternalStatus{Ended: true,
			Error: "the container " + x.ID + " is gone: somebody has removed it, or this member " +
				"has another container host than who began it"}, nil
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
		case <-w.done: // the container host was unreachable meanwhile
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

// resultOf returns the status of an ended container.
func (s *Service) resultOf(ctx context.Context, name string, n *trackerNote, w *containerWatch,
	state *container.State) (flow.ExternalStatus, error) {
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
	w.endStatus = &flow.ExternalStatus{Ended: true, Output: w.hide.JSON(res.Output),
		Error: w.hide.Text(res.Error), Details: w.hide.JSON(res.Details),
		Metrics: metrics}
	return *w.endStatus, nil
}

// collectResult returns the output and the exit of a container. An error means that these could not
// be read.
func (s *Service) collectResult(ctx context.Context, name string, n *trackerNote, w *containerWatch,
	state *container.State) (program.Result, error) {
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

// killedExitCode is the exit code after SIGKILL.
const killedExitCode = 128 + 9

// exitReason returns why a container has failed; "" if it succeeded. If sure is true, the output is
// ignored. Podman with cgroups version 1 does not report that memory was the reason.
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

// Cancel stops and removes a container that is no longer needed.
func (s *Service) Cancel(ctx context.Context, x flow.External) error {
	if s.client == nil || s.isForeign(x) {
		return nil
	}
	n := &trackerNote{}
	n.decodeData(x)
	w, err := s.ensureWatch(x, n, false) // watched to get the last output
	seconds := n.graceSeconds()
	if _, err := s.client.ContainerStop(ctx, x.ID,
		client.ContainerStopOptions{Timeout: &seconds}); err != nil && !cerrdefs.IsNotFound(err) {
		return s.describeError(err)
	}
	if err == nil {
		w.awaitLastOutput(ctx)
	}
	if n.Files != nil {
		// cancels work that the program may have started elsewhere
		_ = s.opts.Files.Cancel(ctx, n.Files.externalFor(x, &reportMemo{}))
	}
	err = s.removeContainer(ctx, x.ID)
	s.forgetContainer(x.ID)
	return err
}

// awaitLastOutput waits briefly for the last output of a container that is being stopped.
func (w *containerWatch) awaitLastOutput(ctx context.Context) {
	select {
	case <-w.done:
	case <-time.After(2 * time.Second):
	case <-ctx.Done():
	}
	w.log.Close()
}

// Ended removes a container after its end is stored.
func (s *Service) Ended(ctx context.Context, x flow.External) {
	if s.client == nil || s.isForeign(x) {
		return
	}
	if err := s.removeContainer(ctx, x.ID); err != nil {
		s.opts.Logger.WarnContext(ctx, "removing an ended container failed, retrying", "container", x.ID, "error", err)
	}
	s.forgetContainer(x.ID)
}
