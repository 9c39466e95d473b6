package cluster

import (
	"context"
	"errors"
	"iter"

	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// Await waits until a task has ended, even if its owner changes meanwhile.
func (r *Router) Await(ctx context.Context, task string) (status flow.TaskStatus, err error) {
	err = r.awaitOwner(ctx, &engine.Wait{Task: task}, func(ctx context.Context, local engine.Engine) error {
		status, err = local.Await(ctx, task)
		return err
	}, func(told flow.TaskStatus) bool {
		status = told
		return told.Ended()
	})
	return status, err
}

// Appears waits until a task exists, even if its owner changes meanwhile.
func (r *Router) Appears(ctx context.Context, task string) error {
	return r.awaitOwner(ctx, &engine.Wait{Task: task, Appears: true}, func(ctx context.Context, local engine.Engine) error {
		return local.Appears(ctx, task)
	}, func(flow.TaskStatus) bool { return true })
}

// awaitOwner asks a task's owner until it answers. While the owner is unreachable, it reads the
// task from the store; done then reports whether the status is the answer.
func (r *Router) awaitOwner(ctx context.Context, q *engine.Wait,
	here func(context.Context, engine.Engine) error, done func(flow.TaskStatus) bool) error {
	p, err := r.awaitStart(ctx)
	if err != nil {
		return err
	}
	for wait := (retryBackoff{}); ; {
		seen := p.views.Current().Generation
		err := r.waitOnce(ctx, p, q, here, done)
		if !isRetryable(err) || ctx.Err() != nil {
			return err
		}
		if row, err := r.cfg.Journals.Task(ctx, q.Task); err == nil && done(flow.TaskStatus(row.Status)) {
			return nil
		}
		if !r.waitForView(ctx, p, seen, &wait) {
			return r.interruptedError(ctx)
		}
	}
}

// interruptedError returns the error for an interrupted wait.
func (r *Router) interruptedError(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return errLeaving
}

// waitOnce asks the current owner while it stays the owner.
func (r *Router) waitOnce(ctx context.Context, p *localMember, q *engine.Wait,
	here func(context.Context, engine.Engine) error, done func(flow.TaskStatus) bool) error {
	to, isHere, err := p.findOwner(q.Task)
	if err != nil {
		return err
	}
	ctx, stop := r.whileOwned(ctx, q.Task, to.Incarnation)
	defer stop()
	if isHere {
		return here(ctx, p.local)
	}
	m, err := askMember[*engine.Waited](ctx, r, to, q)
	if err == nil {
		done(m.Status)
	}
	return err
}

// Watch returns the rows of a task's journal after a row, as they are written, even if the owner
// changes.
func (r *Router) Watch(ctx context.Context, task string, after int64) iter.Seq2[engine.Row, error] {
	return func(yield func(engine.Row, error) bool) {
		p, err := r.awaitStart(ctx)
		if err != nil {
			yield(engine.Row{}, err)
			return
		}
		w := &journalWatch{r: r, p: p, task: task, after: after, yield: yield}
		for wait := (retryBackoff{}); ; {
			seen := p.views.Current().Generation
			before := w.after
			if w.fromOwner(ctx) || w.fromJournal(ctx) {
				return
			}
			if w.after > before {
				wait = retryBackoff{}
			}
			if !r.waitForView(ctx, p, seen, &wait) {
				if ctx.Err() == nil {
					w.yieldRow(engine.Row{}, errLeaving)
				}
				return
			}
		}
	}
}

// journalWatch is one read of a journal.
type journalWatch struct {
	r     *Router
	p     *localMember
	task  string
	after int64
	yield func(engine.Row, error) bool
}

// fromOwner reads the rows that the owner sends. It returns true if the watch is over.
func (w *journalWatch) fromOwner(ctx context.Context) (over bool) {
	to, isHere, err := w.p.findOwner(w.task)
	if err != nil {
		return false
	}
	owned, stop := w.r.whileOwned(ctx, w.task, to.Incarnation)
	defer stop()
	rows := w.p.local.Watch
	if !isHere {
		rows = func(ctx context.Context, task string, after int64) iter.Seq2[engine.Row, error] {
			return w.r.cfg.Peers.Watch(ctx, to, engine.Follow{Task: task, After: after})
		}
	}
	for row, err := range rows(owned, w.task, w.after) {
		if isRetryable(err) || !isHere && isRetryable(ofAnother(err)) {
			return ctx.Err() != nil
		}
		if !w.yieldRow(row, err) {
			return true
		}
	}
	// after the rows of another member end, the journal shows whether the task has ended
	return ctx.Err() != nil || isHere && owned.Err() == nil
}

// yieldRow passes on a row. It returns false if that was the last one.
func (w *journalWatch) yieldRow(row engine.Row, err error) bool {
	if err != nil {
		w.yield(engine.Row{}, err)
		return false
	}
	w.after = row.Seq
	return w.yield(row, nil)
}

// watched bounds one read of a journal.
var watched = persistence.Part{Rows: 200, Bytes: 256 << 10}

// fromJournal reads the stored rows while the owner is unreachable. It returns true if the watch is
// over.
func (w *journalWatch) fromJournal(ctx context.Context) (over bool) {
	for {
		row, err := w.r.cfg.Journals.Task(ctx, w.task)
		if errors.Is(err, persistence.ErrNotFound) {
			w.yieldRow(engine.Row{}, flow.Errorf(flow.NotFound, "there is no task %s", w.task))
			return true
		}
		if err != nil {
			return ctx.Err() != nil // the owner may be reachable again when the store is
		}
		rows, err := w.r.cfg.Journals.Rows(ctx, w.task, w.after, watched)
		if err != nil {
			return ctx.Err() != nil
		}
		for _, row := range rows {
			if !w.yieldRow(engine.Row(row), nil) {
				return true
			}
		}
		if len(rows) == 0 {
			return flow.TaskStatus(row.Status).Ended()
		}
	}
}

// whileOwned returns a context that also ends when the owner of a task changes.
func (r *Router) whileOwned(ctx context.Context, task, by string) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	g := &ownerGuard{r: r, task: task, by: by, cancel: cancel}
	r.mu.Lock()
	r.guards[g] = struct{}{}
	r.mu.Unlock()
	g.checkOwner() // followViews checks later views
	return ctx, g.removeGuard
}

// ownerGuard cancels a request when the owner of its task changes.
type ownerGuard struct {
	r        *Router
	task, by string
	cancel   context.CancelFunc
}

func (g *ownerGuard) checkOwner() {
	to, _, err := g.r.place.Load().findOwner(g.task)
	if err != nil || to.Incarnation != g.by || g.r.ctx.Err() != nil {
		g.cancel()
	}
}

func (g *ownerGuard) removeGuard() {
	g.r.mu.Lock()
	delete(g.r.guards, g)
	g.r.mu.Unlock()
	g.cancel()
}
