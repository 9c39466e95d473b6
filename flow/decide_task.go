package flow

import (
	"cmp"
	"encoding/json"
	"slices"
	"unicode/utf8"

	"github.com/troupe-engine/troupe/flow/expr"
)

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

// timeUp ends a task that has run for too long. One that is being canceled does not wait any longer.
func (d *decider) timeUp() {
	if d.s.canceling() {
		d.endTask(TaskCanceled, "")
		return
	}
	d.endTask(TaskFailed, "timeout: the task ran longer than its timeout_ms")
}
