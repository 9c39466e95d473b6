package functions

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/troupe-engine/troupe/carriers"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/conversation"
	"github.com/troupe-engine/troupe/job"
)

// FlowFunc is a function that is a flow. It asks for its steps in the conversation.
type FlowFunc = func(c *conversation.Conversation) (json.RawMessage, error)

// Flows carries out functions that are flows. It shares the options of a registry.
type Flows struct {
	registry *Registry
	funcs    sync.Map // of FlowFunc, by name
	running  sync.Map // of chan struct{}, closed when the function has stopped; by job
	warm     *warmFlows
}

// NewFlows returns the flows of a registry, without functions. A function that waits stays in
// memory for keepWarm.
func NewFlows(r *Registry, keepWarm time.Duration) *Flows {
	return &Flows{registry: r, warm: &warmFlows{keep: keepWarm, functions: map[string]*warmFlow{}}}
}

// DropWaiting ends the functions that wait in memory.
func (f *Flows) DropWaiting() { f.warm.dropAll() }

// Register adds a function. A later one of the same name replaces it.
func (f *Flows) Register(name string, fn FlowFunc) { f.funcs.Store(name, fn) }

// Carry calls a function from its beginning. Recorded steps are answered from the history of the
// job. A function that this member does not have is held, because another version of the program
// may have it.
func (f *Flows) Carry(ctx context.Context, j flow.Job) flow.Report {
	found, ok := f.funcs.Load(j.Exec.Func)
	if !ok {
		return holdFunction("this program has no flow " + j.Exec.Func + ": register it with HandleFlow and start the program again")
	}
	told := jobOf(&j, f.registry.opts.Traced)
	done, free := f.awaitPrevious(ctx, told.ID)
	if !free {
		return holdFunction("an earlier call of the function " + j.Exec.Func + " has not stopped yet")
	}
	defer done()
	log := f.registry.opts.Logs.Open(j.Task, told.ID)
	told.Log = log
	ctx = job.With(ctx, told, f.registry.progress)
	c, o := f.runConversation(ctx, &j, told, found.(FlowFunc))
	if len(o.Waits) > 0 {
		f.warm.addFunction(told.ID, c)
	}
	rep := reportOf(o, j.RestartPrefix())
	if len(o.Unasked) > 0 {
		_, _ = fmt.Fprintf(log, "the code did not ask for these recorded steps: %s\n", strings.Join(o.Unasked, ", ")) // a log never fails
	}
	rep.Worker, rep.URL, rep.Metrics = "flow:"+j.Exec.Func, "local", job.Told(ctx)
	rep.Log = log.Close()
	return rep
}

// runConversation calls the function, or goes on with the one that waits in memory.
func (f *Flows) runConversation(ctx context.Context, j *flow.Job, told job.Job,
	fn FlowFunc) (*conversation.Conversation, conversation.Outcome) {
	history, host := stepsOf(j.Function.Steps), &flowHost{ctx, j.RestartPrefix()}
	if c := f.warm.takeFunction(told.ID); c != nil {
		if !j.Function.Undoes && c.CanResume(history) {
			return c, c.Resume(ctx, told, history, host)
		}
		c.Drop()
	}
	c := conversation.New(ctx, told, history, host, f.warm.keep)
	if j.Function.Undoes {
		c.Undo()
	}
	return c, c.Run(ctx, func() (json.RawMessage, error) { return fn(c) })
}

// stopGrace is how long a function may take to stop before the next call of it is held.
const stopGrace = 10 * time.Second

// awaitPrevious waits until an earlier call of the same job has stopped.
func (f *Flows) awaitPrevious(ctx context.Context, id string) (done func(), free bool) {
	mine := make(chan struct{})
	for {
		earlier, busy := f.running.LoadOrStore(id, mine)
		if !busy {
			return func() { f.running.Delete(id); close(mine) }, true
		}
		timer := time.NewTimer(stopGrace)
		defer timer.Stop()
		select {
		case <-earlier.(chan struct{}):
		case <-timer.C:
			return nil, false
		case <-ctx.Done():
			return nil, false
		}
	}
}

