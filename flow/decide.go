package flow

import (
	"cmp"
	"encoding/json"
	"slices"
	"unicode/utf8"

	"github.com/troupe-engine/troupe/flow/expr"
)

// ErrOver answers a claim, a beginning, a heartbeat or a note about an attempt that is no longer in flight.
var ErrOver = &Error{Conflict, "the attempt is over or was never started: nobody waits for it any longer"}

// decider makes one decision: it emits events, evolves the state by them and collects their effects.
type decider struct {
	s        *State
	env      Env
	limits   Limits
	events   []Event
	effects  []Effect
	expected int     // events, at a guess
	effort   int     // of conditions and expressions
	todo     []work  // where something may be able to start
	room     [4]work // for todo: most decisions need no more
	rest     Command // goes on with what this decision has no room for
}

// work is a step whose units may start, or a scope in which a step may.
type work struct {
	sc *Scope
	st *Step // nil = the scope
}

// Decide says what a command makes happen. The state is afterwards what the events make of it; an
// error means that nothing happened. A request that had its effect before has none now.
func Decide(s *State, c Command, env Env) (Decision, error) {
	if err := checkRequest(env.Request); err != nil {
		return Decision{}, err
	}
	if env.Request != "" && s.Answered(env.Request) {
		return Decision{}, nil
	}
	d := &decider{s: s, env: env, limits: env.Limits.OrDefault(), events: env.Room[:0], expected: 2}
	d.todo = d.room[:0]
	if err := d.handle(c); err != nil {
		return Decision{}, err
	}
	more := d.advance()
	if s.CancelAt != 0 && !more {
		d.afterCancel()
		more = d.advance()
	}
	if more && d.rest == nil {
		d.rest = Proceed{}
	}
	return Decision{Events: d.events, Effects: d.effects, Effort: d.effort, More: d.rest}, nil
}

func (d *decider) handle(c Command) error {
	if start, ok := c.(Start); ok {
		return d.start(start)
	}
	if d.s.Status == "" {
		return Errorf(NotFound, "task %s has not been started", d.s.Task)
	}
	switch c := c.(type) {
	case Signal:
		return d.signal(c)
	case Cancel:
		return d.cancel(c)
	case RetryTask:
		return d.retryTask()
	case Append:
		return d.append(c)
	case Pause:
		return d.pause()
	case Resume:
		return d.resume()
	case Claim:
		return d.claim(c)
	case Extend:
		return d.extend(c)
	case GiveBack:
		d.giveBack(c)
	case Note:
		return d.note(c)
	case Report:
		return d.report(c)
	case Reports:
		return d.reports(c)
	case Ring:
		d.ring(Lapse{Alarm: c.Alarm})
	case Lapse:
		d.ring(c)
	case Proceed:
		d.everywhere()
		if c.Waits {
			d.wake()
		}
	case Begin:
		return d.noteBegun(c.Address)
	case Leave:
		d.leave(c)
	case Recover:
		d.recover(c)
	case FailStep:
		d.failStep(c)
	}
	return nil
}

func checkRequest(id string) error {
	if len(id) > MaxName || !utf8.ValidString(id) {
		return Errorf(Invalid, "the request's id must be UTF-8 text of at most %d bytes", MaxName)
	}
	return nil
}

// emit makes an event happen.
func (d *decider) emit(e Event) {
	e.At = d.env.Now
	if len(d.events) == 0 {
		e.Request = d.env.Request
		d.events = slices.Grow(d.events, d.expected)
	}
	d.events = append(d.events, e)
	now := &d.events[len(d.events)-1]
	Evolve(d.s, now)
	d.effects = appendEffects(d.effects, d.s, now)
}

