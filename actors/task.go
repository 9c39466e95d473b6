package actors

import (
	"encoding/json"
	"errors"
	"slices"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// task is the actor of one running task. It alone owns the task's cursor and state: it decides at
// once, commits what it decided, and then lets it be heard.
type task struct {
	performer
	id     string
	state  *flow.State
	create *persistence.Create // until the first row is written
	apart  bool                // the first row was written by no member, and there is no second one yet

	up      func() // is called once when the task is there, or will not be; nil = nobody cares, or it was
	loading bool
	missing bool       // the store has no such task: whoever asks is told so until the parent has let go
	unread  *unread    // set when the task cannot be read; it stays loading then
	waiting []*command // what arrived while loading, or while commands are tried alone
	turn    []*command // what is being decided, one after the other
	handing []*command // likewise: claims on jobs that have just come to be
	handed  handed
	gen     int // of the state; answers to an older one are void
	tries   int // of loading

	alone    []*command // to be tried one by one: the store refuses what one of them leads to
	refusals int        // in a row for which nobody was to blame
	unkept   string     // why what the last of them led to could not be kept elsewhere; "" = it was not that

	refer func(v json.RawMessage) json.RawMessage // what stands for a value that is made; nil = it does itself
	made  []persistence.Object                    // by what is being decided

	seq      int64 // of the last row sent to the store
	inflight *draft
	open     *draft         // gathers while one is in flight
	more     []flow.Command // what goes on with decisions that were cut
	going    bool           // it is under way …
	cutAt    int64          // … since then
	coming   int            // attempts in inflight and open
	pace     pace
	// unfinished says that what goes on is left to the next one who loads the task.
	unfinished bool
	resting    restPhase
	moved      bool      // it rests, or does soon, because another member is to have it
	flushing   *flushing // before that
	asleep     bool      // the store has the task at rest
	parked     bool      // this actor's last row has put it there

	journal   int // bytes of rows since the snapshot
	snapshot  int // bytes of the last one
	columns   persistence.Columns
	columnsAt int64
	counted   *statisticsPart // where its rows are counted
	crashes   int             // of earlier actors of this task
	lacks     string          // what the last one could not go on without; "" = nothing of the kind
	broken    bool            // this actor has crashed
}

type (
	proceed struct{ gen int }
	reload  struct{ gen int }
)

func (t *task) Receive(c actor.Context) {
	if t.broken {
		t.pass(c.Message())
		return
	}
	defer t.answerOnPanic(c)
	t.m.cfg.Host.probe("task", c.Message())
	switch m := c.Message().(type) {
	case *actor.Started:
		t.start(c)
	case *command:
		t.command(c, m)
	case written:
		t.written(c, m)
	case loaded:
		t.loaded(c, m)
	case abandonment:
		t.abandoned(c, m)
	case reload:
		if m.gen == t.gen && t.loading {
			t.load(c)
		}
	case whatOthersCarry:
		t.whatOthersCarry(c, m)
	case ring:
		t.ring(c)
	case proceed:
		t.proceed(c, m)
	case snapshotTurn:
		t.flush(c)
	case flushed:
		t.flushed(c, m)
	case restRequest:
		t.rest(c, m)
	case gather:
		t.gather(c)
	case respawn:
		t.respawn(c, m.at)
	case outstanding:
		t.outstanding(c, m.at)
	case idleAlarms:
		m.among = t.idle(m.among)
		c.Send(m.reply, m)
	default:
		t.end(m)
	}
}

// command decides what may be decided now. What comes to an actor that is being let go is its successor's.
func (t *task) command(c actor.Context, m *command) {
	switch {
	case t.resting != awake:
		c.Send(t.m.tasks, m)
	case t.unread != nil:
		t.answerUnread(c, m)
	case !t.hold(m):
		t.decide(c, m)
	}
}

// end lets go of what the actor has beside its state.
func (t *task) end(message any) {
	switch message.(type) {
	case *actor.Stopping:
		t.close()
	case *actor.Stopped:
		t.isUp()
		t.passOutside()
		t.come(-t.coming)
		t.m.taskActors.Add(-1)
		if t.moved {
			t.m.tell(t.m.tasks, departed{t})
		}
	}
}

// pass is all that an actor does which has crashed: what comes now waits for the next one.
func (t *task) pass(message any) {
	if cmd, ok := message.(*command); ok {
		t.m.tell(t.m.tasks, cmd)
	}
	t.end(message)
}

// leave answers commands that an actor has not come to, or not to the end of. What jobs of this member have reported
// goes to the next actor: nobody is to do that work again.
func (t *task) leave(cmds []*command) {
	var landed []*command
	for _, cmd := range cmds {
		if cmd.landed() {
			landed = append(landed, cmd)
		}
	}
	for _, cmd := range cmds {
		cmd.answer(answer{err: errCrashed})
	}
	for _, cmd := range landed {
		t.m.tell(t.m.tasks, cmd)
	}
}

func (t *task) start(c actor.Context) {
	t.m.taskActors.Add(1)
	t.refer = t.referrer()
	t.begin(c.Self(), "", &inbox{m: t.m, owner: ownerAt(c.Self())})
	if t.loading {
		t.load(c)
	}
}

// answerOnPanic tells everybody who waits for this actor that it crashed; its parent starts another, which gets what
// has landed.
func (t *task) answerOnPanic(c actor.Context) {
	reason := recover()
	if reason == nil {
		return
	}
	t.broken = true
	t.dropMade()
	all := slices.Concat(t.inflight.commands(), t.open.commands(), t.handing, t.turn, t.waiting, t.alone)
	if cmd, ok := c.Message().(*command); ok {
		all = append(all, cmd)
	}
	if t.inbox != nil {
		t.inbox.orphan(func(landed []*flight) { all = append(all, reportsOf(t.id, landed)) })
	}
	t.inflight, t.open, t.handing, t.turn, t.waiting, t.alone = nil, nil, nil, nil, nil, nil
	t.leave(all)
	panic(reason)
}

// hold keeps a command that arrives while the state is being loaded, others are tried alone, or there
// are too many requests before it.
func (t *task) hold(m *command) bool {
	if t.missing {
		m.answer(answer{err: errNoTask(t.id)})
		return true
	}
	held := t.loading || len(t.alone) > 0 || m.request != "" && t.open.full()
	if held {
		t.waiting = append(t.waiting, m)
	}
	return held
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

// gather decides what its own jobs report.
func (t *task) gather(c actor.Context) {
	var cmds []*command
	t.inbox.empty(func(landed []*flight) { cmds = append(cmds, reportsOf(t.id, landed)) })
	t.each(cmds, func(cmd *command) { t.command(c, cmd) })
}

// each does commands in their turn. Those it has not come to are known should the actor crash.
func (t *task) each(cmds []*command, do func(*command)) {
	for t.turn = cmds; len(t.turn) > 0; t.turn = t.turn[1:] {
		do(t.turn[0])
	}
}

// outstanding tells the actor of a step what that is owed, once everything before is stored. One that is being loaded
// has no children any more. What it has given to other members it gives them again: it may have crashed before.
func (t *task) outstanding(c actor.Context, at flow.Address) {
	if t.loading {
		return
	}
	carriers := append(t.m.alive(), t.m.incarnation)
	below := slices.DeleteFunc(flow.OutstandingOf(t.state, at, carriers...), aboutQueue)
	all := []flow.Effect{owed{flow.Spawn{Address: at}, below}}
	if p := t.draftFor(flow.Decision{}); p != nil {
		p.effects = append(p.effects, all...)
		return
	}
	t.perform(c, all)
}

// now is the task's time, which does not run backwards: a member that had it before may have been a little ahead.
func (t *task) now() int64 { return max(t.m.now(), t.state.UpdatedAt) }

// decide lets the core decide a command, keeps what follows from it and sends it to the store.
func (t *task) decide(c actor.Context, cmd *command) {
	before := t.state.Steps
	b := eventBufferFor(cmd)
	d, err := flow.Decide(t.state, t.withSigns(cmd.cmd), flow.Env{
		Now: t.now(), Member: t.m.incarnation, Request: cmd.request, Limits: t.m.cfg.Limits, Buffer: b.events(), Most: t.most(cmd.cmd), Refer: t.refer,
	})
	notSpoiled(err)
	t.m.steps.Add(int64(t.state.Steps - before))
	a := t.answerTo(cmd, err)
	a.changed = len(d.Events)
	if b == nil { // what is in a buffer does not stay
		a.events = d.Events
	}
	t.cut(d, t.state.Steps-before+d.Effort/effortOfStep)
	p := t.draftFor(d)
	if p == nil { // nothing is waiting for the store: nothing to wait for
		b.leave(d.Events)
		t.perform(c, d.Effects)
		cmd.answer(a)
		t.goOnLater(c)
		return
	}
	p.add(d, cmd, a)
	p.made, t.made = append(p.made, t.made...), nil
	t.come(d.Started)
	b.leave(d.Events)
	t.handOut(p, d.Effects, cmd.rider)
	t.flush(c)
}

// handOut claims the new jobs of a decision for pollers who wait for them, in the row that the jobs begin in.
func (t *task) handOut(p *draft, effects []flow.Effect, rider *poller) {
	if p != t.open {
		return
	}
	for _, e := range effects {
		if d, ok := e.(flow.Dispatch); ok && d.Job.Exec.Type == flow.ExecQueue {
			if claim := t.m.queue.Load().handOut(&d.Job, rider); claim != nil {
				claim.unlisted = claim.unlisted && !d.Job.Again
				t.handing = append(t.handing, claim)
			}
		}
	}
	for ; len(t.handing) > 0; t.handing = t.handing[1:] {
		claim := t.handing[0]
		d, err := flow.Decide(t.state, claim.cmd, flow.Env{Now: t.now(), Member: t.m.incarnation, Limits: t.m.cfg.Limits})
		notSpoiled(err)
		if claim.unlisted && err == nil {
			t.hand(claim.cmd.(flow.Claim).Address)
		}
		p.add(d, claim, t.answerTo(claim, err))
	}
}

// notSpoiled crashes the actor when its state is of no more use: it starts again from the store, after a while.
func notSpoiled(err error) {
	if spoiled := new(flow.SpoiledError); errors.As(err, &spoiled) {
		panic(spoiled)
	}
}

// answerTo is what is answered to a command that has just been decided.
func (t *task) answerTo(cmd *command, err error) answer {
	switch c := cmd.cmd.(type) {
	case flow.Claim:
		return t.claimed(c, err)
	case flow.Append:
		if err == nil {
			return answer{first: t.state.Appended[cmd.request]}
		}
	case flow.Bring:
		if live := t.state.Live(c.Address); live != nil && err == nil {
			return answer{given: live.Given}
		}
	}
	return answer{err: err}
}

// claimed is the answer to a claim. One that is decided a second time may be over.
func (t *task) claimed(claim flow.Claim, err error) answer {
	job, open := t.state.Job(claim.Address)
	switch {
	case err != nil:
		return answer{err: err, held: job.Until}
	case !open || !t.state.Holds(claim.Address, claim.Token):
		return answer{err: flow.ErrOver}
	}
	return answer{job: &job}
}

// draftFor is where a decision waits for the store: with its events, or, without any, behind the
// newest ones it may follow from.
func (t *task) draftFor(d flow.Decision) *draft {
	if len(d.Events) == 0 {
		if t.open != nil {
			return t.open
		}
		return t.inflight
	}
	if t.open == nil {
		t.open = &draft{row: flow.Row{Format: int(t.m.format.Load())}}
	}
	return t.open
}

// flush sends what has gathered, unless a row is in flight: a task has one at a time.
func (t *task) flush(c actor.Context) {
	if t.inflight != nil || t.open == nil || t.waitsForSnapshot(c.Self()) {
		return
	}
	t.inflight, t.open = t.open, nil
	t.seq++
	t.send(c, t.commit(t.inflight), t.inflight.made...)
}

func (t *task) send(c actor.Context, commit persistence.Commit, made ...persistence.Object) {
	t.m.committer.add(&writing{commit: commit, made: made, reply: c.Self(), gen: t.gen})
}

// written is the store's answer. What it has is heard now; anything but "written" is forgotten.
func (t *task) written(c actor.Context, w written) {
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
	t.release(p)
	t.m.metrics.stored(t, p)
	t.m.statistics.stored(t, p)
	t.tell(p)
	t.come(-p.started)
	t.inflight, t.create, t.apart, t.asleep, t.parked, t.refusals = nil, nil, false, p.rests, p.rests, 0
	t.perform(c, p.effects)
	if t.untidy() {
		t.drop(t.idle(t.alarms))
	}
	p.answerEach(t.state)
	t.m.hub.notify(t.id)
	t.flush(c)
	t.goOn(c)
	t.goOnLater(c)
	if p.ended != "" {
		t.ended(c, p.ended)
	}
}

// ended says so, and that nobody needs this actor any longer unless there is more to do.
func (t *task) ended(c actor.Context, status flow.TaskStatus) {
	t.m.toldEnd(t.id, t.state, status)
	if t.idleNow() && t.state.Status.Ended() {
		t.resting = gone
	}
	c.Send(t.m.tasks, ended{t, status, t.resting == gone})
}
