package functions

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/troupe-engine/troupe/carriers"
	"github.com/troupe-engine/troupe/carriers/logs"
	"github.com/troupe-engine/troupe/carriers/streams"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/job"
)

// Func is a local function. Its result becomes the job's output as JSON.
type Func = job.Handler

// RawFunc is a local function that returns JSON; nil stands for null.
type RawFunc = func(ctx context.Context, j job.Job) (json.RawMessage, error)

// Options configure a Registry. The zero value is usable.
type Options struct {
	// Logs stores the log output of functions while they run. May be nil.
	Logs *logs.Book
	// Streams stores the values that functions write to streams. May be nil.
	Streams *streams.Book
	// Note receives the progress notes of functions. May be nil.
	Note func(ctx context.Context, task string, n flow.Note) error
	// Traced includes spans in the jobs of all attempts. Otherwise only tasks with a traced start
	// have them.
	Traced bool
}

// Registry holds the functions of a member by name and carries out their jobs.
type Registry struct {
	opts Options
	// receives progress notes; nil if they are not stored
	progress func(ctx context.Context, j job.Job, text string)
	funcs    sync.Map // values of type *namedFunc, by name
}

// namedFunc is a registered function.
type namedFunc struct {
	call   RawFunc
	worker string // worker name in reports
}

// New returns a registry without functions.
func New(o Options) *Registry {
	r := &Registry{opts: o}
	if o.Note != nil {
		r.progress = r.sendNote
	}
	return r
}

// Register adds a function, replacing one with the same name.
func (r *Registry) Register(name string, fn Func) {
	r.RegisterRaw(name, func(ctx context.Context, j job.Job) (json.RawMessage, error) {
		out, err := fn(ctx, j)
		if err != nil {
			return nil, err
		}
		if raw, ok := out.(json.RawMessage); ok {
			return raw, nil
		}
		return json.Marshal(out)
	})
}

// RegisterRaw adds a function that returns JSON, which saves an encoding.
func (r *Registry) RegisterRaw(name string, fn RawFunc) {
	r.funcs.Store(name, &namedFunc{fn, "local-func:" + name})
}

// Names returns the names of the functions, sorted.
func (r *Registry) Names() []string {
	var names []string
	for name := range r.funcs.Range {
		names = append(names, name.(string))
	}
	slices.Sort(names)
	return names
}

// Check returns nil if the registry has the function, else an error that lists the functions.
func (r *Registry) Check(name string) error {
	if _, ok := r.funcs.Load(name); !ok {
		return r.unknownFuncText(name)
	}
	return nil
}

// Carry calls the job's function, with retries up to the job's limit.
func (r *Registry) Carry(ctx context.Context, j flow.Job) flow.Report {
	found, ok := r.funcs.Load(j.Exec.Func)
	if !ok {
		return flow.Report{Error: "fatal error: " + r.unknownFuncText(j.Exec.Func).Error(), Fatal: true}
	}
	fn := found.(*namedFunc)
	told := jobOf(&j, r.opts.Traced)
	output := r.openOutput(ctx, &told)
	ctx = job.With(ctx, told, r.progress)
	rep := callWithRetries(ctx, fn.call, told, j.Exec)
	rep.Worker, rep.URL, rep.Metrics = fn.worker, "local", job.Told(ctx)
	rep.Log = output.closeOutput()
	return rep
}

// callWithRetries calls a function until it succeeds or no retries are left.
func callWithRetries(ctx context.Context, fn RawFunc, j job.Job, exec *flow.Exec) (rep flow.Report) {
	for n := 1; ; n++ {
		if exec.MaxAttempts > 1 {
			job.NoteTry(ctx, n)
		}
		out, err := callRecovering(ctx, fn, j)
		if err == nil {
			return flow.Report{Output: out}
		}
		rep.Error, rep.Details, rep.Fatal = errorText(err), job.DetailsOf(err), job.IsFatal(err)
		if rep.Fatal || n >= exec.MaxAttempts || !carriers.Pause(ctx, exec.TryDelayMS) {
			return rep
		}
	}
}

// unknownFuncText returns the error for an unknown function name.
func (r *Registry) unknownFuncText(name string) error {
	const most = 10
	names := r.Names()
	text := "this member has no function " + name
	if near := flow.Nearest(name, names); near != "" {
		return errors.New(text + ": did you mean " + near + "?")
	}
	switch {
	case len(names) == 0:
		return errors.New(text + ": it has none")
	case len(names) > most:
		return errors.New(text + ": it has " + strings.Join(names[:most], ", ") + " and others")
	}
	return errors.New(text + ": it has " + strings.Join(names, ", "))
}

func callRecovering(ctx context.Context, fn RawFunc, j job.Job) (out json.RawMessage, err error) {
	defer func() {
		if p := recover(); p != nil {
			out, err = nil, fmt.Errorf("panic: %.200v", p)
		}
	}()
	return fn(ctx, j)
}

// errorText returns the text of an error for a report. It never returns "", which would mean
// success.
func errorText(err error) string {
	if s := err.Error(); s != "" {
		return s
	}
	return "failed"
}