// advance starts what may start, until nothing may or the decision is long enough.
func (d *decider) advance() (more bool) {
	for len(d.todo) > 0 {
		if d.full() {
			return true
		}
		w := d.todo[len(d.todo)-1]
		d.todo = d.todo[:len(d.todo)-1]
		if d.s.Status.Ended() || d.s.held() || w.st == nil && d.s.Paused() || d.s.scopes[w.sc.Path] != w.sc || d.s.Closing != nil && w.sc == d.s.Root {
			continue
		}
		switch {
		case w.st == nil:
			d.next(w.sc)
		case d.s.step(w.st.Address()) == w.st:
			d.fill(w.st)
		}
	}
	return false
}

// maxEffort is what conditions and expressions may take before a decision is cut: others have to wait for it.
const maxEffort = expr.Budget / 3

// full says that the decision is long enough.
func (d *decider) full() bool { return len(d.events) >= d.limits.Events || d.effort >= maxEffort }

// next begins what is next in a scope, unless the task is being canceled: then nothing new begins.
func (d *decider) next(sc *Scope) {
	if !d.s.canceling() {
		sc.mode.next(d, sc)
	}
}

func (d *decider) later(sc *Scope) { d.todo = append(d.todo, work{sc: sc}) }

// refill looks whether more units of a step can start.
func (d *decider) refill(st *Step) {
	w := work{st.scope, st}
	if n := len(d.todo); n == 0 || d.todo[n-1] != w {
		d.todo = append(d.todo, w)
	}
}

// everywhere looks at every scope again, the inner ones first.
func (d *decider) everywhere() {
	d.below(d.s.stage())
}

func (d *decider) below(sc *Scope) {
	d.later(sc)
	for _, st := range sc.Active() {
		switch {
		case st.Child != nil:
			d.below(st.Child)
		case len(st.Retrying) > 0 || st.Next < len(st.Units):
			d.refill(st)
		}
	}
}

func (c Start) params() json.RawMessage {
	if expr.KindOf(c.Params) == expr.KindNull {
		return json.RawMessage("{}")
	}
	return c.Params
}

// Check says whether a task of a plan can begin so, before there is one. The input of a dag may be any
// JSON; a map that works on it needs an array.
func (c Start) Check(p *Plan, l Limits) error {
	kind := expr.KindOf(c.params())
	switch dag := p.Root.Dag; {
	case p.Root.Mode() == ModeGraph && kind != expr.KindObject:
		return Errorf(Invalid, "params must be a JSON object")
	case p.Root.Mode() == ModeDag && dag.RootMap != "" && kind != expr.KindArray:
		is := "it is " + kind.String()
		if expr.KindOf(c.Params) == expr.KindNull {
			is = "there is none"
		}
		return Errorf(Invalid, "the input must be an array, because the map %s makes a unit of each of its items; %s", dag.RootMap, is)
	}
	return l.checkValue("params", c.params())
}

func (d *decider) start(c Start) error {
	if d.s.Status != "" {
		return Errorf(Conflict, "task %s has been started before", d.s.Task)
	}
	if err := c.Check(d.s.Plan, d.limits); err != nil {
		return err
	}
	d.emit(Event{Type: TaskCreated, Version: c.Version, Params: c.params()})
	if d.s.Deadline > 0 {
		d.effects = append(d.effects, Alarm{At: d.s.Deadline, Kind: AlarmTask})
	}
	d.later(d.s.Root)
	return nil
}

func (d *decider) signal(c Signal) error {
	if err := checkSharedKey(c.Key); err != nil {
		return err
	}
	if err := d.limits.checkValue("the signal's value", c.Value); err != nil {
		return err
	}
	if err := d.checkRoom(c.Key, orNull(c.Value)); err != nil {
		return err
	}
	d.emit(Event{Type: SignalReceived, Key: c.Key, Output: orNull(c.Value)})
	d.wake()
	return nil
}

