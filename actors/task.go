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
	effectPerformer
	id         string
	state      *flow.State
	create     *persistence.Create // until the first row is written
	begunApart bool                // the first row was written by no member, and there is no second one yet

	onLoaded   func() // is called once when the task is there, or will not be; nil = nobody cares, or it was
	loading    bool
	missing    bool            // the store has no such task: whoever asks is told so until the parent has let go
	unreadable *unreadableTask // set when the task cannot be read; it stays loading then
	waiting    []*taskCommand  // what arrived while loading, or while commands are tried alone
	deciding   []*taskCommand  // what is being decided, one after the other
	newClaims  []*taskCommand  // likewise: claims on jobs that have just come to be
	unlisted   unlistedJobs
	gen        int // of the state; answers to an older one are void
	tries      int // of loading

	isolated    []*taskCommand // to be tried one by one: the store refuses what one of them leads to
	refusals    int            // in a row for which nobody was to blame
	objectError string         // why what the last of them led to could not be kept elsewhere; "" = it was not that

	referValue func(v json.RawMessage) json.RawMessage // what stands for a value that is made; nil = it does itself
	newObjects []persistence.Object                    // by what is being decided

	seq              int64 // of the last row sent to the store
	inflight         *journalDraft
	openDraft        *journalDraft  // gathers while one is in flight
	cutCommands      []flow.Command // what goes on with decisions that were cut
	cutScheduled     bool           // it is under way …
	cutAt            int64          // … since then
	unstoredAttempts int            // attempts in inflight and open
	pace             stepPace
	// unfinished says that what goes on is left to the next one who loads the task.
	unfinished    bool
	resting       restPhase
	movesAway     bool       // it rests, or does soon, because another member is to have it
	flushing      *stepFlush // before that
	storedResting bool       // the store has the task at rest
	rowPutToRest  bool       // this actor's last row has put it there

	journal      int // bytes of rows since the snapshot
	snapshot     int // bytes of the last one
	columns      persistence.Columns
	columnsAt    int64
	counted      *statisticsPart // where its rows are counted
	crashes      int             // of earlier actors of this task
	missingValue string          // what the last one could not go on without; "" = nothing of the kind
	hasCrashed   bool            // this actor has crashed
}

type (
	resumeCut  struct{ gen int }
	reloadTask struct{ gen int }
)

func (t *task) Receive(c actor.Context) {
	if t.hasCrashed {
		t.forwardMessage(c.Message())
		return
	}
	defer t.answerOnPanic(c)
	t.m.cfg.Host.callProbe("task", c.Message())
	switch m := c.Message().(type) {
	case *actor.Started:
		t.handleStarted(c)
	case *taskCommand:
		t.handleCommand(c, m)
	case commitResult:
		t.handleCommitResult(c, m)
	case loadResult:
		t.applyLoaded(c, m)
	case abandonResult:
		t.finishAbandon(c, m)
	case reloadTask:
		if m.gen == t.gen && t.loading {
			t.requestLoad(c)
		}
	case recheckCarriers:
		t.recheckCarriers(c, m)
	case alarmsDue:
		t.fireAlarms(c)
	case resumeCut:
		t.resumeCut(c, m)
	case snapshotTurn:
		t.flushDraft(c)
	case stepsFlushed:
		t.finishFlush(c, m)
	case restRequest:
		t.tryRest(c, m)
	case collectReports:
		t.decideReports(c)
	case respawnStep:
		t.respawnStep(c, m.at)
	case queryOutstanding:
		t.sendOutstanding(c, m.at)
	case idleAlarms:
		m.among = t.findIdleAlarms(m.among)
		c.Send(m.reply, m)
	default:
		t.handleStop(m)
	}
}

// handleCommand decides what may be decided now. What comes to an actor that is being let go is its
// successor's.
func (t *task) handleCommand(c actor.Context, m *taskCommand) {
	switch {
	case t.resting != restNone:
		c.Send(t.m.tasks, m)
	case t.unreadable != nil:
		t.answerUnread(c, m)
	case !t.holdCommand(m):
		t.decideCommand(c, m)
	}
}

