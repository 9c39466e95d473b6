// Package schedule begins tasks by the clock: it looks after the schedules of the shards that its
// member owns.
//
// What becomes of a slot is decided by package flow/schedule, and written before anything is done
// about it: whoever wrote the next revision of the schedule decided. Then tasks begin with a key
// made of schedule and slot, and that they have is written, too. So whoever comes next, after a
// crash anywhere in between, begins the same slots again and is answered with the same tasks, and
// nobody begins another one.
//
// There is one timer, for the schedule that has to be looked at next. Changes made on this member
// and on others are told (Look); since word may get lost, and shards come without any, the store is
// asked every few seconds at least. Time is the store's.
package schedule

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/internal/host"
	"github.com/troupe-engine/troupe/persistence"
)

// Store is what a runner asks of a store.
type Store interface {
	persistence.Schedules
	FindVersion(ctx context.Context, flowID string, number int) (*persistence.Version, error)
	ListTasks(ctx context.Context, f persistence.TaskFilter) ([]persistence.TaskRow, error)
}

// Options say what a runner works with.
type Options struct {
	Store  Store
	Engine engine.Engine
	Shards func() persistence.ShardSet // that the member owns; nil = all
	Host   host.Host
	Logger *slog.Logger // nil = nobody hears
}

const (
	lookInterval = 5 * time.Second // at least
	maxRead      = 10_000          // schedules that are read
	maxLanes     = 16              // that are seen to side by side, beside those that are held up
	// laneTimeout is how long one may take before it counts as held up, and another one has its
	// lane; so many are held up at once.
	laneTimeout = 250 * time.Millisecond
	maxStalled  = 1000
	// firstRetryPause is the first pause after something could not be done for the moment, and
	// before it is looked again whether a task has ended that a slot waits for; each further one is
	// twice as long, up to lookInterval.
	firstRetryPause = 500 * time.Millisecond
	// callTimeout bounds what is asked of the store or a member for one schedule.
	callTimeout = 30 * time.Second
)

// Runner looks after schedules. All methods are safe for concurrent use.
type Runner struct {
	opts   Options
	host   *host.Host
	work   host.Group
	ctx    context.Context
	cancel context.CancelFunc

	readFailed bool // the last look has failed

	mu            sync.Mutex
	lookRequested bool // somebody wants it to look
	running       bool
	closed        bool
	stopTimer     func() bool
	timerAt       int64                    // when the timer rings
	pauses        map[string]schedulePause // schedules that are left alone for a while, by id
	busy          map[string]bool          // those that are seen to, or about to be
	queue         []persistence.Schedule   // of them those that nobody is at
	activeLanes   int                      // lanes
	stalledLanes  int                      // schedules that have none any more, and are still seen to
}

// schedulePause is until when a schedule is left alone.
type schedulePause struct {
	until  int64
	last   time.Duration
	failed bool // rather than that it waits for the end of a task
}

// Start begins to look after schedules.
func Start(o Options) *Runner {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	r := &Runner{opts: o, pauses: map[string]schedulePause{}, busy: map[string]bool{}}
	r.host = &r.opts.Host
	r.work.Host = r.host
	r.ctx, r.cancel = context.WithCancel(context.Background())
	r.Look()
	return r
}

// Stop ends it, and waits for what is under way.
func (r *Runner) Stop() {
	r.mu.Lock()
	r.closed = true
	if r.stopTimer != nil {
		r.stopTimer()
	}
	r.mu.Unlock()
	r.cancel()
	r.work.Wait()
}

// Look says that schedules, or the shards of the member, have changed. It does not block.
func (r *Runner) Look() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lookRequested = true
	if r.running || r.closed {
		return
	}
	r.running = true
	r.work.Run(r.runRounds)
}

// runRounds looks as long as somebody wants it to, and sets the timer.
func (r *Runner) runRounds() {
	for r.takeRequest() {
		r.armTimer(r.runRound())
	}
}

func (r *Runner) takeRequest() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.lookRequested || r.closed {
		r.running = false
		return false
	}
	r.lookRequested = false
	return true
}

func (r *Runner) armTimer(after time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := r.nowMillis(); !r.closed {
		r.setTimer(now, now+after.Milliseconds())
	}
}

// setTimer has the timer ring at a time.
func (r *Runner) setTimer(now, at int64) {
	if r.stopTimer != nil {
		r.stopTimer()
	}
	r.timerAt, r.stopTimer = at, r.host.AfterFunc(time.Duration(max(at-now, 0))*time.Millisecond, r.Look)
}

func (r *Runner) nowMillis() int64 { return r.opts.Engine.Now().UnixMilli() }

