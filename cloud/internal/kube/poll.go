package kube

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/program"
	jobs "github.com/troupe-engine/troupe/job"
)

// Pauses between two looks at a job: the first one, doubled each time, up to the last one.
const (
	firstLook = 250 * time.Millisecond
	lastLook  = 2 * time.Second
)

// Poll returns the status of a job. An ended job is kept until its end is stored.
func (s *Service) Poll(ctx context.Context, x flow.External) (flow.ExternalStatus, error) {
	n, err := s.readNote(x)
	if err != nil {
		return failedStatus(err.Error()), nil
	}
	c, err := s.apiClient()
	if err != nil {
		return flow.ExternalStatus{}, err
	}
	status, err := s.pollJob(ctx, c, x, &n)
	status.Again = max(min(lastLook, firstLook<<min(x.Polls, 10)), retryAfter(err))
	return status, err
}

func failedStatus(text string) flow.ExternalStatus {
	return flow.ExternalStatus{Ended: true, Error: text}
}

func (s *Service) pollJob(ctx context.Context, c *kubeClient, x flow.External, n *jobNote) (flow.ExternalStatus, error) {
	j, err := c.getJob(ctx, n.Namespace, x.ID)
	if codeOf(err) == http.StatusNotFound {
		s.stopWatch(x.ID)
		return failedStatus("the job " + n.Namespace + "/" + x.ID + " is gone: somebody has deleted it"), nil
	}
	if err != nil {
		return flow.ExternalStatus{}, err
	}
	pods, err := c.listPods(ctx, n.Namespace, labelName+"="+x.ID)
	if err != nil {
		return flow.ExternalStatus{}, err
	}
	p := newestPod(pods)
	end := j.endCondition()
	switch {
	case p == nil && end == nil:
		return flow.ExternalStatus{}, nil
	case p == nil:
		return failedStatus(cmp.Or(end.Message, end.Reason, "it has ended") + "; its pod is gone, and with it what it has printed"), nil
	case end == nil:
		return s.runningStatus(c, x, n, p), nil
	}
	return s.endedStatus(ctx, c, x, n, p, end)
}

// endCondition returns the condition that shows how a job has ended; nil if it is still running.
func (j *kubeJob) endCondition() *jobCondition {
	i := slices.IndexFunc(j.Status.Conditions, func(c jobCondition) bool {
		return (c.Type == "Complete" || c.Type == "Failed") && c.Status == "True"
	})
	if i < 0 {
		return nil
	}
	return &j.Status.Conditions[i]
}

// newestPod returns the newest pod. There is only one, unless the first was deleted from outside.
func newestPod(pods []pod) (last *pod) {
	for i := range pods {
		if p := &pods[i]; last == nil || p.Metadata.CreationTimestamp != nil &&
			last.Metadata.CreationTimestamp != nil &&
			p.Metadata.CreationTimestamp.After(*last.Metadata.CreationTimestamp) {
			last = p
		}
	}
	return last
}

// fatalReasons are the reasons for a waiting container that do not pass by themselves.
var fatalReasons = []string{"ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName",
	"CreateContainerConfigError", "CreateContainerError", "RunContainerError"}

// runningStatus returns the status of an unfinished job. Once it is running, its log is followed.
func (s *Service) runningStatus(c *kubeClient, x flow.External, n *jobNote, p *pod) flow.ExternalStatus {
	waits, over := p.findWaiting(), p.findTerminated()
	switch {
	case waits != nil && slices.Contains(fatalReasons, waits.Reason):
		return failedStatus(fmt.Sprintf("the container cannot be started: %s: %s", waits.Reason, waits.Message))
	case waits != nil:
	case p.Status.Phase == "Running" || over != nil:
		w := s.followLog(c, x, n, p.Metadata.Name, over != nil)
		if over == nil && w.isDone() { // the API server was unavailable in between
			s.stopWatch(x.ID)
		}
		return flow.ExternalStatus{BeganAt: p.beganAt()}
	}
	return flow.ExternalStatus{}
}

