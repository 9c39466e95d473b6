package external

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/troupe-engine/troupe/carriers"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/objects"
)

// ObjectsOptions configure an Objects.
type ObjectsOptions struct {
	Bucket    objects.Bucket // nil if no object store is configured
	Now       func() int64   // time in Unix milliseconds; nil means this host's clock
	MaxOutput int            // largest output in bytes; 0 means 1 MiB
}

// Objects lets workers carry out attempts through files in an object store: it writes the
// specification and polls the status. It is a Starter for workers that other systems start. Other
// carriers use its methods for workers that they start.
type Objects struct {
	opts ObjectsOptions
	runs runLists
}

// NewObjects returns an Objects.
func NewObjects(o ObjectsOptions) *Objects {
	if o.Now == nil {
		o.Now = func() int64 { return time.Now().UnixMilli() }
	}
	if o.MaxOutput == 0 {
		o.MaxOutput = flow.DefaultLimits.Value
	}
	return &Objects{opts: o, runs: runLists{now: o.Now, bucket: o.Bucket}}
}

const noObjectStore = "this server has no object store; its operator can give it one with --object-store"

// Dispatch writes the specification of a job. It returns the address of the specification, and the
// external work to poll.
func (o *Objects) Dispatch(ctx context.Context, job *flow.Job) (address string, x flow.External, err error) {
	if o.opts.Bucket == nil {
		return "", x, flow.Errorf(flow.Denied, noObjectStore)
	}
	spec := specOf(job, o.opts.Now())
	a := objects.Attempt{Run: job.Task, Folder: objects.Folder(job.Task, spec.Task, job.Visit, job.Attempt), Attempt: job.Attempt,
		StartMS: job.Exec.StartMS, HeartbeatMS: job.Exec.HeartbeatMS}
	if a.StartMS == 0 {
		a.StartMS = objects.StartTimeout.Milliseconds()
	}
	if a.HeartbeatMS == 0 {
		a.HeartbeatMS = objects.HeartbeatTimeout.Milliseconds()
	}
	if err := objects.WriteSpec(ctx, o.opts.Bucket, a.Folder, spec); err != nil {
		return "", x, fmt.Errorf("%s could not be written: %w", objects.SpecFile, err)
	}
	data, err := json.Marshal(a)
	return o.opts.Bucket.Address(a.Folder + objects.SpecFile),
		flow.External{Task: job.Task, Job: job.ID(), Service: flow.ObjectStore, ID: a.Folder, Data: data, StartedAt: o.opts.Now()}, err
}

// Start makes a job wait for a worker that another system starts. A repeated call finds the same
// files.
func (o *Objects) Start(ctx context.Context, job flow.Job, _ bool) flow.Report {
	address, x, err := o.Dispatch(ctx, &job)
	if err != nil {
		return flow.Report{Error: err.Error(), Fatal: flow.ErrorKindOf(err) != ""}
	}
	x.Pending = true
	return flow.Report{Deferred: []flow.External{x}, URL: address}
}

// Poll returns the status of an attempt. If the attempt ends without its worker, it writes a file
// that cancels the worker.
func (o *Objects) Poll(ctx context.Context, x flow.External) (flow.ExternalStatus, error) {
	status, said, err := o.pollAttempt(ctx, &x)
	if status.Ended && !said {
		_ = o.Cancel(ctx, x) // if this fails, the worker's report is ignored
	}
	return status, err
}

// pollAttempt polls an attempt. said reports whether the worker reported the end.
func (o *Objects) pollAttempt(ctx context.Context, x *flow.External) (status flow.ExternalStatus, said bool, err error) {
	a, err := o.decodeAttempt(x)
	if err != nil {
		return failedStatus(err.Error()), false, nil
	}
	var seen objects.Seen
	if len(x.Memo) > 0 && json.Unmarshal(x.Memo, &seen) != nil {
		seen = objects.Seen{}
	}
	now := o.opts.Now()
	if x.Failures > 0 { // failed polls must not count as silence of the worker
		seen = seen.Unheard(a.Since, now)
	}
	v, err := a.Look(ctx, o.opts.Bucket, o.runs.sourceFor(a), seen, now, o.opts.MaxOutput)
	switch {
	case err != nil:
		return flow.ExternalStatus{}, false, err
	case v.Ended:
		return flow.ExternalStatus{Ended: true, Output: v.Output, Error: v.Error, BeganAt: v.BeganAt}, v.Said, nil
	}
	memo, err := json.Marshal(v.Seen)
	return flow.ExternalStatus{Again: v.Again, Memo: memo, BeganAt: v.BeganAt}, false, err
}

func (o *Objects) decodeAttempt(x *flow.External) (*objects.Attempt, error) {
	if o.opts.Bucket == nil {
		return nil, flow.Errorf(flow.Denied, noObjectStore)
	}
	a := &objects.Attempt{Since: x.StartedAt}
	if err := json.Unmarshal(x.Data, a); err != nil || !a.Sound(x.Task) {
		return nil, flow.Errorf(flow.Invalid,
			"no worker has files in %.200q: what waits for one says exec_type: external and "+
				"service: %s", x.ID, flow.ObjectStore)
	}
	return a, nil
}

// Cancel writes a file that cancels the worker.
func (o *Objects) Cancel(ctx context.Context, x flow.External) error {
	a, err := o.decodeAttempt(&x)
	if err != nil {
		return nil // no worker ever got an address
	}
	return objects.CallOff(ctx, o.opts.Bucket, a)
}

// specOf returns the specification of a job.
func specOf(job *flow.Job, now int64) *objects.Spec {
	s := &objects.Spec{Run: job.Task, Task: carriers.UnitID(job), Execution: job.ID(), Key: job.Key(),
		TaskName: job.Step(), Executor: string(job.Exec.Type), Attempt: job.Attempt,
		Input: carriers.Input(job), Params: job.Params, Upstream: carriers.Upstream(job),
		TimeoutSeconds: float64(job.TimeoutMS) / 1000, CreatedAt: time.UnixMilli(now).UTC()}
	if p := job.Exec.Program; p != nil {
		s.File, s.Module, s.Function = p.File, p.Module, p.Function
		if p.Command != "" {
			s.Command = p.Command
		} else if len(p.Args) > 0 {
			s.Command = p.Args
		}
	}
	if !job.Single {
		index, count := job.Unit, max(job.Units, 1)
		if job.PerItem > 0 {
			index, count = job.Unit%job.PerItem, job.PerItem
		}
		s.ParallelIndex, s.ParallelCount = &index, &count
	}
	if job.Plan != nil {
		s.Workflow = job.Plan.FlowSlug
		if n := carriers.NodeOf(job); n != nil {
			s.TaskName = n.Called()
		}
	}
	return s
}
