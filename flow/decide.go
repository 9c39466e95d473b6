package flow

import (
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

// advance starts what may start, until nothing may or the decision is long enough. What was noted last comes first, so a
// scope inside a step goes on before the one around it.
func (d *decider) advance() (more bool) {
	for len(d.todo) > 0 {
		if d.full() {
			return true
		}
		w := d.todo[len(d.todo)-1]
		d.todo = d.todo[:len(d.todo)-1]
		switch {
		case d.stays(w):
		case w.st == nil:
			d.next(w.sc)
		case d.s.step(w.st.Address()) == w.st:
			d.fill(w.st)
		}
	}
	return false
}

// stays says that nothing may start where something was able to when it was noted: the task has ended or is paused
// (what a pause does not hold back are the units of steps that have begun, see State.held), the scope is over, or the
// task closes, which only the closing scope takes part in.
func (d *decider) stays(w work) bool {
	s := d.s
	paused := s.held() || w.st == nil && s.Paused()
	over := s.scopes[w.sc.Path] != w.sc || s.Closing != nil && w.sc == s.Root
	return s.Status.Ended() || paused || over
}

// maxEffort is what conditions and expressions may take before a decision is cut: others have to wait for it.
const maxEffort = expr.Budget / 3

// full says that the decision is long enough.
func (d *decider) full() bool { return len(d.events) >= d.limits.Events || d.effort >= maxEffort }

// next begins what is next in a scope: the node at its cursor, or the first node of a dag that nothing holds back. While
// the task is being canceled gently nothing new begins.
func (d *decider) next(sc *Scope) {
	if !d.s.canceling() {
		sc.mode.next(d, sc)
	}
}

// later notes a scope in which something may be able to start.
func (d *decider) later(sc *Scope) { d.todo = append(d.todo, work{sc: sc}) }

// refill notes a step of which more units may be able to start. A step that was noted last is noted already.
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