// holdFunction returns the report of a function that its carrier has given up.
func holdFunction(reason string) flow.Report {
	return flow.Report{GivenUp: &flow.GivenUp{Reason: reason}}
}

// reportOf converts the outcome of a function. prefix begins the recorded names of its steps.
func reportOf(o conversation.Outcome, prefix string) flow.Report {
	switch {
	case o.Over:
		return flow.Report{Error: conversation.ErrOver.Error()}
	case len(o.Waits) > 0:
		return flow.Report{GivenUp: &flow.GivenUp{Reason: flow.HeldWaiting, Waits: waitsOf(o.Waits, prefix)}}
	case o.Held == conversation.ErrPaused.Error():
		return holdFunction(flow.HeldPaused)
	case o.Held != "":
		return holdFunction(o.Held)
	case o.Fatal != nil:
		return flow.Report{Error: o.Fatal.Error(), Fatal: true}
	case o.Restarts:
		return flow.Report{Output: o.Output, GivenUp: &flow.GivenUp{Restarts: true}}
	case o.Err != nil:
		return flow.Report{Error: errorText(o.Err), Details: detailsOf(o.Err), Fatal: true}
	}
	return flow.Report{Output: o.Output}
}

// detailsOf returns the details of an error, or of the failed step that it is about.
func detailsOf(err error) json.RawMessage {
	var failed *conversation.Error
	if details := job.DetailsOf(err); details != nil || !errors.As(err, &failed) {
		return details
	}
	return failed.Details
}

// flowHost stores the results of steps by the context of the function's job.
type flowHost struct {
	ctx    context.Context
	prefix string // of the recorded names of steps
}

func (h *flowHost) Now() time.Time { return time.Now() }

func (h *flowHost) Listen(end func(conversation.Step)) {
	carriers.FunctionHostOf(h.ctx).Listen(func(s flow.CodeStep) { end(stepOf(&s)) })
}

func (h *flowHost) Record(_ context.Context, steps []*conversation.Step, waits []*conversation.Wait) error {
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
			MS: toMillis(w.For), Question: questionOf(w.Question), Tries: w.Tries, Error: w.Error, Job: calledJobOf(w)}
	}
	return list
}

func calledJobOf(w *conversation.Wait) *flow.CodeJob {
	if w.Job == nil {
		return nil
	}
	return &flow.CodeJob{Exec: flow.ExecType(w.Job.Over), Service: w.Job.Service, Func: w.Job.Flow, Input: w.Job.Input,
		Hash: w.Hash, Retries: w.Job.Retries, PauseMS: toMillis(w.Job.Pause), TimeoutMS: toMillis(w.Job.Timeout)}
}

// toMillis converts a time to milliseconds, rounded up.
func toMillis(d time.Duration) int64 { return int64(math.Ceil(d.Seconds() * 1000)) }

// questionParams are the params of the question of an approval. It shows values that are params,
// too.
type questionParams struct {
	Text      string                     `json:"text,omitempty"`
	Form      json.RawMessage            `json:"form,omitempty"`
	Assignees []string                   `json:"assignees,omitempty"`
	Show      json.RawMessage            `json:"show,omitempty"`
	Values    map[string]json.RawMessage `json:"values,omitempty"`
}

func questionOf(q *conversation.Question) json.RawMessage {
	if q == nil {
		return nil
	}
	p := questionParams{Text: q.Text, Form: q.Form, Assignees: q.Assignees}
	for i, shown := range q.Show {
		key, before := "value"+strconv.Itoa(i+1), byte(',')
		if i == 0 {
			before, p.Values = '{', map[string]json.RawMessage{}
		}
		p.Values[key] = shown.Value
		p.Show = append(append(append(p.Show, before), writeJSON(shown.Label)...), ':')
		p.Show = append(p.Show, writeJSON("$params.values."+key)...)
	}
	if len(p.Show) > 0 {
		p.Show = append(p.Show, '}')
	}
	return writeJSON(p)
}

// writeJSON returns the JSON of a value that always has one.
func writeJSON(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return raw
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