// handleStop lets go of what the actor has beside its state.
func (t *task) handleStop(message any) {
	switch message.(type) {
	case *actor.Stopping:
		t.close()
	case *actor.Stopped:
		t.notifyLoaded()
		t.forwardDeferredWork()
		t.addUnstored(-t.unstoredAttempts)
		t.m.taskActors.Add(-1)
		if t.movesAway {
			t.m.sendMessage(t.m.tasks, taskDeparted{t})
		}
	}
}

// forwardMessage is all that an actor does which has crashed: what comes now waits for the next
// one.
func (t *task) forwardMessage(message any) {
	if cmd, ok := message.(*taskCommand); ok {
		t.m.sendMessage(t.m.tasks, cmd)
	}
	t.handleStop(message)
}

// answerCrashed answers commands that an actor has not come to, or not to the end of. What jobs of
// this member have reported goes to the next actor: nobody is to do that work again.
func (t *task) answerCrashed(cmds []*taskCommand) {
	var landed []*taskCommand
	for _, cmd := range cmds {
		if cmd.isJobReport() {
			landed = append(landed, cmd)
		}
	}
	for _, cmd := range cmds {
		cmd.sendAnswer(commandAnswer{err: errCrashed})
	}
	for _, cmd := range landed {
		t.m.sendMessage(t.m.tasks, cmd)
	}
}

func (t *task) handleStarted(c actor.Context) {
	t.m.taskActors.Add(1)
	t.referValue = t.referenceFunc()
	t.bindActor(c.Self(), "", &inbox{m: t.m, taskOwner: ownerAt(c.Self())})
	if t.loading {
		t.requestLoad(c)
	}
}

// answerOnPanic tells everybody who waits for this actor that it crashed; its parent starts
// another, which gets what has landed.
func (t *task) answerOnPanic(c actor.Context) {
	reason := recover()
	if reason == nil {
		return
	}
	t.hasCrashed = true
	t.dropUnstoredObjects()
	all := slices.Concat(t.inflight.commands(), t.openDraft.commands(), t.newClaims, t.deciding, t.waiting, t.isolated)
	if cmd, ok := c.Message().(*taskCommand); ok {
		all = append(all, cmd)
	}
	if t.inbox != nil {
		t.inbox.drainCrashed(func(landed []*activeJob) { all = append(all, reportsOf(t.id, landed)) })
	}
	t.inflight, t.openDraft, t.newClaims, t.deciding, t.waiting, t.isolated = nil, nil, nil, nil, nil, nil
	t.answerCrashed(all)
	panic(reason)
}

// holdCommand keeps a command that arrives while the state is being loaded, others are tried alone,
// or there are too many requests before it.
func (t *task) holdCommand(m *taskCommand) bool {
	if t.missing {
		m.sendAnswer(commandAnswer{err: errNoTask(t.id)})
		return true
	}
	held := t.loading || len(t.isolated) > 0 || m.request != "" && t.openDraft.isFull()
	if held {
		t.waiting = append(t.waiting, m)
	}
	return held
}

// fireAlarms answers alarms. One that comes while the task is being put to rest is in the store's
// hands.
func (t *task) fireAlarms(c actor.Context) {
	if t.resting != restNone {
		return
	}
	for _, a := range t.takeDueAlarms(t.m.nowMillis()) {
		cmd := &taskCommand{command: flow.Ring{Alarm: a}}
		if !t.holdCommand(cmd) {
			t.decideCommand(c, cmd)
		}
	}
}

// decideReports decides what its own jobs report.
func (t *task) decideReports(c actor.Context) {
	var cmds []*taskCommand
	t.inbox.takeReports(func(landed []*activeJob) { cmds = append(cmds, reportsOf(t.id, landed)) })
	t.decideInTurn(cmds, func(cmd *taskCommand) { t.handleCommand(c, cmd) })
}

