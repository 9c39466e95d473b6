package actors

import (
	"encoding/json"
	"errors"
	"slices"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/troupe-engine/troupe/actors/journal"
	"github.com/troupe-engine/troupe/actors/metrics"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// task is the actor of one running task and the only owner of the task's state. It decides at once,
// commits the decision, and releases the effects after the commit.
type task struct {
	effectPerformer
	id         string
	state      *flow.State
	gen        int  // generation of the state; answers for an older one are ignored
	hasCrashed bool // this actor has crashed

	loadState
	commandQueue
	rowState
	restState
	turnState
}

// loadState is the progress of loading a task, and the failures of earlier loads and rows.
type loadState struct {
	onLoaded func() // called once when the task is loaded or cannot be; may be nil
	loading  bool
	// the store has no such task; callers get an error until the parent removes the actor
	missing    bool
	unreadable *unreadableTask // set if the task cannot be read; loading stays true in that case
	tries      int             // tries to load
	crashes    int             // crashes of earlier actors of this task
	// value that the last actor lacked when it crashed; "" if none
	missingValue string
	refusals     int // consecutive refusals that no command caused
	// error of the last failed write of objects; "" if the last refusal had another reason
	objectError string
}

// commandQueue holds the commands that are not yet decided.
type commandQueue struct {
	// commands that arrived during loading, or while isolated commands are tried
	waiting   []*taskCommand
	deciding  []*taskCommand // commands being decided, one after another
	newClaims []*taskCommand // claims of jobs that have just started, being decided like deciding
	// commands to be tried one by one, because the store refused a row from one of them
	isolated []*taskCommand
}

// rowState is the part of a task's journal that its actor needs for the next row.
type rowState struct {
	create *persistence.Create // set until the first row is written
	// Begin stored the first row, and no second row exists yet
	begunApart    bool
	seq           int64 // number of the last row sent to the store
	inflight      *journalDraft
	openDraft     *journalDraft // collects decisions while a row is in flight
	storedResting bool          // the store lists the task as resting
	rowPutToRest  bool          // the last row of this actor put the task to rest

	journal   int // bytes of rows since the snapshot
	snapshot  int // bytes of the last snapshot
	columns   persistence.Columns
	columnsAt int64
	unlisted  unlistedJobs
	counted   *metrics.StatisticsPart // statistics that count the rows of this task

	// replaces large values of decisions by references; nil if there is no place for them
	referValue func(v json.RawMessage) json.RawMessage
	newObjects []persistence.Object // objects of the current decision
}

// restState is the progress of a task's retirement.
type restState struct {
	resting   restPhase
	movesAway bool       // the task rests, or soon will, because another member will own it
	flushing  *stepFlush // flush of the step actors before the rest; nil if none
	// the next load of the task continues the work
	unfinished bool
}

// turnState is the work that a task has postponed, or has decided but not yet stored.
type turnState struct {
	cutCommands      []flow.Command // remaining parts of cut decisions
	cutScheduled     bool           // the continuation of cutCommands is scheduled
	cutAt            int64          // when the continuation was scheduled, in Unix milliseconds
	unstoredAttempts int            // attempts in inflight and openDraft
	pace             stepPace
}

// newTask returns the actor of a task that is being started.
func newTask(m *Member, c *createTask) *task {
	return &task{effectPerformer: effectPerformer{m: m, task: c.task}, id: c.task,
		state: flow.NewState(c.task, c.plan), rowState: rowState{create: c.create}}
}

// storedTask returns the actor of a task that still must be loaded.
func storedTask(m *Member, id string) *task {
	return &task{effectPerformer: effectPerformer{m: m, task: id}, id: id, loadState: loadState{loading: true}}
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
	case journal.Written:
		t.handleCommitResult(c, m)
	case journal.Loaded:
		t.loadPart().applyLoaded(c, m)
	case abandonResult:
		t.loadPart().finishAbandon(c, m)
	case reloadTask:
		if m.gen == t.gen && t.loading {
			t.loadPart().requestLoad(c)
		}
	case recheckCarriers:
		t.loadPart().recheckCarriers(c, m)
	case alarmsDue:
		t.fireAlarms(c)
	case resumeCut:
		t.turnPart().resumeCut(c, m)
	case journal.SnapshotTurn:
		t.flushDraft(c)
	case stepsFlushed:
		t.restPart().finishFlush(c, m)
	case restRequest:
		t.restPart().tryRest(c, m)
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

// handleCommand decides a command if the state allows it now. A retiring actor returns the command
// to the tasks actor for its successor.
func (t *task) handleCommand(c actor.Context, m *taskCommand) {
	switch {
	case t.resting != restNone:
		c.Send(t.m.tasks, m)
	case t.unreadable != nil:
		t.loadPart().answerUnread(c, m)
	case !t.holdCommand(m):
		t.decideCommand(c, m)
	}
}

// handleStop releases all resources of the actor except its state.
func (t *task) handleStop(message any) {
	switch message.(type) {
	case *actor.Stopping:
		t.close()
	case *actor.Stopped:
		t.loadPart().notifyLoaded()
		t.turnPart().addUnstored(-t.unstoredAttempts)
		t.m.counts.taskActors.Add(-1)
		if t.movesAway {
			t.m.sendMessage(t.m.tasks, taskDeparted{t})
		}
	}
}

// forwardMessage handles a message of a crashed actor: it returns commands to the tasks actor for
// the next actor.
func (t *task) forwardMessage(message any) {
	if cmd, ok := message.(*taskCommand); ok {
		t.m.sendMessage(t.m.tasks, cmd)
	}
	t.handleStop(message)
}

// answerCrashed answers the unfinished commands of a crashed actor. Reports of jobs go to the next
// actor instead, so that their work is not repeated.
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
	t.m.counts.taskActors.Add(1)
	t.referValue = t.journalPart().referenceFunc()
	t.bindActor(c.Self(), "", &inbox{m: t.m, taskOwner: ownerAt(c.Self())})
	if t.loading {
		t.loadPart().requestLoad(c)
	}
}

// answerOnPanic answers all waiting callers with an error when the actor panics. The parent starts
// another actor, which gets the reports.
func (t *task) answerOnPanic(c actor.Context) {
	reason := recover()
	if reason == nil {
		return
	}
	t.hasCrashed = true
	t.journalPart().dropUnstoredObjects()
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

// holdCommand keeps a command that cannot be decided yet: the state is loading, isolated commands
// are tried, or the draft is full. It reports whether it has handled the command.
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

// fireAlarms decides due alarms. It does nothing for a retiring task, because the store keeps the
// time of the next alarm.
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

// decideReports decides the reports in the inbox of the task.
func (t *task) decideReports(c actor.Context) {
	var cmds []*taskCommand
	t.inbox.takeReports(func(landed []*activeJob) { cmds = append(cmds, reportsOf(t.id, landed)) })
	t.decideInTurn(cmds, func(cmd *taskCommand) { t.handleCommand(c, cmd) })
}

// decideInTurn handles commands in order. It keeps the remaining ones in t.deciding, so that a
// crash does not lose them.
func (t *task) decideInTurn(cmds []*taskCommand, do func(*taskCommand)) {
	for t.deciding = cmds; len(t.deciding) > 0; t.deciding = t.deciding[1:] {
		do(t.deciding[0])
	}
}

// sendOutstanding sends the actor of a step its outstanding effects after the previous rows are
// stored. It does nothing while the task is loading, because the children are gone then. Jobs of
// other members are dispatched again, because the crash may have preceded their dispatch.
func (t *task) sendOutstanding(c actor.Context, at flow.Address) {
	if t.loading {
		return
	}
	carriers := append(t.m.peers.aliveMembers(), t.m.incarnation)
	below := slices.DeleteFunc(flow.OutstandingOf(t.state, at, carriers...), isQueueEffect)
	all := []flow.Effect{outstandingEffects{flow.Spawn{Address: at}, below}}
	if p := t.draftFor(flow.Decision{}); p != nil {
		p.effects = append(p.effects, all...)
		return
	}
	t.performEffects(c, all)
}

// nowMillis returns the time of the task, which never runs backwards. The clock of a previous owner
// may have been slightly ahead.
func (t *task) nowMillis() int64 { return max(t.m.nowMillis(), t.state.UpdatedAt) }

// decideCommand lets the core decide a command, adds the decision to the draft, and sends the draft
// to the store.
func (t *task) decideCommand(c actor.Context, cmd *taskCommand) {
	before := t.state.Steps
	b := eventBufferFor(cmd)
	d, err := flow.Decide(t.state, t.withSigns(cmd.command), flow.Env{
		Now: t.nowMillis(), Member: t.m.incarnation, Request: cmd.request, Limits: t.m.cfg.Limits,
		Buffer: b.emptyEvents(), Most: t.turnPart().attemptLimit(cmd.command), Refer: t.referValue,
	})
	panicIfSpoiled(err)
	t.m.counts.steps.Add(int64(t.state.Steps - before))
	a := t.answerTo(cmd, err)
	a.changed = len(d.Events)
	if b == nil { // events in a buffer cannot be kept
		a.events = d.Events
	}
	t.turnPart().recordCut(d, t.state.Steps-before+d.Effort/effortOfStep)
	p := t.draftFor(d)
	if p == nil { // no row is pending, so the answer does not wait
		b.recycleBuffer(d.Events)
		t.performEffects(c, d.Effects)
		cmd.sendAnswer(a)
		t.turnPart().resumeCutLater(c)
		return
	}
	p.addDecision(d, cmd, a)
	p.newObjects, t.newObjects = append(p.newObjects, t.newObjects...), nil
	t.turnPart().addUnstored(d.Started)
	b.recycleBuffer(d.Events)
	t.claimNewJobs(p, d.Effects, cmd.orderPoll)
	t.flushDraft(c)
}

// claimNewJobs claims the new jobs of a decision for waiting pollers, in the row that starts the
// jobs.
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
			t.journalPart().addUnlisted(claim.command.(flow.Claim).Address)
		}
		p.addDecision(d, claim, t.answerTo(claim, err))
	}
}

