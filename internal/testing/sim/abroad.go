package sim

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/troupe-engine/troupe/actors"
	"github.com/troupe-engine/troupe/carriers/external"
	"github.com/troupe-engine/troupe/flow"
)

// externalSystem is a simulated external system in which members start work and query its state. It
// never fails and is shared by all members. Work is identified by the id of its job. A member that
// starts the same work twice must have been informed that it may exist already.
type externalSystem struct {
	*simRun
	works map[string]*externalWork
}

// externalWork is a piece of work in the external system.
type externalWork struct {
	by     string        // name of the member that started the work
	report flow.Report   // result
	until  time.Duration // time when it ends
	never  bool          // whether the work never ends by itself
	off    bool          // whether the work was canceled
}

// foreign is the service of all trackers in the simulation.
const foreign = "abroad"

// startersFor returns the starters of all services for a member.
func (b *externalSystem) startersFor(h *host) external.Starters {
	all := external.Starters{}
	for _, service := range slices.Concat([]string{hang}, services, dagServices) {
		all[service] = workStarter{b, h}
	}
	return all
}

func (b *externalSystem) trackersFor(h *host) map[string]actors.Tracker {
	return map[string]actors.Tracker{foreign: workTracker{b, h}}
}

// workStarter starts external work for a member.
type workStarter struct {
	*externalSystem
	h *host
}

// Start simulates delays before and after the call. Some results are known without a start.
func (s workStarter) Start(_ context.Context, job flow.Job, lost bool) flow.Report {
	s.check.checkCarried(s.h.name, job.Task, job.Address)
	s.check.checkOnce(s.h.name, job)
	s.h.carrying[job.ID()]++
	defer s.h.finishJob(job.ID())
	s.delayCall()
	r := serveJob(job)
	switch {
	case r.Error == panicText:
		panic(panicOfCarrier)
	case r.Fatal:
		return r
	}
	n := 1
	if job.Exec.Service == twins {
		n = 2
		r.Output = job.Input
	}
	begun := flow.Report{}
	for i := range n {
		id := fmt.Sprint(job.ID(), "/", i)
		s.beginWork(s.h.name, id, job.Exec.Service == hang, r, lost && !s.options.Unaware)
		// some external work is still pending in its system
		begun.Deferred = append(begun.Deferred, flow.External{Service: foreign, ID: id,
			Data: encodeValue(object{"n": i}), Pending: job.Unit%2 == 1})
	}
	s.delayCall()
	return begun
}

func (s workStarter) delayCall() {
	s.w.yieldOnce()
	if s.w.drawChance(300) {
		s.w.sleepFor(s.w.upTo(80 * time.Millisecond))
	}
	if s.w.drawFault(s.w.faults.stalls) {
		s.w.sleepFor(s.w.upTo(6 * time.Second))
	}
}

// beginWork starts a piece of work unless it is running already. A fenced member may start it
// twice, because it could not be informed.
func (b *externalSystem) beginWork(who, id string, never bool, r flow.Report, lost bool) {
	if b.works[id] != nil {
		if !lost && !b.store.isGone(who) {
			b.w.failRun("%s begins %s abroad once more, and was not told that it may have begun", who, id)
		}
		b.w.addTrace("%s finds %s abroad", who, id)
		b.counts.Found++
		return
	}
	b.w.addTrace("%s begins %s abroad", who, id)
	b.counts.Abroad++
	b.works[id] = &externalWork{by: who, report: r, never: never,
		until: b.w.now + b.w.upTo(pickOne(b.w.rng, 0, 100*time.Millisecond, 8*time.Second))}
}

// workTracker queries external work for a member.
type workTracker struct {
	*externalSystem
	h *host
}

var errAbroad = errors.New("sim: the other system is not reached")

func (t workTracker) Poll(ctx context.Context, x flow.External) (flow.ExternalStatus, error) {
	one, err := t.findWork(ctx, x)
	switch {
	case err != nil:
		return flow.ExternalStatus{Again: pickOne(t.w.rng, 0, 3*time.Second)}, err
	case one.by != t.h.name:
		t.counts.Followed++
	}
	switch {
	case one.never || t.w.now < one.until:
		status := flow.ExternalStatus{Again: pickOne(t.w.rng, 0, 50*time.Millisecond,
			3*time.Second), Memo: pickOne(t.w.rng, nil, encodeValue(x.Polls))}
		if x.Polls > 0 {
			status.BeganAt = x.StartedAt + 1
		}
		return status, nil
	}
	return flow.ExternalStatus{Ended: true, Output: one.report.Output, Error: one.report.Error}, nil
}

// Cancel is called for work whose result is no longer needed.
func (t workTracker) Cancel(ctx context.Context, x flow.External) error {
	if _, a, err := flow.ParseJobID(x.Job); err != nil || t.check.isAwaited(x.Task, a) {
		t.w.failRun("%s calls off %s, which is awaited: %v", t.h.name, x.ID, err)
	}
	one, err := t.findWork(ctx, x)
	if err != nil {
		return err
	}
	one.off = true
	return nil
}

// findWork finds a piece of work, unless the call fails.
func (t workTracker) findWork(ctx context.Context, x flow.External) (*externalWork, error) {
	t.w.yieldOnce()
	if t.w.drawChance(300) {
		t.w.sleepFor(t.w.upTo(200 * time.Millisecond))
	}
	one := t.works[x.ID]
	switch {
	case one == nil:
		t.w.failRun("%s looks after %s, which nobody has begun", t.h.name, x.ID)
		return nil, errAbroad
	case t.w.drawFault(t.w.faults.stalls):
		t.w.sleepFor(t.w.upTo(6 * time.Second))
	case t.w.drawFault(t.w.faults.sloppy / 10):
		panic("of a tracker")
	}
	if t.h.dead || ctx.Err() != nil || t.w.drawFault(t.w.faults.lost) {
		return nil, errAbroad
	}
	return one, nil
}

// isAwaited reports whether an attempt is still waiting according to the stored events.
func (c *commitChecker) isAwaited(task string, at flow.Address) bool {
	t := c.tasks[task]
	return t != nil && !t.deleted && slices.ContainsFunc(flow.Waiting(t.state),
		func(w flow.Wait) bool { return w.For == flow.WaitsExternal && w.Address == at })
}

// checkExternals checks that exactly the attempts that wait for external work have rows.
func (c *commitChecker) checkExternals(t *taskShadow, task string) {
	rows, want := map[string]bool{}, map[string]bool{}
	for _, row := range c.store.externals.Of(task) {
		if !row.Recalled {
			rows[row.Job] = true
		}
	}
	if len(rows) == 0 && !t.waitedOutside {
		return
	}
	for _, wait := range flow.Waiting(t.state) {
		if wait.For == flow.WaitsExternal {
			want[flow.JobID(task, wait.Address)] = true
		}
	}
	if !maps.Equal(rows, want) {
		c.w.failRun("task %s: there are rows for the work of %v, and %v wait for such", task,
			slices.Sorted(maps.Keys(rows)), slices.Sorted(maps.Keys(want)))
	}
}