// checkRoom refuses a signal that would make a shared larger which is too large already. Nothing that the task
// is waiting for, or has had before, is refused: however large its own outputs are, it can be told to go on.
func (d *decider) checkRoom(key string, v json.RawMessage) error {
	root := d.s.Root
	size := *root.size + root.growth(key, v)
	if _, there := root.Shared[key]; there || size <= d.limits.Shared {
		return nil
	}
	for _, st := range d.s.waiting {
		if st.awaits(key) {
			return nil
		}
	}
	return d.limits.sharedFull(size)
}

// wake ends the waiting steps that have what they wait for.
func (d *decider) wake() {
	for _, st := range slices.Clone(d.s.waiting) {
		if d.full() {
			d.rest = Proceed{Waits: true}
			return
		}
		d.awake(st)
	}
}

// checkSharedKey refuses keys of shared that belong to the engine or cannot be told apart in a store.
func checkSharedKey(key string) error {
	switch {
	case key == "":
		return Errorf(Invalid, "key is missing: say which key of shared the signal sets")
	case key == "_rt":
		return Errorf(Invalid, "key _rt belongs to the engine: choose another one")
	case len(key) > MaxName:
		return Errorf(Invalid, "key has %d bytes, more than the limit of %d", len(key), MaxName)
	case !utf8.ValidString(key):
		return Errorf(Invalid, "key is not UTF-8 text")
	}
	return nil
}

func (d *decider) cancel(c Cancel) error {
	switch closing := d.s.Closing; {
	case d.s.Status.Ended():
	case closing != nil && c.Force:
		d.withdrawAll(closing.Scope)
		d.emit(Event{Type: TaskEnded, Status: string(closing.Status), Error: cmp.Or(closing.Error, "canceled before everything was undone")})
	case closing != nil:
	case c.Gently && d.s.CancelAt == 0:
		d.emit(Event{Type: CancelAsked})
		d.everywhere() // retries go on that a pause has held
	case !c.Gently:
		d.endTask(TaskCanceled, "")
	}
	return nil
}

// afterCancel ends a canceled task when nothing is in flight any more.
func (d *decider) afterCancel() {
	if d.s.canceling() && !d.s.Status.Ended() && !d.s.Root.mode.busy(d.s.Root) {
		d.endTask(TaskCanceled, "")
	}
}

// busy says whether somebody is at work in a step, or will be again.
func (st *Step) busy() bool {
	return st.Child != nil && st.Child.mode.busy(st.Child) || len(st.Retrying) > 0 || st.Flying > 0 && st.Node.Exec.Type != ExecDirect
}

// endTask ends the task whatever it is doing: what is in flight is withdrawn. What is to be undone
// comes before the end.
func (d *decider) endTask(status TaskStatus, text string) {
	d.withdrawAll(d.s.Root)
	if d.s.Closing != nil {
		d.withdrawAll(d.s.Closing.Scope)
	}
	if !d.s.hasToClose(status) {
		d.emit(Event{Type: TaskEnded, Status: string(status), Error: text})
		return
	}
	d.pruneAll(d.s.Root)
	d.emit(Event{Type: TaskClosing, Status: string(status), Error: text})
	d.later(d.s.Closing.Scope)
}

// pruneAll ends what is carried apart from the task in a scope whose steps will be cut.
func (d *decider) pruneAll(sc *Scope) {
	for _, st := range sc.Active() {
		if st.Node.composite() {
			d.effects = append(d.effects, Prune{st.Address()})
		}
	}
}

func (d *decider) retryTask() error {
	switch c := d.s.Closing; {
	case d.s.Status != TaskFailed:
		return Errorf(Conflict, "the task is %s: only a failed one can be retried", d.s.Status)
	case c != nil && len(c.Undone) > 0 && (!d.s.Root.mode.redoes() || slices.ContainsFunc(c.Undone, func(u Undo) bool { return u.Scope != "" })):
		return Errorf(Conflict, "the task has undone what it did: start a new one")
	}
	d.pruneAll(d.s.Root)
	if c := d.s.Closing; c != nil {
		d.pruneAll(c.Scope)
	}
	d.emit(Event{Type: TaskRetried})
	if d.s.Paused() { // who retries a task wants it to go on
		d.emit(Event{Type: TaskResumed})
	}
	if d.s.Deadline > 0 {
		d.effects = append(d.effects, Alarm{At: d.s.Deadline, Kind: AlarmTask})
	}
	d.everywhere()
	return nil
}