// decideInTurn does commands in their turn. Those it has not come to are known should the actor
// crash.
func (t *task) decideInTurn(cmds []*taskCommand, do func(*taskCommand)) {
	for t.deciding = cmds; len(t.deciding) > 0; t.deciding = t.deciding[1:] {
		do(t.deciding[0])
	}
}

// sendOutstanding tells the actor of a step what that is owed, once everything before is stored.
// One that is being loaded has no children any more. What it has given to other members it gives
// them again: it may have crashed before.
func (t *task) sendOutstanding(c actor.Context, at flow.Address) {
	if t.loading {
		return
	}
	carriers := append(t.m.aliveMembers(), t.m.incarnation)
	below := slices.DeleteFunc(flow.OutstandingOf(t.state, at, carriers...), isQueueEffect)
	all := []flow.Effect{outstandingEffects{flow.Spawn{Address: at}, below}}
	if p := t.draftFor(flow.Decision{}); p != nil {
		p.effects = append(p.effects, all...)
		return
	}
	t.performEffects(c, all)
}

// nowMillis is the task's time, which does not run backwards: a member that had it before may have
// been a little ahead.
func (t *task) nowMillis() int64 { return max(t.m.nowMillis(), t.state.UpdatedAt) }

// decideCommand lets the core decide a command, keeps what follows from it and sends it to the
// store.
func (t *task) decideCommand(c actor.Context, cmd *taskCommand) {
	before := t.state.Steps
	b := eventBufferFor(cmd)
	d, err := flow.Decide(t.state, t.withSigns(cmd.command), flow.Env{
		Now: t.nowMillis(), Member: t.m.incarnation, Request: cmd.request, Limits: t.m.cfg.Limits, Buffer: b.emptyEvents(), Most: t.attemptLimit(cmd.command), Refer: t.referValue,
	})
	panicIfSpoiled(err)
	t.m.steps.Add(int64(t.state.Steps - before))
	a := t.answerTo(cmd, err)
	a.changed = len(d.Events)
	if b == nil { // what is in a buffer does not stay
		a.events = d.Events
	}
	t.recordCut(d, t.state.Steps-before+d.Effort/effortOfStep)
	p := t.draftFor(d)
	if p == nil { // nothing is waiting for the store: nothing to wait for
		b.recycleBuffer(d.Events)
		t.performEffects(c, d.Effects)
		cmd.sendAnswer(a)
		t.resumeCutLater(c)
		return
	}
	p.addDecision(d, cmd, a)
	p.newObjects, t.newObjects = append(p.newObjects, t.newObjects...), nil
	t.addUnstored(d.Started)
	b.recycleBuffer(d.Events)
	t.claimNewJobs(p, d.Effects, cmd.orderPoll)
	t.flushDraft(c)
}

// claimNewJobs claims the new jobs of a decision for pollers who wait for them, in the row that the
// jobs begin in.
func (t *task) claimNewJobs(p *journalDraft, effects []flow.Effect, rider *poller) {
	if p != t.openDraft {
		return
	}
	for _, e := range effects {
		if d, ok := e.(flow.Dispatch); ok && d.Job.Exec.Type == flow.ExecQueue {
			if claim := t.m.queue.Load().claimForWaiter(&d.Job, rider); claim != nil {
				claim.unlisted = claim.unlisted && !d.Job.Again
				t.newClaims = append(t.newClaims, claim)
			}
		}
	}
	for ; len(t.newClaims) > 0; t.newClaims = t.newClaims[1:] {
		claim := t.newClaims[0]
		d, err := flow.Decide(t.state, claim.command, flow.Env{Now: t.nowMillis(), Member: t.m.incarnation, Limits: t.m.cfg.Limits})
		panicIfSpoiled(err)
		if claim.unlisted && err == nil {
			t.addUnlisted(claim.command.(flow.Claim).Address)
		}
		p.addDecision(d, claim, t.answerTo(claim, err))
	}
}

