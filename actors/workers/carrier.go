package workers

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"slices"
	"time"

	"github.com/troupe-engine/troupe/actors/internal/carry"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/logids"
)

// Carry calls the workers that offer the job's service and have the labels it asks for, one after
// the other, until one answers.
func (r *Registry) Carry(ctx context.Context, job flow.Job) flow.Report {
	c := newCall(&job)
	for learned := false; ; {
		list := r.unheardWorkers(job.Exec) // looked up first: who is heard just now is found below
		live := r.liveWorkers(job.Exec)
		if len(live) > 0 {
			list = live
		}
		rep, begun, ok := r.callWorkers(ctx, c, &job, list)
		switch {
		case ok:
			return rep
		case len(live) > 0:
			return failureReport(ctx, "all workers failed")
		case len(list) == 0 && !learned && r.refreshNow(ctx):
			learned = true
		case begun || len(list) == 0 || !carry.Pause(ctx, retryPauseMS):
			return failureReport(ctx, carry.NoWorker(job.Exec))
		}
	}
}

// retryPauseMS is how long a job waits before workers that could not be reached are tried again.
const retryPauseMS = 50

// callWorkers asks workers until one answers. begun says whether one was reached that did not
// answer: it may have begun the job.
func (r *Registry) callWorkers(ctx context.Context, c *workerCall, job *flow.Job, list []*registeredWorker) (rep flow.Report, begun, ok bool) {
	if n := job.Exec.MaxAttempts; n > 0 {
		list = list[:min(n, len(list))]
	}
	for i, w := range list {
		if i > 0 && !carry.Pause(ctx, job.Exec.TryDelayMS) {
			break
		}
		rep, err := r.callWorker(ctx, w, c)
		if err == nil {
			w.silent.Store(false)
			return rep, true, true
		}
		begun = begun || !neverReached(err)
		r.logNoAnswer(ctx, w, c, err)
	}
	return flow.Report{}, begun, false
}

// logNoAnswer logs why a worker gave no answer, which its job's error does not tell; once until it
// answers again.
func (r *Registry) logNoAnswer(ctx context.Context, w *registeredWorker, c *workerCall, err error) {
	level := slog.LevelDebug
	if ctx.Err() == nil && w.silent.CompareAndSwap(false, true) { // else the job is not wanted any longer
		level = slog.LevelWarn
	}
	r.opts.Logger.Log(logids.Job(ctx, c.job), level, "a worker did not answer", "job", c.job.ID(), "worker", w.ID, "url", w.URL, "error", err)
}

func neverReached(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// failureReport without anything a worker said.
func failureReport(ctx context.Context, text string) flow.Report {
	if err := ctx.Err(); err != nil {
		return flow.Report{Error: err.Error(), TimedOut: errors.Is(err, context.DeadlineExceeded)}
	}
	return flow.Report{Error: text}
}

// liveWorkers are the live workers for a job in the order they are to be tried.
func (r *Registry) liveWorkers(e *flow.Exec) []*registeredWorker {
	since := r.opts.Now() - r.opts.OfflineTTL.Milliseconds()
	live := r.workersFor(e, func(w *registeredWorker) bool { return w.heartbeatAt.Load() >= since })
	if e.ByLoad {
		return sortByLoad(live)
	}
	return live
}

// unheardWorkers are the workers for a job that were known before this registry was opened and may
// be alive: that they have been silent may be because there was nobody to hear them. After a while
// they would have been heard, for who is alive gives several signs of it in the time it may be
// silent.
func (r *Registry) unheardWorkers(e *flow.Exec) []*registeredWorker {
	if time.Since(r.opened) > r.opts.OfflineTTL/2 {
		return nil
	}
	return r.workersFor(e, func(w *registeredWorker) bool { return !w.heard.Load() })
}

// Awaited reports whether a worker that was attached before this registry was opened, and has not
// been heard of since, would be there for a job.
func (r *Registry) Awaited(e *flow.Exec) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return slices.ContainsFunc(r.ordered, func(w *registeredWorker) bool {
		return w.Type == attachedType && !w.heard.Load() && slices.Contains(w.Services, e.Service) && w.hasAll(e.Labels)
	})
}

// Listed reports whether a worker is listed as attached, to whatever member, that would be there
// for a job, and has been heard of not long ago.
func (r *Registry) Listed(e *flow.Exec) bool {
	since := r.opts.Now() - r.opts.OfflineTTL.Milliseconds()
	r.mu.RLock()
	defer r.mu.RUnlock()
	return slices.ContainsFunc(r.ordered, func(w *registeredWorker) bool {
		return w.Type == attachedType && w.heartbeatAt.Load() >= since && slices.Contains(w.Services, e.Service) && w.hasAll(e.Labels)
	})
}

// Pushed are the services that registered push workers offer, also those who have been silent: who
// was called with a job may be.
func (r *Registry) Pushed() (services []string) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for service, all := range r.push {
		if len(all) > 0 {
			services = append(services, service)
		}
	}
	slices.Sort(services)
	return services
}

// attachedType is that of workers which dial in.
const attachedType = "attached"

func (r *Registry) workersFor(e *flow.Exec, fits func(*registeredWorker) bool) []*registeredWorker {
	r.mu.RLock()
	defer r.mu.RUnlock()
	list := make([]*registeredWorker, 0, len(r.push[e.Service]))
	for _, w := range r.push[e.Service] {
		if fits(w) && w.hasAll(e.Labels) && !r.isOutranked(w.ID, e.Service) {
			list = append(list, w)
		}
	}
	return list
}

// Outranked reports whether a worker stands by while another live one offers a service, in whatever
// way it gets its jobs.
func (r *Registry) Outranked(id, service string) bool {
	if len(r.opts.Standby) == 0 {
		return false
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.isOutranked(id, service)
}

// isOutranked is Outranked for a caller that holds the lock.
func (r *Registry) isOutranked(id, service string) bool {
	if !slices.Contains(r.opts.Standby, id) {
		return false
	}
	since := r.opts.Now() - r.opts.OfflineTTL.Milliseconds()
	return slices.ContainsFunc(r.ordered, func(w *registeredWorker) bool {
		return w.heartbeatAt.Load() >= since && slices.Contains(w.Services, service) && !slices.Contains(r.opts.Standby, w.ID)
	})
}

// sortByLoad looks at each load once, because they move on meanwhile. Our own calls in flight count
// on top: what a worker says is up to a heartbeat old.
func sortByLoad(live []*registeredWorker) []*registeredWorker {
	type loaded struct {
		*registeredWorker
		load int64
	}
	list := make([]loaded, len(live))
	for i, w := range live {
		list[i] = loaded{w, w.load.Load() + w.calls.Load()}
	}
	slices.SortStableFunc(list, func(a, b loaded) int { return cmp.Compare(a.load, b.load) })
	for i, l := range list {
		live[i] = l.registeredWorker
	}
	return live
}
