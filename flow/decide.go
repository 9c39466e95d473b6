package flow

import (
	"encoding/json"
	"slices"
	"unicode/utf8"

	"github.com/troupe-engine/troupe/flow/expr"
)

// ErrOver answers a claim, a heartbeat or a note about an attempt that is no longer in flight.
var ErrOver = &Error{Conflict, "the attempt is over or was never started: nobody waits for it any longer"}

// decider makes one decision: it emits events, evolves the state by them and collects their effects.
type decider struct {
	s        *State
	env      Env
	limits   Limits
	events   []Event
	effects  []Effect
	expected int      // events, at a guess
	todo     []*Scope // scopes in which something may be able to start
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
	d := &decider{s: s, env: env, limits: env.Limits.OrDefault(), expected: 2}
	if err := d.handle(c); err != nil {
		return Decision{}, err
	}
	more := d.advance()
	return Decision{Events: d.events, Effects: d.effects, More: more}, nil
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
		return d.cancel()
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
	case Ring:
		d.ring(c.Alarm)
	case Proceed:
		d.everywhere()
	case Recover:
		d.recover()
	case FailStep:
		d.failStep(c)
	}
	return nil
}

func checkRequest(id string) error {
	if len(id) > maxName || !utf8.ValidString(id) {
		return Errorf(Invalid, "the request's id must be UTF-8 text of at most %d bytes", maxName)
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
	Evolve(d.s, &e)
	d.effects = appendEffects(d.effects, d.s, &e)
}

// advance starts what may start, until nothing may or the decision is long enough.
func (d *decider) advance() (more bool) {
	for len(d.todo) > 0 {
		if len(d.events) >= d.limits.Events {
			return true
		}
		sc := d.todo[len(d.todo)-1]
		d.todo = d.todo[:len(d.todo)-1]
		if d.s.Status.Ended() || d.s.Paused() || d.s.scopes[sc.Path] != sc {
			continue
		}
		switch {
		case sc.Step != nil:
			d.fill(sc.Step)
		case sc.Cursor != "" && sc.EnterAt <= d.env.Now:
			d.enter(sc)
		}
	}
	return false
}

func (d *decider) later(sc *Scope) { d.todo = append(d.todo, sc) }

// everywhere looks at every scope again, the inner ones first.
func (d *decider) everywhere() {
	for sc := d.s.Root; sc != nil; {
		d.later(sc)
		if sc.Step == nil {
			return
		}
		sc = sc.Step.Child
	}
}

func (c Start) params() json.RawMessage {
	if expr.KindOf(c.Params) == expr.KindNull {
		return json.RawMessage("{}")
	}
	return c.Params
}

// Check says whether a task can begin so, before there is one.
func (c Start) Check(l Limits) error {
	if expr.KindOf(c.params()) != expr.KindObject {
		return Errorf(Invalid, "params must be a JSON object")
	}
	return l.checkValue("params", c.params())
}

func (d *decider) start(c Start) error {
	if d.s.Status != "" {
		return Errorf(Conflict, "task %s has been started before", d.s.Task)
	}
	if err := c.Check(d.limits); err != nil {
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
	d.emit(Event{Type: SignalReceived, Key: c.Key, Output: orNull(c.Value)})
	for _, st := range append([]*Step(nil), d.s.waiting...) {
		d.awake(st)
	}
	return nil
}

// checkSharedKey refuses keys of shared that belong to the engine or cannot be told apart in a store.
func checkSharedKey(key string) error {
	switch {
	case key == "":
		return Errorf(Invalid, "key is missing: say which key of shared the signal sets")
	case key == "_rt":
		return Errorf(Invalid, "key _rt belongs to the engine: choose another one")
	case len(key) > maxName:
		return Errorf(Invalid, "key has %d bytes, more than the limit of %d", len(key), maxName)
	case !utf8.ValidString(key):
		return Errorf(Invalid, "key is not UTF-8 text")
	}
	return nil
}

func (d *decider) cancel() error {
	if !d.s.Status.Ended() {
		d.endTask(TaskCanceled, "")
	}
	return nil
}

// endTask ends the task whatever it is doing: what is in flight is withdrawn.
func (d *decider) endTask(status TaskStatus, text string) {
	d.withdraw(d.s.Root.Step)
	d.emit(Event{Type: TaskEnded, Status: string(status), Error: text})
}

func (d *decider) pause() error {
	switch {
	case d.s.Status.Ended():
		return Errorf(Conflict, "the task has ended (%s): it cannot be paused", d.s.Status)
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
func (d *decider) ring(a Alarm) {
	at := d.s.dueTime(a)
	switch {
	case at == 0 || d.s.Status.Ended():
	case at > d.env.Now && at == a.At:
		d.effects = append(d.effects, a)
	case at <= d.env.Now:
		d.rang(a)
	}
}

func (d *decider) rang(a Alarm) {
	switch a.Kind {
	case AlarmTask:
		d.endTask(TaskFailed, "timeout: the task ran longer than its timeout_ms")
	case AlarmStep:
		d.due(d.s.step(a.Address))
	case AlarmEnter, AlarmRetry:
		d.later(d.s.scopes[a.Scope])
	case AlarmAttempt:
		d.timeOut(a.Address)
	case AlarmClaim:
		d.lost(a.Address, "")
	}
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
	case AlarmAttempt, AlarmClaim:
		if _, u := s.attempt(a.Address); u != nil && a.Kind == AlarmAttempt {
			return u.Live.Due
		} else if u != nil && u.Live.Worker != "" {
			return u.Live.Until
		}
	}
	return 0
}
