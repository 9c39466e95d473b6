package actors

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// task is the actor of one running task. It alone owns the task's cursor and state: it decides at
// once, commits what it decided, and then lets it be heard.
type task struct {
	hands
	id     string
	state  *flow.State
	create *persistence.Create // until the first row is written

	loading bool
	missing bool  // the store has no such task: whoever asks is told so until the parent has let go
	waiting []any // what arrived while loading, or while commands are tried alone
	gen     int   // of the state; answers to an older one are void
	tries   int   // of loading

	alone    []*command // to be tried one by one: the store refuses what one of them leads to
	refusals int        // in a row for which nobody was to blame

	seq      int64 // of the last row sent to the store
	inflight *parcel
	open     *parcel // gathers while one is in flight
	proceed  bool    // a Proceed is under way
	resting  restPhase
	asleep   bool // the store has the task at rest

	journal   int // bytes of rows since the snapshot
	snapshot  int // bytes of the last one
	columns   persistence.Columns
	columnsAt int64
	crashes   int // of earlier actors of this task
}

// restPhase says how far a task's retirement is.
type restPhase uint8

const (
	awake restPhase = iota
	restCommitting
	gone
)

type (
	restRequest struct{ force bool }
	proceed     struct{ gen int }
	reload      struct{ gen int }
)

func (t *task) Receive(c actor.Context) {
	defer t.answerOnPanic()
	t.m.cfg.Host.probe("task", c.Message())
	switch m := c.Message().(type) {
	case *actor.Started:
		t.start(c)
	case *command:
		if t.hold(m) {
			return
		}
		t.decide(c, m)
	case written:
		t.written(c, m)
	case loaded:
		t.loaded(c, m)
	case reload:
		t.load(c)
	case ring:
		t.ring(c)
	case proceed:
		if m.gen == t.gen && !t.loading {
			t.proceed = false
			t.decide(c, &command{cmd: flow.Proceed{}})
		}
	case restRequest:
		t.rest(c, m.force)
	case respawn:
		t.respawn(c, m.at)
	case outstanding:
		if !t.loading {
			c.Send(m.reply, carry{flow.OutstandingOf(t.state, m.at)})
		}
	case *actor.Stopping:
		t.close()
	case *actor.Stopped:
		t.m.actorCount[0].Add(-1)
	}
}

func (t *task) start(c actor.Context) {
	t.m.actorCount[0].Add(1)
	t.begin(t.m, t.id, "", c.Self())
	if t.loading {
		t.load(c)
	}
}

// answerOnPanic tells everybody who waits for this actor that it crashed; its parent starts another.
func (t *task) answerOnPanic() {
	reason := recover()
	if reason == nil {
		return
	}
	for _, p := range []*parcel{t.inflight, t.open} {
		p.answerAll(answer{err: errCrashed})
	}
	for _, message := range t.waiting {
		if cmd, ok := message.(*command); ok {
			cmd.answer(answer{err: errCrashed})
		}
	}
	for _, cmd := range t.alone {
		cmd.answer(answer{err: errCrashed})
	}
	t.inflight, t.open, t.waiting, t.alone = nil, nil, nil, nil
	panic(reason)
}

// hold keeps a command that arrives while the state is being loaded, or others are tried alone.
func (t *task) hold(m *command) bool {
	if t.missing {
		m.answer(answer{err: errNoTask(t.id)})
		return true
	}
	held := t.loading || len(t.alone) > 0
	if held {
		t.waiting = append(t.waiting, m)
	}
	return held
}

func (t *task) load(c actor.Context) {
	t.loading = true
	gen, self, m := t.gen, c.Self(), t.m
	m.loader.load(t.id, func(l loaded) {
		l.gen = gen
		m.tell(self, l)
	})
}

// loaded takes the state from the store, takes over what was carried by one who is gone, and then
// answers what has been waiting.
func (t *task) loaded(c actor.Context, l loaded) {
	switch {
	case l.gen != t.gen:
		return
	case l.err != nil:
		t.loadAgain(c, l.err)
		return
	case l.view == nil:
		t.refuseUnknown(c)
		return
	}
	t.loading, t.tries = false, 0
	t.state, t.seq, t.asleep = l.view.State, l.view.Seq, l.resting
	t.journal, t.snapshot = l.journal, l.snap
	t.columns, t.columnsAt = l.view.Columns, l.view.UpdatedAt
	t.create = nil
	t.reset(c)
	if t.state.Status.Ended() {
		c.Send(t.m.tasks, ended{t, t.state.Status})
	}
	t.perform(c, flow.OutstandingTo(t.state, t.m.incarnation))
	if t.refusals > 0 {
		t.failStep(c, "the store refuses what follows from it")
	}
	t.decide(c, &command{cmd: flow.Recover{}})
	if t.crashes >= manyCrashes {
		t.failStep(c, "the task's actor keeps crashing")
	}
	t.goOn(c)
}