// runRound has all seen to that is due, and tells when the next one is.
func (r *Runner) runRound() time.Duration {
	now := r.nowMillis()
	soon, err := r.readDue(now + lookInterval.Milliseconds())
	if err != nil {
		return firstRetryPause
	}
	var due []persistence.Schedule
	next := now + lookInterval.Milliseconds()
	for _, s := range soon {
		switch at := max(s.Due, r.pausedUntil(s.ID)); {
		case r.isBusy(s.ID): // what comes next is looked for when that is done
		case at > now:
			next = min(next, at)
		default:
			due = append(due, s)
		}
	}
	r.enqueueAll(due)
	return time.Duration(next-now) * time.Millisecond
}

// readDue lists what has to be looked at soon.
func (r *Runner) readDue(by int64) ([]persistence.Schedule, error) {
	shards := r.opts.Shards()
	if shards != nil && len(shards) == 0 {
		return nil, nil
	}
	ctx, cancel := r.host.Within(r.ctx, callTimeout)
	defer cancel()
	soon, err := r.opts.Store.DueSchedules(ctx, shards, by, maxRead)
	r.logReadError(err)
	if err != nil {
		return nil, err
	}
	r.forgetPauses(soon)
	return soon, nil
}

// logReadError logs when schedules cannot be read any longer, and when they can again. Only run
// calls it, after one look and the next.
func (r *Runner) logReadError(err error) {
	switch {
	case r.ctx.Err() != nil:
		return
	case err != nil && !r.readFailed:
		r.opts.Logger.Warn("schedules could not be read: trying on", "error", err)
	case err == nil && r.readFailed:
		r.opts.Logger.Info("schedules can be read again")
	}
	r.readFailed = err != nil
}

// enqueueAll has some schedules seen to side by side. Nobody waits for them here: one that is held
// up, by a member that does not answer, holds up no other.
func (r *Runner) enqueueAll(due []persistence.Schedule) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range due {
		r.busy[s.ID] = true
		r.queue = append(r.queue, s)
	}
	for ; r.activeLanes < maxLanes && !r.closed && len(due) > 0; due = due[1:] {
		r.activeLanes++
		r.work.Run(r.runLane)
	}
}

// runLane sees to one after the other, until one is held up: the next ones have a lane of their own
// then.
func (r *Runner) runLane() {
	for s, ok := r.nextSchedule(); ok; s, ok = r.nextSchedule() {
		inTime := r.runTimed(func() { r.processSchedule(&s) })
		r.finishSchedule(&s)
		if !inTime {
			return
		}
	}
}

// runTimed reports whether something was done before somebody else was given its lane.
func (r *Runner) runTimed(do func()) bool {
	done, late := false, false
	disarm := r.host.AfterFunc(laneTimeout, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if late = !done && !r.closed && r.stalledLanes < maxStalled; late {
			r.stalledLanes++
			r.work.Run(r.runLane)
		}
	})
	do()
	disarm()
	r.mu.Lock()
	defer r.mu.Unlock()
	if done = true; late {
		r.stalledLanes--
	}
	return !late
}

// finishSchedule has a schedule looked at again in time. A round that is under way may have passed
// over it.
func (r *Runner) finishSchedule(s *persistence.Schedule) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.busy, s.ID)
	at, now := max(s.Due, r.pauses[s.ID].until), r.nowMillis()
	switch {
	case at == 0 || at >= now+lookInterval.Milliseconds() || r.closed:
	case r.running:
		r.lookRequested = true
	case at < r.timerAt:
		r.setTimer(now, at)
	}
}

func (r *Runner) nextSchedule() (s persistence.Schedule, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.queue) == 0 || r.ctx.Err() != nil {
		r.activeLanes--
		return s, false
	}
	s, r.queue = r.queue[0], r.queue[1:]
	return s, true
}

func (r *Runner) isBusy(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.busy[id]
}

func (r *Runner) pausedUntil(id string) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.pauses[id].until
}

// pauseSchedule has nobody look at a schedule for a while, because it waits, or because something
// failed. It says whether that is new.
func (r *Runner) pauseSchedule(id string, failed bool) (news bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.pauses[id]
	last := min(max(firstRetryPause, 2*before.last), lookInterval)
	r.pauses[id] = schedulePause{r.nowMillis() + last.Milliseconds(), last, failed}
	return failed && !before.failed
}

func (r *Runner) clearPause(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.pauses, id)
}

// forgetPauses forgets those of schedules that are not due any longer, or another member's.
func (r *Runner) forgetPauses(soon []persistence.Schedule) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.pauses) == 0 {
		return
	}
	kept := map[string]schedulePause{}
	for _, s := range soon {
		if p, ok := r.pauses[s.ID]; ok {
			kept[s.ID] = p
		}
	}
	r.pauses = kept
}
