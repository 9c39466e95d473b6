// Package schedule begins tasks by the clock: it looks after the schedules of the shards that its member owns.
//
// What becomes of a slot is decided by package flow/schedule, and written before anything is done about it: whoever wrote the next
// revision of the schedule decided. Then tasks begin with a key made of schedule and slot, and that they have is written, too. So whoever comes
// next, after a crash anywhere in between, begins the same slots again and is answered with the same tasks, and nobody begins another one.
//
// There is one timer, for the schedule that has to be looked at next. Changes made on this member and on others are told (Look); since word
// may get lost, and shards come without any, the store is asked every few seconds at least. Time is the store's.
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
	lookEvery = 5 * time.Second // at least
	atOnce    = 10_000          // schedules that are read
	lanes     = 16              // that are seen to side by side, beside those that are held up
	// patience is how long one may take before it counts as held up, and another one has its lane; so many are held up at once.
	patience = 250 * time.Millisecond
	mostHeld = 1000
	// tryAgain is the first pause after something could not be done for the moment, and before it is looked again whether a task has ended that a slot
	// waits for; each further one is twice as long, up to lookEvery.
	tryAgain = 500 * time.Millisecond
	// callTime bounds what is asked of the store or a member for one schedule.
	callTime = 30 * time.Second
)

// Runner looks after schedules. All methods are safe for concurrent use.
type Runner struct {
	opts Options
	host *host.Host
	work host.Group
	ctx  context.Context
	end  context.CancelFunc

	unread bool // the last look has failed

	mu      sync.Mutex
	asked   bool // somebody wants it to look
	running bool
	closed  bool
	disarm  func() bool
	at      int64                  // when the timer rings
	pauses  map[string]pause       // schedules that are left alone for a while, by id
	busy    map[string]bool        // those that are seen to, or about to be
	line    []persistence.Schedule // of them those that nobody is at
	active  int                    // lanes
	held    int                    // schedules that have none any more, and are still seen to
}

// pause is until when a schedule is left alone.
type pause struct {
	until  int64
	last   time.Duration
	failed bool // rather than that it waits for the end of a task
}

// Start begins to look after schedules.
func Start(o Options) *Runner {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	r := &Runner{opts: o, pauses: map[string]pause{}, busy: map[string]bool{}}
	r.host = &r.opts.Host
	r.work.Host = r.host
	r.ctx, r.end = context.WithCancel(context.Background())
	r.Look()
	return r
}

// Stop ends it, and waits for what is under way.
func (r *Runner) Stop() {
	r.mu.Lock()
	r.closed = true
	if r.disarm != nil {
		r.disarm()
	}
	r.mu.Unlock()
	r.end()
	r.work.Wait()
}

// Look says that schedules, or the shards of the member, have changed. It does not block.
func (r *Runner) Look() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked = true
	if r.running || r.closed {
		return
	}
	r.running = true
	r.work.Run(r.run)
}

// run looks as long as somebody wants it to, and sets the timer.
func (r *Runner) run() {
	for r.take() {
		r.arm(r.round())
	}
}

func (r *Runner) take() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.asked || r.closed {
		r.running = false
		return false
	}
	r.asked = false
	return true
}

func (r *Runner) arm(after time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := r.now(); !r.closed {
		r.set(now, now+after.Milliseconds())
	}
}

// set has the timer ring at a time.
func (r *Runner) set(now, at int64) {
	if r.disarm != nil {
		r.disarm()
	}
	r.at, r.disarm = at, r.host.AfterFunc(time.Duration(max(at-now, 0))*time.Millisecond, r.Look)
}

func (r *Runner) now() int64 { return r.opts.Engine.Now().UnixMilli() }