// panicIfSpoiled crashes the actor when its state is of no more use: it starts again from the
// store, after a while.
func panicIfSpoiled(err error) {
	if spoiled := new(flow.SpoiledError); errors.As(err, &spoiled) {
		panic(spoiled)
	}
}

// answerTo is what is answered to a command that has just been decided.
func (t *task) answerTo(cmd *taskCommand, err error) commandAnswer {
	switch c := cmd.command.(type) {
	case flow.Claim:
		return t.claimAnswer(c, err)
	case flow.Append:
		if err == nil {
			return commandAnswer{first: t.state.Appended[cmd.request]}
		}
	case flow.Bring:
		if live := t.state.Live(c.Address); live != nil && err == nil {
			return commandAnswer{given: live.Given}
		}
	}
	return commandAnswer{err: err}
}

// claimAnswer is the answer to a claim. One that is decided a second time may be over.
func (t *task) claimAnswer(claim flow.Claim, err error) commandAnswer {
	job, open := t.state.Job(claim.Address)
	switch {
	case err != nil:
		return commandAnswer{err: err, held: job.Until}
	case !open || !t.state.Holds(claim.Address, claim.Token):
		return commandAnswer{err: flow.ErrOver}
	}
	return commandAnswer{job: &job}
}

// draftFor is where a decision waits for the store: with its events, or, without any, behind the
// newest ones it may follow from.
func (t *task) draftFor(d flow.Decision) *journalDraft {
	if len(d.Events) == 0 {
		if t.openDraft != nil {
			return t.openDraft
		}
		return t.inflight
	}
	if t.openDraft == nil {
		t.openDraft = &journalDraft{row: flow.Row{Format: int(t.m.format.Load())}}
	}
	return t.openDraft
}

// flushDraft sends what has gathered, unless a row is in flight: a task has one at a time.
func (t *task) flushDraft(c actor.Context) {
	if t.inflight != nil || t.openDraft == nil || t.waitsForSnapshot(c.Self()) {
		return
	}
	t.inflight, t.openDraft = t.openDraft, nil
	t.seq++
	t.sendCommit(c, t.buildCommit(t.inflight), t.inflight.newObjects...)
}

func (t *task) sendCommit(c actor.Context, commit persistence.Commit, made ...persistence.Object) {
	t.m.committer.enqueueCommit(&pendingCommit{commit: commit, newObjects: made, reply: c.Self(), gen: t.gen})
}

// handleCommitResult is the store's answer. What it has is heard now; anything but "written" is
// forgotten.
func (t *task) handleCommitResult(c actor.Context, w commitResult) {
	if w.gen != t.gen {
		return
	}
	if t.resting == restCommitting {
		t.restWritten(c, w.err)
		return
	}
	p := t.inflight
	if w.err != nil {
		t.discardState(c, w.err)
		return
	}
	t.releaseObjects(p)
	t.m.metrics.countRow(t, p)
	t.m.statistics.countRow(t, p)
	t.sendSpanRow(p)
	t.addUnstored(-p.started)
	t.inflight, t.create, t.begunApart, t.storedResting, t.rowPutToRest, t.refusals = nil, nil, false, p.putsToRest, p.putsToRest, 0
	t.performEffects(c, p.effects)
	if t.hasManyAlarms() {
		t.dropAlarms(t.findIdleAlarms(t.alarms))
	}
	p.sendAnswers(t.state)
	t.m.hub.notifyWatchers(t.id)
	t.flushDraft(c)
	t.decideWaiting(c)
	t.resumeCutLater(c)
	if p.ended != "" {
		t.announceEnd(c, p.ended)
	}
}

// announceEnd says so, and that nobody needs this actor any longer unless there is more to do.
func (t *task) announceEnd(c actor.Context, status flow.TaskStatus) {
	t.m.logFailedTask(t.id, t.state, status)
	if t.idleNow() && t.state.Status.Ended() {
		t.resting = restDone
	}
	c.Send(t.m.tasks, taskEnded{t, status, t.resting == restDone})
}