func (d *decider) pause() error {
	switch {
	case d.s.Status.Ended():
		return Errorf(Conflict, "the task has ended (%s): it cannot be paused", d.s.Status)
	case d.s.CancelAt != 0:
		return Errorf(Conflict, "the task is being canceled: it cannot be paused")
	case d.s.Paused():
		return Errorf(Conflict, "the task is paused already")
	}
	d.emit(Event{Type: TaskPaused})
	return nil
}

func (d *decider) resume() error {
	switch {
	case d.s.Status.Ended():
		return Errorf(Conflict, "the task has ended (%s): it cannot be resumed", d.s.Status)
	case !d.s.Paused():
		return Errorf(Conflict, "the task is not paused")
	}
	d.emit(Event{Type: TaskResumed})
	d.everywhere()
	return nil
}

// ring answers an alarm. One whose reason is gone does nothing; one that rings before its time, because
// clocks differ, is set again.
func (d *decider) ring(c Lapse) {
	a := c.Alarm
	at := d.s.dueTime(a)
	switch {
	case at == 0 || d.s.Status.Ended():
	case at > d.env.Now && at == a.At:
		d.effects = append(d.effects, a)
	case at <= d.env.Now:
		d.rang(c)
	}
}

func (d *decider) rang(c Lapse) {
	switch a := c.Alarm; a.Kind {
	case AlarmTask:
		d.timeUp()
	case AlarmStep:
		d.due(d.s.step(a.Address))
	case AlarmEnter:
		d.later(d.s.scopes[a.Scope])
	case AlarmRetry, AlarmStart:
		d.refill(d.s.step(a.Address))
	case AlarmUnclaimed:
		d.unclaimed(a.Address)
	case AlarmAttempt:
		d.timeOut(a.Address)
	case AlarmClaim:
		d.silent(c)
	}
}

// timeUp ends a task that has run for too long. One that is being canceled does not wait any longer.
func (d *decider) timeUp() {
	if d.s.canceling() {
		d.endTask(TaskCanceled, "")
		return
	}
	d.endTask(TaskFailed, "timeout: the task ran longer than its timeout_ms")
}

// Awaits says whether an alarm still has its reason.
func (s *State) Awaits(a Alarm) bool { return s.dueTime(a) == a.At }

// dueTime is when that happens which an alarm is about; 0 when it no longer does.
func (s *State) dueTime(a Alarm) int64 {
	switch a.Kind {
	case AlarmTask:
		return s.Deadline
	case AlarmEnter:
		if sc := s.scopes[a.Scope]; sc != nil && sc.Step == nil && sc.Cursor == a.Node {
			return sc.EnterAt
		}
	case AlarmStep:
		if st := s.step(a.Address); st != nil {
			return st.Due
		}
	case AlarmRetry:
		if st := s.step(a.Address); st != nil && a.Unit >= 0 && a.Unit < len(st.Units) {
			return st.Units[a.Unit].RetryAt
		}
	case AlarmStart:
		if st := s.step(a.Address); st != nil && st.Next == 0 {
			return st.StartAt
		}
	case AlarmAttempt, AlarmClaim, AlarmUnclaimed:
		if _, u := s.attempt(a.Address); u != nil {
			return u.Live.dueTime(a.Kind)
		}
	}
	return 0
}

func (l *Live) dueTime(kind AlarmKind) int64 {
	switch {
	case kind == AlarmAttempt:
		return l.Due
	case kind == AlarmClaim && l.Worker != "":
		return l.Until
	case kind == AlarmUnclaimed && l.Worker == "":
		return l.StartBy
	}
	return 0
}