// panicIfSpoiled panics if the state is unusable, so that the actor restarts from the store after a
// pause.
func panicIfSpoiled(err error) {
	if spoiled := new(flow.SpoiledError); errors.As(err, &spoiled) {
		panic(spoiled)
	}
}

// answerTo returns the answer to a command that was just decided.
func (t *task) answerTo(cmd *taskCommand, err error) commandAnswer {
	switch c := cmd.command.(type) {
	case flow.Claim:
		return t.claimAnswer(c, err)
	case flow.RecordSteps:
		if err == nil && t.state.CodeStops(c.Address) {
			err = flow.ErrCodeStops
		}
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

// claimAnswer returns the answer to a claim. A claim that is decided twice may have ended, and gets
// flow.ErrOver.
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

// draftFor returns the draft that the answer of a decision waits for. With events, this is the open
// draft. Without events, it is the newest unstored one, because the decision may depend on it.
func (t *task) draftFor(d flow.Decision) *journalDraft {
	if len(d.Events) == 0 {
		if t.openDraft != nil {
			return t.openDraft
		}
		return t.inflight
	}
	if t.openDraft == nil {
		t.openDraft = &journalDraft{row: flow.Row{Format: t.m.lease.RowFormat()}}
	}
	return t.openDraft
}

// flushDraft sends the open draft, unless a row of the task is in flight.
func (t *task) flushDraft(c actor.Context) {
	if t.inflight != nil || t.openDraft == nil || t.journalPart().waitsForSnapshot(c.Self()) {
		return
	}
	t.inflight, t.openDraft = t.openDraft, nil
	t.seq++
	t.sendCommit(c, t.journalPart().buildCommit(t.inflight), t.inflight.newObjects...)
}

func (t *task) sendCommit(c actor.Context, commit persistence.Commit, made ...persistence.Object) {
	t.m.committer.Enqueue(&journal.Pending{Commit: commit, NewObjects: made, Reply: c.Self(), Gen: t.gen})
}

// handleCommitResult handles the answer of the store. It releases the effects and answers of a
// written row. After any other answer it drops the state and reloads the task.
func (t *task) handleCommitResult(c actor.Context, w journal.Written) {
	if w.Gen != t.gen {
		return
	}
	if t.resting == restCommitting {
		t.restPart().restWritten(c, w.Err)
		return
	}
	p := t.inflight
	if w.Err != nil {
		t.loadPart().discardState(c, w.Err)
		return
	}
	t.journalPart().releaseObjects(p)
	t.journalPart().countRow(p)
	t.journalPart().sendSpanRow(p)
	t.turnPart().addUnstored(-p.started)
	t.inflight, t.create, t.begunApart, t.storedResting, t.rowPutToRest, t.refusals = nil, nil, false, p.putsToRest, p.putsToRest, 0
	t.performEffects(c, p.effects)
	if t.hasManyAlarms() {
		t.dropAlarms(t.findIdleAlarms(t.alarms))
	}
	p.sendAnswers(t.state)
	t.m.hub.NotifyWatchers(t.id)
	t.flushDraft(c)
	t.loadPart().decideWaiting(c)
	t.turnPart().resumeCutLater(c)
	if p.ended != "" {
		t.announceEnd(c, p.ended)
	}
}

// announceEnd notifies the parent that the task has ended, and whether the actor has nothing more
// to do.
func (t *task) announceEnd(c actor.Context, status flow.TaskStatus) {
	t.m.endPart().logFailedTask(t.id, t.state, status)
	if t.idleNow() && t.state.Status.Ended() {
		t.finishWork()
	}
	c.Send(t.m.tasks, taskEnded{t, status, t.resting == restDone})
}
