package external

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/troupe-engine/troupe/actors/internal/carry"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/objects"
)

// ObjectsOptions of Objects.
type ObjectsOptions struct {
	Bucket    objects.Bucket // nil = the operator has given none
	Now       func() int64   // in Unix milliseconds; nil = this host's clock
	MaxOutput int            // bytes of an output; 0 = 1 MiB
}

// Objects has attempts carried out by workers that know nothing but the files of an object store:
// it writes what is to be done, and looks how that goes. It is a Starter for workers that others
// start, and what whoever starts one himself has it write and look.
type Objects struct {
	opts ObjectsOptions
	runs runLists
}

// NewObjects makes one.
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

// Dispatch writes what a job has to do. The address is where a worker finds that, x what is looked
// after then.
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

// Start has a job wait for a worker that somebody else starts. Whoever does so once more finds the
// same files.
func (o *Objects) Start(ctx context.Context, job flow.Job, _ bool) flow.Report {
	address, x, err := o.Dispatch(ctx, &job)
	if err != nil {
		return flow.Report{Error: err.Error(), Fatal: flow.ErrorKindOf(err) != ""}
	}
	x.Pending = true
	return flow.Report{Deferred: []flow.External{x}, URL: address}
}

// Poll looks how an attempt is. A worker that is waited for no longer may find that in a file.
func (o *Objects) Poll(ctx context.Context, x flow.External) (flow.ExternalStatus, error) {
	status, said, err := o.pollAttempt(ctx, &x)
	if status.Ended && !said {
		_ = o.Cancel(ctx, x) // whoever does not find it finds out that nobody listens
	}
	return status, err
}

// pollAttempt looks how an attempt is. said = the worker has told its end.
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
	if x.Failures > 0 { // silence that could not be heard is none
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
		return nil, flow.Errorf(flow.Invalid, "no worker has files in %.200q: what waits for one says exec_type: outside and service: %s", x.ID, flow.ObjectStore)
	}
	return a, nil
}

// Cancel tells the worker, in a file, that nobody waits for it any longer.
func (o *Objects) Cancel(ctx context.Context, x flow.External) error {
	a, err := o.decodeAttempt(&x)
	if err != nil {
		return nil // nobody was ever told where to look
	}
	return objects.CallOff(ctx, o.opts.Bucket, a)
}

// specOf is what a job has to do.
func specOf(job *flow.Job, now int64) *objects.Spec {
	s := &objects.Spec{Run: job.Task, Task: carry.UnitID(job), Execution: job.ID(), Key: job.Key(), TaskName: job.Step(), Executor: string(job.Exec.Type), Attempt: job.Attempt,
		Input: carry.Input(job), Params: job.Params, Upstream: carry.Upstream(job), TimeoutSeconds: float64(job.TimeoutMS) / 1000, CreatedAt: time.UnixMilli(now).UTC()}
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
		if n := carry.NodeOf(job); n != nil {
			s.TaskName = n.Called()
		}
	}
	return s
}
