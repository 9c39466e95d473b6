package funcs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/troupe-engine/troupe/actors/internal/carry"
	"github.com/troupe-engine/troupe/flow"
)

// Func is a local function. Its result becomes the job's output as JSON.
type Func = func(ctx context.Context, job flow.Job) (any, error)

// RawFunc is a local function whose result is JSON already; nil stands for null.
type RawFunc = func(ctx context.Context, job flow.Job) (json.RawMessage, error)

// Registry holds the functions of a member by name and carries out their jobs.
type Registry struct {
	mu    sync.RWMutex
	funcs map[string]RawFunc
}

// New returns a registry without functions.
func New() *Registry { return &Registry{funcs: map[string]RawFunc{}} }

// Register makes a function known. The last one of a name counts.
func (r *Registry) Register(name string, fn Func) {
	r.RegisterRaw(name, func(ctx context.Context, job flow.Job) (json.RawMessage, error) {
		out, err := fn(ctx, job)
		if err != nil {
			return nil, err
		}
		if raw, ok := out.(json.RawMessage); ok {
			return raw, nil
		}
		return json.Marshal(out)
	})
}

// RegisterRaw makes a function known that speaks JSON, sparing it the encoding.
func (r *Registry) RegisterRaw(name string, fn RawFunc) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.funcs[name] = fn
}

// Names of the functions, sorted.
func (r *Registry) Names() []string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return slices.Sorted(maps.Keys(r.funcs))
}

func (r *Registry) find(name string) RawFunc {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.funcs[name]
}

// Carry calls the job's function until it succeeds or its tries are used up.
func (r *Registry) Carry(ctx context.Context, job flow.Job) flow.Report {
	fn := r.find(job.Exec.Func)
	if fn == nil {
		return flow.Report{Error: "fatal error", Fatal: true}
	}
	rep := flow.Report{Worker: "local-func:" + job.Exec.Func, URL: "local"}
	for try := 1; ; try++ {
		out, err := call(ctx, fn, job)
		if err == nil {
			rep.Output, rep.Error = out, ""
			return rep
		}
		rep.Error, rep.Fatal = text(err), fatal(err)
		if rep.Fatal || try >= job.Exec.MaxAttempts || !carry.Pause(ctx, job.Exec.TryDelayMS) {
			return rep
		}
	}
}

func call(ctx context.Context, fn RawFunc, job flow.Job) (out json.RawMessage, err error) {
	defer func() {
		if p := recover(); p != nil {
			out, err = nil, fmt.Errorf("panic: %.200v", p)
		}
	}()
	out, err = fn(ctx, job)
	if err == nil && len(out) > 0 && !json.Valid(out) {
		return nil, errors.New("the function's result is not valid JSON")
	}
	return out, err
}

// text is what a report says about an error; an empty one would mean success.
func text(err error) string {
	if s := err.Error(); s != "" {
		return s
	}
	return "failed"
}

// fatal recognizes the errors of any package whose method says that trying again is of no use.
func fatal(err error) bool {
	var f interface{ Fatal() bool }
	return errors.As(err, &f) && f.Fatal()
}