// round has all seen to that is due, and tells when the next one is.
func (r *Runner) round() time.Duration {
	now := r.now()
	soon, err := r.read(now + lookEvery.Milliseconds())
	if err != nil {
		return tryAgain
	}
	var due []persistence.Schedule
	next := now + lookEvery.Milliseconds()
	for _, s := range soon {
		switch at := max(s.Due, r.pausedUntil(s.ID)); {
		case r.isBusy(s.ID): // what comes next is looked for when that is done
		case at > now:
			next = min(next, at)
		default:
			due = append(due, s)
		}
	}
	r.seeToAll(due)
	return time.Duration(next-now) * time.Millisecond
}

// read lists what has to be looked at soon.
func (r *Runner) read(by int64) ([]persistence.Schedule, error) {
	shards := r.opts.Shards()
	if shards != nil && len(shards) == 0 {
		return nil, nil
	}
	ctx, cancel := r.host.Within(r.ctx, callTime)
	defer cancel()
	soon, err := r.opts.Store.DueSchedules(ctx, shards, by, atOnce)
	r.tell(err)
	if err != nil {
		return nil, err
	}
	r.forgetPauses(soon)
	return soon, nil
}

// tell logs when schedules cannot be read any longer, and when they can again. Only run calls it, after one look and the next.
func (r *Runner) tell(err error) {
	switch {
	case r.ctx.Err() != nil:
		return
	case err != nil && !r.unread:
		r.opts.Logger.Warn("schedules could not be read: trying on", "error", err)
	case err == nil && r.unread:
		r.opts.Logger.Info("schedules can be read again")
	}
	r.unread = err != nil
}

// seeToAll has some schedules seen to side by side. Nobody waits for them here: one that is held up, by a member that does not answer, holds up no other.
func (r *Runner) seeToAll(due []persistence.Schedule) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range due {
		r.busy[s.ID] = true
		r.line = append(r.line, s)
	}
	for ; r.active < lanes && !r.closed && len(due) > 0; due = due[1:] {
		r.active++
		r.work.Run(r.lane)
	}
}

// lane sees to one after the other, until one is held up: the next ones have a lane of their own then.
func (r *Runner) lane() {
	for s, ok := r.next(); ok; s, ok = r.next() {
		inTime := r.timed(func() { r.seeTo(&s) })
		r.seen(&s)
		if !inTime {
			return
		}
	}
}

// timed says whether something was done before somebody else was given its lane.
func (r *Runner) timed(do func()) bool {
	done, late := false, false
	disarm := r.host.AfterFunc(patience, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if late = !done && !r.closed && r.held < mostHeld; late {
			r.held++
			r.work.Run(r.lane)
		}
	})
	do()
	disarm()
	r.mu.Lock()
	defer r.mu.Unlock()
	if done = true; late {
		r.held--
	}
	return !late
}

// seen has a schedule looked at again in time. A round that is under way may have passed over it.
func (r *Runner) seen(s *persistence.Schedule) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.busy, s.ID)
	at, now := max(s.Due, r.pauses[s.ID].until), r.now()
	switch {
	case at == 0 || at >= now+lookEvery.Milliseconds() || r.closed:
	case r.running:
		r.asked = true
	case at < r.at:
		r.set(now, at)
	}
}

func (r *Runner) next() (s persistence.Schedule, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.line) == 0 || r.ctx.Err() != nil {
		r.active--
		return s, false
	}
	s, r.line = r.line[0], r.line[1:]
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

// leaveAlone has nobody look at a schedule for a while, because it waits, or because something failed. It says whether that is new.
func (r *Runner) leaveAlone(id string, failed bool) (news bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.pauses[id]
	last := min(max(tryAgain, 2*before.last), lookEvery)
	r.pauses[id] = pause{r.now() + last.Milliseconds(), last, failed}
	return failed && !before.failed
}

func (r *Runner) resume(id string) {
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
	kept := map[string]pause{}
	for _, s := range soon {
		if p, ok := r.pauses[s.ID]; ok {
			kept[s.ID] = p
		}
	}
	r.pauses = kept
}