func (t *task) failStep(c actor.Context, text string) {
	if st := t.state.Root.Step; st != nil {
		t.decide(c, &command{cmd: flow.FailStep{Address: st.Address(), Error: text}})
	}
}

// goOn decides what is to be tried alone, each after the row of the one before is written, and then
// whatever has been waiting.
func (t *task) goOn(c actor.Context) {
	for len(t.alone) > 0 {
		if t.inflight != nil {
			return
		}
		cmd := t.alone[0]
		t.alone = t.alone[1:]
		t.decide(c, cmd)
	}
	waiting := t.waiting
	t.waiting = nil
	for _, message := range waiting {
		c.Send(c.Self(), message)
	}
}

func (t *task) loadAgain(c actor.Context, err error) {
	t.tries++
	if t.m.ctx.Err() != nil {
		return
	}
	t.m.log.Warn("a task could not be loaded", "task", t.id, "try", t.tries, "error", err)
	if kind := flow.KindOf(err); kind != "" {
		for _, message := range t.waiting {
			if cmd, ok := message.(*command); ok {
				cmd.answer(answer{err: err})
			}
		}
		t.waiting = nil
	}
	self, gen := c.Self(), t.gen
	t.m.cfg.Host.Clock.AfterFunc(backOff(t.tries), func() { t.m.tell(self, reload{gen}) })
}

func (t *task) refuseUnknown(c actor.Context) {
	for _, message := range t.waiting {
		if cmd, ok := message.(*command); ok {
			cmd.answer(answer{err: errNoTask(t.id)})
		}
	}
	t.waiting, t.missing = nil, true
	c.Send(t.m.tasks, unknown{t})
}

// ring answers alarms. One that comes while the task is being put to rest is in the store's hands.
func (t *task) ring(c actor.Context) {
	if t.resting != awake {
		return
	}
	for _, a := range t.due(t.m.now()) {
		cmd := &command{cmd: flow.Ring{Alarm: a}}
		if !t.hold(cmd) {
			t.decide(c, cmd)
		}
	}
}

// decide lets the core decide a command, keeps what follows from it and sends it to the store.
func (t *task) decide(c actor.Context, cmd *command) {
	claim, isClaim := cmd.cmd.(flow.Claim)
	before := t.state.Steps
	d, err := flow.Decide(t.state, cmd.cmd, flow.Env{
		Now: t.m.now(), Member: t.m.incarnation, Request: cmd.request, Limits: t.m.cfg.Limits,
	})
	t.m.steps.Add(int64(t.state.Steps - before))
	a := answer{err: err}
	if isClaim && err == nil {
		a.job, _ = t.state.Job(claim.Address)
	}
	if d.More && !t.proceed {
		t.proceed = true
		c.Send(c.Self(), proceed{t.gen})
	}
	p := t.parcelFor(d)
	if p == nil { // nothing is waiting for the store: nothing to wait for
		t.perform(c, d.Effects)
		cmd.answer(a)
		return
	}
	p.add(d, cmd, a)
	t.flush(c)
}

// parcelFor is where a decision waits for the store: with its events, or, without any, behind the
// newest ones it may follow from.
func (t *task) parcelFor(d flow.Decision) *parcel {
	if len(d.Events) == 0 {
		if t.open != nil {
			return t.open
		}
		return t.inflight
	}
	if t.open == nil {
		t.open = &parcel{}
	}
	return t.open
}

// flush sends what has gathered, unless a row is in flight: a task has one at a time.
func (t *task) flush(c actor.Context) {
	if t.inflight != nil || t.open == nil {
		return
	}
	t.inflight, t.open = t.open, nil
	t.seq++
	commit, err := t.commit(t.inflight)
	if err != nil {
		panic(err)
	}
	t.send(c, commit)
}

func (t *task) send(c actor.Context, commit persistence.Commit) {
	t.m.uncommitted.Add(1)
	t.m.laneOf(t.id).add(&writing{commit: commit, reply: c.Self(), gen: t.gen})
}

// written is the store's answer. What it has is heard now; anything but "written" is forgotten.
func (t *task) written(c actor.Context, w written) {
	t.m.uncommitted.Add(-1)
	if w.gen != t.gen {
		return
	}
	if t.resting == restCommitting {
		t.restWritten(c, w.err)
		return
	}
	p := t.inflight
	if w.err != nil {
		t.forget(c, w.err)
		return
	}
	t.inflight, t.create, t.asleep, t.refusals = nil, nil, false, 0
	t.perform(c, p.effects)
	p.answerEach()
	t.m.hub.notify(t.id)
	if p.ends() {
		c.Send(t.m.tasks, ended{t, t.state.Status})
	}
	t.flush(c)
	t.goOn(c)
}

