// Package schedules starts tasks by the clock: it handles the schedules of the shards that its
// member owns.
//
// Package flow/schedule decides what happens with a slot, and the decision is stored before it is
// carried out: the member that writes the next revision of the schedule has decided. Tasks start
// with a key made of schedule and slot, and their start is stored as well. So after a crash at any
// point, the next member starts the same slots again, gets the same tasks, and no slot has two
// tasks.
//
// There is one timer, for the schedule that is due next. Changes on this member and on others call
// Look. Since notices may be lost, and shards come without any, the store is read at least every
// few seconds. Time is the store's.
package schedules

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/internal/host"
	"github.com/troupe-engine/troupe/persistence"
)

// Store is the part of a store that a runner needs.
type Store interface {
	persistence.Schedules
	FindVersion(ctx context.Context, flowID string, number int) (*persistence.Version, error)
	ListTasks(ctx context.Context, f persistence.TaskFilter) ([]persistence.TaskRow, error)
}

// Options configure a Runner.
type Options struct {
	Store  Store
	Engine engine.Engine
	Shards func() persistence.ShardSet // returns the shards that the member owns; nil if all
	Host   host.Host
	Logger *slog.Logger // may be nil
}

const (
	lookInterval = 5 * time.Second // longest pause between reads
	maxRead      = 10_000          // most schedules per read
	maxLanes     = 16              // schedules processed in parallel; stalled ones do not count
	// laneTimeout is the time after which a schedule counts as stalled and its lane goes to another
	// schedule. maxStalled is the maximum number of stalled schedules.
	laneTimeout = 250 * time.Millisecond
	maxStalled  = 1000
	// firstRetryPause is the first pause after a temporary failure. It is also the first pause
	// between checks whether the task that a slot waits for has ended. The pause doubles each time,
	// up to lookInterval.
	firstRetryPause = 500 * time.Millisecond
	// callTimeout is the time limit for the calls to the store or a member for one schedule.
	callTimeout = 30 * time.Second
)

// Runner handles schedules. All methods are safe for concurrent use.
type Runner struct {
	opts   Options
	host   *host.Host
	work   host.Group
	ctx    context.Context
	cancel context.CancelFunc

	readFailed bool // the last read has failed

	mu            sync.Mutex
	lookRequested bool // a read was requested
	running       bool
	closed        bool
	stopTimer     func() bool
	timerAt       int64                    // time when the timer fires, in Unix milliseconds
	pauses        map[string]schedulePause // pauses of schedules, by id
	busy          map[string]bool          // schedules being processed or queued
	queue         []persistence.Schedule   // queued schedules
	activeLanes   int                      // lanes that are running
	stalledLanes  int                      // stalled schedules, which no longer use a lane
}

// schedulePause is a pause in which a schedule is not processed.
type schedulePause struct {
	until  int64
	last   time.Duration
	failed bool // the schedule failed; otherwise it waits for the end of a task
}

// Start starts a runner. The caller must call Stop.
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

// Stop stops the runner, and waits until its work has ended.
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

// Look requests a read, because schedules or the shards of the member have changed. It does not
// block.
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

// runRounds reads and processes schedules until no read is requested. After each round it sets the
// timer.
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

// setTimer sets the timer.
func (r *Runner) setTimer(now, at int64) {
	if r.stopTimer != nil {
		r.stopTimer()
	}
	r.timerAt, r.stopTimer = at, r.host.AfterFunc(time.Duration(max(at-now, 0))*time.Millisecond, r.Look)
}

func (r *Runner) nowMillis() int64 { return r.opts.Engine.Now().UnixMilli() }

// runRound processes the due schedules and returns the time until the next schedule is due.
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
		case r.isBusy(s.ID): // finishSchedule checks its next time
		case at > now:
			next = min(next, at)
		default:
			due = append(due, s)
		}
	}
	r.enqueueAll(due)
	return time.Duration(next-now) * time.Millisecond
}

// readDue reads the schedules that are due soon.
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

// logReadError logs when schedules cannot be read any more, and when they can be read again.
// runRound is the only caller, so calls never overlap.
func (r *Runner) logReadError(err error) {
	switch {
	case r.ctx.Err() != nil:
		return
	case err != nil && !r.readFailed:
		r.opts.Logger.Warn("reading schedules failed, retrying", "error", err)
	case err == nil && r.readFailed:
		r.opts.Logger.Info("reading schedules works again")
	}
	r.readFailed = err != nil
}

// enqueueAll starts to process schedules in parallel. It does not wait for them, so a schedule
// whose member does not respond delays no other schedule.
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

// runLane processes queued schedules one after another. If one stalls, the lane ends after it,
// because another lane has taken its place.
func (r *Runner) runLane() {
	for s, ok := r.nextSchedule(); ok; s, ok = r.nextSchedule() {
		inTime := r.runTimed(func() { r.processSchedule(&s) })
		r.finishSchedule(&s)
		if !inTime {
			return
		}
	}
}

// runTimed runs do. It reports whether do ended before its lane was given to others.
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

// finishSchedule makes sure that a schedule is read again in time. This is needed because a
// concurrent round may have skipped the schedule.
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

// pauseSchedule pauses a schedule that waits or has failed. It reports whether the schedule failed
// and the previous pause was not for a failure.
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

// forgetPauses drops the pauses of schedules that are not due soon, or that belong to another
// member.
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
