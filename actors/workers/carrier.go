package workers

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/troupe-engine/troupe/flow"
)

// Carry calls the workers that offer the job's service, one after the other, until one answers.
func (r *Registry) Carry(ctx context.Context, job flow.Job) flow.Report {
	candidates := r.candidates(job.Exec.Service, job.Exec.ByLoad)
	if len(candidates) == 0 {
		r.awaitSign(ctx, job.Exec.Service)
		candidates = r.candidates(job.Exec.Service, job.Exec.ByLoad)
	}
	if len(candidates) == 0 {
		return flow.Report{Error: "no worker"}
	}
	if n := job.Exec.MaxAttempts; n > 0 {
		candidates = candidates[:min(n, len(candidates))]
	}
	c := newCall(&job)
	for i, w := range candidates {
		if i > 0 && !pause(ctx, job.Exec.TryDelayMS) {
			break
		}
		rep, err := r.call(ctx, w, c)
		if err == nil {
			return rep
		}
		r.opts.Logger.Debug("a worker did not answer", "job", c.job, "worker", w.ID, "url", w.URL, "error", err)
	}
	if err := ctx.Err(); err != nil {
		return flow.Report{Error: err.Error(), TimedOut: errors.Is(err, context.DeadlineExceeded)}
	}
	return flow.Report{Error: "all workers failed"}
}

// signPause is how often a job looks for a sign of life that it waits for.
const signPause = 50 // milliseconds

// awaitSign waits for a worker that was known before this registry was opened: if it has been silent
// since, that may be because there was nobody to hear it.
func (r *Registry) awaitSign(ctx context.Context, service string) {
	for len(r.candidates(service, false)) == 0 && r.mayCome(service) && pause(ctx, signPause) {
	}
}

// mayCome: who is alive gives several signs of life in the time that it may be silent.
func (r *Registry) mayCome(service string) bool {
	if time.Since(r.opened) > r.opts.OfflineTTL/2 {
		return false
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	return slices.ContainsFunc(r.push[service], func(w *worker) bool { return !w.heard.Load() })
}

// candidates are the live workers for a service in the order they are to be tried.
func (r *Registry) candidates(service string, byLoad bool) []*worker {
	since := r.opts.Now() - r.opts.OfflineTTL.Milliseconds()
	r.mu.RLock()
	live := make([]*worker, 0, len(r.push[service]))
	for _, w := range r.push[service] {
		if w.last.Load() >= since {
			live = append(live, w)
		}
	}
	r.mu.RUnlock()
	if byLoad {
		return sortByLoad(live)
	}
	return live
}

// sortByLoad looks at each load once, because they move on meanwhile. Our own calls in flight count
// on top: what a worker says is up to a heartbeat old.
func sortByLoad(live []*worker) []*worker {
	type loaded struct {
		*worker
		load int64
	}
	list := make([]loaded, len(live))
	for i, w := range live {
		list[i] = loaded{w, w.load.Load() + w.calls.Load()}
	}
	slices.SortStableFunc(list, func(a, b loaded) int { return cmp.Compare(a.load, b.load) })
	for i, l := range list {
		live[i] = l.worker
	}
	return live
}

// requestBody is {"input":any,"params":{…}}.
func requestBody(job *flow.Job) []byte {
	b := make([]byte, 0, len(job.Input)+len(job.Params)+32)
	b = append(b, `{"input":`...)
	b = appendOr(b, job.Input, "null")
	b = append(b, `,"params":`...)
	b = appendOr(b, job.Params, "{}")
	return append(b, '}')
}

func appendOr(b []byte, raw json.RawMessage, empty string) []byte {
	if len(raw) == 0 {
		return append(b, empty...)
	}
	return append(b, raw...)
}

// pause waits between two workers. It is false when the job is not wanted any longer.
func pause(ctx context.Context, ms int64) bool {
	if ctx.Err() != nil {
		return false
	}
	if ms <= 0 {
		return true
	}
	timer := time.NewTimer(time.Duration(ms) * time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
