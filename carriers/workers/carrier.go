package workers

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"slices"
	"time"

	"github.com/troupe-engine/troupe/carriers"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/logids"
)

// Carry calls the workers that offer the job's service and have the required labels, one after
// another, until one answers.
func (r *Registry) Carry(ctx context.Context, job flow.Job) flow.Report {
	c := newCall(&job)
	for learned := false; ; {
		// read before liveWorkers, which includes workers that are heard in between
		list := r.unheardWorkers(job.Exec)
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
		case begun || len(list) == 0 || !carriers.Pause(ctx, retryPauseMS):
			return failureReport(ctx, carriers.NoWorker(job.Exec))
		}
	}
}

// retryPauseMS is the pause before unreachable workers are tried again.
const retryPauseMS = 50

// callWorkers calls workers until one answers. begun reports whether a worker was reached but did
// not answer, because it may have started the job.
func (r *Registry) callWorkers(ctx context.Context, c *workerCall, job *flow.Job,
	list []*registeredWorker) (rep flow.Report, begun, ok bool) {
	if n := job.Exec.MaxAttempts; n > 0 {
		list = list[:min(n, len(list))]
	}
	for i, w := range list {
		if i > 0 && !carriers.Pause(ctx, job.Exec.TryDelayMS) {
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

// logNoAnswer logs why a worker gave no answer, once until the worker answers again. The job's
// error does not contain the reason.
func (r *Registry) logNoAnswer(ctx context.Context, w *registeredWorker, c *workerCall, err error) {
	level := slog.LevelDebug
	if ctx.Err() == nil && w.silent.CompareAndSwap(false, true) { // otherwise the job was canceled
		level = slog.LevelWarn
	}
	r.opts.Logger.Log(logids.Job(ctx, c.job), level, "worker did not respond", "job", c.job.ID(),
		"worker", w.ID, "url", w.URL, "error", err)
}

func neverReached(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// failureReport returns the report when no worker has answered.
func failureReport(ctx context.Context, text string) flow.Report {
	if err := ctx.Err(); err != nil {
		return flow.Report{Error: err.Error(), TimedOut: errors.Is(err, context.DeadlineExceeded)}
	}
	return flow.Report{Error: text}
}

// liveWorkers returns the live workers for a job, in the order in which they are tried.
func (r *Registry) liveWorkers(e *flow.Exec) []*registeredWorker {
	since := r.opts.Now() - r.opts.OfflineTTL.Milliseconds()
	live := r.workersFor(e, func(w *registeredWorker) bool { return w.heartbeatAt.Load() >= since })
	if e.ByLoad {
		return sortByLoad(live)
	}
	return live
}

// unheardWorkers returns matching workers that were known before the start and may be alive. They
// may seem silent, because no member received their heartbeats. The list is empty after a while,
// because live workers send several heartbeats within OfflineTTL.
func (r *Registry) unheardWorkers(e *flow.Exec) []*registeredWorker {
	if time.Since(r.opened) > r.opts.OfflineTTL/2 {
		return nil
	}
	return r.workersFor(e, func(w *registeredWorker) bool { return !w.heard.Load() })
}

// Awaited reports whether a matching worker was attached before this registry was opened, and has
// not been heard since.
func (r *Registry) Awaited(e *flow.Exec) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return slices.ContainsFunc(r.ordered, func(w *registeredWorker) bool {
		return w.Type == attachedType && !w.heard.Load() && slices.Contains(w.Services, e.Service) && w.hasAll(e.Labels)
	})
}

// Listed reports whether a matching worker is attached to any member and was heard recently.
func (r *Registry) Listed(e *flow.Exec) bool {
	since := r.opts.Now() - r.opts.OfflineTTL.Milliseconds()
	r.mu.RLock()
	defer r.mu.RUnlock()
	return slices.ContainsFunc(r.ordered, func(w *registeredWorker) bool {
		return w.Type == attachedType && w.heartbeatAt.Load() >= since && slices.Contains(w.Services, e.Service) && w.hasAll(e.Labels)
	})
}

// Pushed returns the services of registered push workers. It includes silent workers, because they
// may still have jobs.
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

// attachedType is the type of attached workers.
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

// Outranked reports whether a worker is on standby while another live worker of any type offers a
// service.
func (r *Registry) Outranked(id, service string) bool {
	if len(r.opts.Standby) == 0 {
		return false
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.isOutranked(id, service)
}

// isOutranked is like Outranked. The caller holds the lock.
func (r *Registry) isOutranked(id, service string) bool {
	if !slices.Contains(r.opts.Standby, id) {
		return false
	}
	since := r.opts.Now() - r.opts.OfflineTTL.Milliseconds()
	return slices.ContainsFunc(r.ordered, func(w *registeredWorker) bool {
		return w.heartbeatAt.Load() >= since && slices.Contains(w.Services, service) && !slices.Contains(r.opts.Standby, w.ID)
	})
}

// sortByLoad sorts workers by load, including this member's calls in flight, because the reported
// load may be old. It reads each load once, because loads change meanwhile.
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