// forget drops everything this incarnation of the actor knew, and reloads; the commands that have no
// answer yet are decided again.
func (t *task) forget(c actor.Context, err error) {
	sent, gathered := t.inflight.commands(), t.open.commands()
	created := t.create != nil
	t.inflight, t.open, t.proceed = nil, nil, false
	t.gen++
	t.reset(c)
	switch {
	case errors.Is(err, persistence.ErrRefused):
		t.alone = append(t.suspects(sent, err), t.alone...)
		sent = nil
	case errors.Is(err, persistence.ErrExists):
		// Somebody with the same id was first, perhaps this very request whose answer got lost.
		t.m.log.Info("a task with this id exists", "task", t.id)
	case !errors.Is(err, persistence.ErrStale) && !errors.Is(err, persistence.ErrUnknown):
		t.m.log.Warn("a commit failed", "task", t.id, "error", err)
	}
	again := append(sent, gathered...)
	if created {
		again = t.answerStarts(again, err)
	}
	for _, cmd := range again {
		t.waiting = append(t.waiting, cmd)
	}
	t.load(c)
}

// answerStarts tells whoever started the task how that ended; the rest stays.
func (t *task) answerStarts(commands []*command, err error) (rest []*command) {
	for _, cmd := range commands {
		if _, ok := cmd.cmd.(flow.Start); ok {
			cmd.answer(answer{err: err})
			continue
		}
		rest = append(rest, cmd)
	}
	return rest
}

// suspects are the commands one of which led to what the store refuses; it would refuse it again. Each
// is tried alone then, so that no other suffers. When there is only one, it is changed.
func (t *task) suspects(commands []*command, err error) []*command {
	commands = slices.DeleteFunc(commands, func(cmd *command) bool {
		switch cmd.cmd.(type) {
		case flow.Proceed, flow.Recover: // follow from what is stored: done after every load
			return true
		}
		return false
	})
	switch len(commands) {
	case 0:
		t.refusals++
		return nil
	case 1:
		return t.blame(commands[0], err)
	}
	return commands
}

// blame makes of a command whose consequences the store refuses one that it takes: an attempt fails,
// whoever asked is told. The store's words may hold what it refuses; then they are left out.
func (t *task) blame(cmd *command, err error) []*command {
	cmd.refused++
	r, isReport := cmd.cmd.(flow.Report)
	switch {
	case isReport && cmd.refused <= 2:
		r.Output, r.Fatal, r.Error = nil, true, "internal: the store refused the attempt's result"
		if cmd.refused == 1 {
			r.Error = fmt.Sprintf("%s: %v", r.Error, err)
		}
		cmd.cmd = r
		return []*command{cmd}
	case cmd.reply != nil:
		cmd.answer(answer{err: flow.Errorf(flow.Invalid, "the store refused a value of this request: %v", err)})
	default:
		t.m.log.Error("the store refuses what a task leads to", "task", t.id, "command", fmt.Sprintf("%T", cmd.cmd), "error", err)
		t.refusals++
	}
	return nil
}

// rest retires the task if it has nothing to do but wait. Forced, because the member goes, it rests as
// soon as nothing is on its way to the store.
func (t *task) rest(c actor.Context, force bool) {
	due, quiet := t.quiet()
	switch {
	case force && !t.idleNow():
		self := c.Self()
		t.m.cfg.Host.Clock.AfterFunc(10*time.Millisecond, func() { t.m.tell(self, restRequest{force}) })
		return
	case !quiet && !force:
		c.Send(t.m.tasks, restable{t, false})
		return
	case t.state.Status.Ended():
		t.resting = gone
		c.Send(t.m.tasks, rested{t})
		return
	}
	t.resting = restCommitting
	commit := persistence.Commit{Task: t.id, Seq: t.seq, At: t.m.now(), Rest: &persistence.Rest{Resting: quiet, Due: due}}
	t.addSnapshot(&commit)
	if col := columnsOf(t.state); col != t.columns {
		commit.Columns = &col
	}
	t.send(c, commit)
}

// idleNow says whether nothing is on its way to the store.
func (t *task) idleNow() bool {
	return !t.loading && t.inflight == nil && t.open == nil && !t.proceed
}

// quiet says whether all a task has to do is wait, and when it is due (0 = only a message brings it back).
func (t *task) quiet() (due int64, ok bool) {
	if !t.idleNow() {
		return 0, false
	}
	if t.state.Status.Ended() {
		return 0, true
	}
	due, ok = flow.Idle(t.state)
	if !ok || due > 0 && due < t.m.now()+3*t.m.cfg.IdleAfter.Milliseconds() {
		return 0, false
	}
	return due, true
}

func (t *task) restWritten(c actor.Context, err error) {
	if err != nil {
		t.resting = awake
		t.inflight = &parcel{}
		t.forget(c, err)
		c.Send(t.m.tasks, restable{t, false})
		return
	}
	t.resting = gone
	c.Send(t.m.tasks, rested{t})
}
