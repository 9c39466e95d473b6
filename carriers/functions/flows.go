package functions

import (
	"context"
	"errors"
	"time"

	"github.com/troupe-engine/troupe/carriers"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/conversation"
	"github.com/troupe-engine/troupe/internal/flowfuncs"
	"github.com/troupe-engine/troupe/job"
)

// Flows carries out function flows. It shares the options of a registry.
type Flows struct {
	*flowfuncs.Functions
	registry *Registry
}

// NewFlows returns an empty set of function flows. A waiting function stays in memory for keepWarm.
func NewFlows(r *Registry, keepWarm time.Duration) *Flows {
	return &Flows{flowfuncs.New(keepWarm), r}
}

// Carry calls a function for a delivery of its job. A function that this member lacks is held,
// because another version of the program may have it.
func (f *Flows) Carry(ctx context.Context, j flow.Job) flow.Report {
	told := jobOf(&j, f.registry.opts.Traced)
	call, held := f.Begin(ctx, j.Exec.Func, told.ID)
	if call == nil {
		return flow.Report{GivenUp: &flow.GivenUp{Reason: held}}
	}
	defer call.End()
	output := f.registry.openOutput(ctx, &told)
	ctx = job.With(ctx, told, f.registry.progress)
	prefix := j.RestartPrefix()
	rep := reportOf(call.Run(ctx, flowfuncs.Delivery{Job: told, Steps: stepsOf(j.Function.Steps), Undoes: j.Function.Undoes,
		Host: &flowHost{ctx, prefix, told.Streams()}}), prefix)
	rep.Worker, rep.URL, rep.Metrics = flow.FunctionService(j.Exec.Func), "local", job.Told(ctx)
	rep.Log = output.closeOutput()
	return rep
}

// reportOf converts the result of a function. It puts prefix before the names of steps.
func reportOf(r flowfuncs.Result, prefix string) flow.Report {
	report := flow.Report{Output: r.Output, Error: r.Error, Details: r.Details, Fatal: r.Fatal}
	switch {
	case len(r.Waits) > 0:
		report.GivenUp = &flow.GivenUp{Reason: flow.HeldWaiting, Waits: waitsOf(r.Waits, prefix)}
	case r.Held == conversation.ErrPaused.Error():
		report.GivenUp = &flow.GivenUp{Reason: flow.HeldPaused}
	case r.Held != "":
		report.GivenUp = &flow.GivenUp{Reason: r.Held}
	case r.Restarts:
		report.GivenUp = &flow.GivenUp{Restarts: true}
	}
	return report
}

// flowHost records the results of steps through the context of the function's job.
type flowHost struct {
	ctx    context.Context
	prefix string // prefix of the recorded names of steps
	// streams of the job; nil if there are none
	streams job.StreamSink
}

func (h *flowHost) Now() time.Time { return time.Now() }

func (h *flowHost) Listen(end func(conversation.Step)) {
	carriers.FunctionHostOf(h.ctx).Listen(func(s flow.CodeStep) { end(stepOf(&s)) })
}

// Record stores the results of steps. It first stores the values that the function has written to
// streams, because a replay does not write them again.
func (h *flowHost) Record(_ context.Context, steps []*conversation.Step, waits []*conversation.Wait) error {
	if h.streams != nil {
		_ = h.streams.Flush(h.ctx, "") // the log of the job contains the reasons
	}
	list := make([]flow.CodeStep, len(steps))
	for i, s := range steps {
		list[i] = flow.CodeStep{Name: h.prefix + s.Name, Use: s.Use, Kind: flow.CodeKind(s.Kind), Hash: s.Hash, Output: s.Output,
			Error: s.Error, Details: s.Details, Tries: s.Tries, StartedAt: s.StartedAt}
	}
	switch err := carriers.FunctionHostOf(h.ctx).Record(list, waitsOf(waits, h.prefix)); {
	case errors.Is(err, flow.ErrOver):
		return conversation.ErrOver
	case errors.Is(err, flow.ErrCodeStops):
		return conversation.ErrPaused
	default:
		return err
	}
}

func waitsOf(waits []*conversation.Wait, prefix string) []flow.CodeWait {
	list := make([]flow.CodeWait, len(waits))
	for i, w := range waits {
		list[i] = flow.CodeWait{Name: prefix + w.Name, Use: w.Use, Kind: flow.CodeKind(w.Kind), Key: w.Key,
			MS: conversation.ToMillis(w.For), Question: w.Question.EncodeParams(), Tries: w.Tries, Error: w.Error, Job: calledJobOf(w)}
	}
	return list
}

func calledJobOf(w *conversation.Wait) *flow.CodeJob {
	if w.Job == nil {
		return nil
	}
	return &flow.CodeJob{Exec: flow.ExecType(w.Job.Over), Service: w.Job.Service, Func: w.Job.Flow, Input: w.Job.Input, Hash: w.Hash,
		Retries: w.Job.Retries, PauseMS: conversation.ToMillis(w.Job.Pause), TimeoutMS: conversation.ToMillis(w.Job.Timeout)}
}

func stepsOf(history []flow.CodeStep) []conversation.Step {
	list := make([]conversation.Step, len(history))
	for i := range history {
		list[i] = stepOf(&history[i])
	}
	return list
}

func stepOf(s *flow.CodeStep) conversation.Step {
	return conversation.Step{Name: flow.TrimRestartPrefix(s.Name), Use: s.Use, Kind: conversation.Kind(s.Kind),
		Hash: s.Hash, Output: s.Output,
		Error: s.Error, Details: s.Details, Tries: s.Tries, StartedAt: s.StartedAt, EndedAt: s.EndedAt}
}