// beganAt returns the start time of a pod's container.
func (p *pod) beganAt() int64 {
	for _, c := range p.Status.ContainerStatuses {
		switch r, t := c.State.Running, c.State.Terminated; {
		case c.Name != taskContainer:
		case r != nil && r.StartedAt != nil:
			return r.StartedAt.UnixMilli()
		case t != nil && t.StartedAt != nil:
			return t.StartedAt.UnixMilli()
		}
	}
	return time.Now().UnixMilli()
}

func (p *pod) findWaiting() *waitingState {
	for _, c := range p.Status.ContainerStatuses {
		if c.Name == taskContainer {
			return c.State.Waiting
		}
	}
	return nil
}

func (p *pod) findTerminated() *terminatedState {
	for _, c := range p.Status.ContainerStatuses {
		if c.Name == taskContainer {
			return c.State.Terminated
		}
	}
	return nil
}

// endedStatus returns the result of an ended job: the end of its container, and its output.
func (s *Service) endedStatus(ctx context.Context, c *kubeClient, x flow.External, n *jobNote, p *pod,
	end *jobCondition) (flow.ExternalStatus, error) {
	over := p.findTerminated()
	if over == nil { // it ended before its start, or together with its node
		return failedStatus(cmp.Or(p.Status.Message, end.Message, end.Reason, "it has ended before it ran")), nil
	}
	w := s.followLog(c, x, n, p.Metadata.Name, true)
	select {
	case <-w.done:
	case <-ctx.Done(): // the log is long
		return flow.ExternalStatus{}, nil
	}
	if w.err != nil {
		s.stopWatch(x.ID)
		return flow.ExternalStatus{}, fmt.Errorf("what it has printed cannot be read: %w", w.err)
	}
	status := w.buildResult(over, n)
	status.BeganAt = p.beganAt()
	if status.Error != "" || status.Output != nil || n.Files == nil {
		return status, nil
	}
	filed, err := s.opts.Tools.Files.Output(ctx, n.Files.Of(x))
	if filed.BeganAt = status.BeganAt; filed.Metrics == nil {
		filed.Metrics = status.Metrics
	}
	return filed, err
}

// buildResult returns the result of a job from its output and its end. It is called again if the
// task has not accepted the result.
func (w *logWatch) buildResult(over *terminatedState, n *jobNote) flow.ExternalStatus {
	w.hearing.Lock()
	defer w.hearing.Unlock()
	if w.result != nil {
		return *w.result
	}
	how, sure := over.exitText(n)
	res := w.listener.Result(how)
	if sure {
		res = program.Result{Error: how, Metrics: res.Metrics}
	}
	w.result = &flow.ExternalStatus{Ended: true, Output: res.Output, Error: res.Error,
		Details: res.Details, Metrics: jobs.NumbersJSON(res.Metrics)}
	w.log.Close()
	return *w.result
}

// exitText returns the error of a failed container; "" for success. If sure is true, the output
// does not matter.
func (t *terminatedState) exitText(n *jobNote) (text string, sure bool) {
	switch {
	case t.Reason == "OOMKilled" && n.Memory != "":
		return "out of memory (limit " + n.Memory + ")", true
	case t.Reason == "OOMKilled":
		return "out of memory", true
	case t.ExitCode == 0:
		return "", false
	}
	return "exit status " + strconv.Itoa(t.ExitCode), false
}

// Cancel ends and deletes a job that is no longer needed.
func (s *Service) Cancel(ctx context.Context, x flow.External) error {
	n, err := s.readNote(x)
	if err != nil {
		return nil // it is not ours
	}
	c, err := s.apiClient()
	if err != nil {
		return err
	}
	if n.Files != nil {
		_ = s.opts.Tools.Files.Cancel(ctx, n.Files.Of(x)) // for a worker that checks for it
	}
	err = c.deleteJob(ctx, n.Namespace, x.ID)
	s.stopWatch(x.ID)
	return err
}

// Ended deletes a job whose end is stored.
func (s *Service) Ended(ctx context.Context, x flow.External) {
	n, err := s.readNote(x)
	if err != nil {
		return
	}
	c, err := s.apiClient()
	if err == nil {
		err = c.deleteJob(ctx, n.Namespace, x.ID)
	}
	if err != nil {
		s.opts.Tools.Logger.WarnContext(ctx,
			"deleting an ended Kubernetes job failed, retrying", "job", x.ID,
			"error", err)
	}
	s.stopWatch(x.ID)
}
