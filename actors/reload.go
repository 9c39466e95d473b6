package actors

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/troupe-engine/troupe/actors/background"
	"github.com/troupe-engine/troupe/actors/journal"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

func (t taskLoading) requestLoad(c actor.Context) {
	t.loading, t.unlisted = true, nil
	gen, self, m := t.gen, c.Self(), t.m
	m.loader.Load(t.id, func(l journal.Loaded) {
		l.Gen = gen
		m.sendMessage(self, l)
	})
}

// applyLoaded takes over the loaded state, recovers the jobs of members that are gone, and decides
// the waiting commands.
func (t taskLoading) applyLoaded(c actor.Context, l journal.Loaded) {
	if l.Gen != t.gen {
		return
	}
	t.notifyLoaded()
	switch {
	case errors.Is(l.Err, persistence.ErrUnreadable):
		t.markUnreadable(c, l)
		return
	case l.Err != nil:
		t.retryLoad(c, l.Err)
		return
	case l.View == nil:
		t.refuseUnknown(c)
		return
	}
	t.loading, t.tries = false, 0
	t.state, t.seq, t.storedResting, t.rowPutToRest = l.View.State, l.View.Seq, l.Resting, false
	t.journal, t.snapshot = l.Journal, l.SnapshotSize
	t.columns, t.columnsAt = l.View.Columns, l.View.UpdatedAt
	t.create, t.begunApart = nil, l.BegunApart
	t.resetSteps(c)
	t.m.hub.NotifyWatchers(t.id) // notify of rows that were written without an answer
	if t.state.Status.Ended() {
		c.Send(t.m.tasks, taskEnded{t.task, t.state.Status, false})
	}
	owed := t.withoutReported(flow.OutstandingTo(t.state, t.m.incarnation))
	c.Send(t.m.sessions, outstandingJobs{task: t.id, owed: owed})
	asks, owed := splitAsks(owed)
	t.performEffects(c, owed)
	switch {
	case !l.Resting || t.crashes > 0: // after an orderly rest, no permit request is uncertain
		t.m.carryPart().requeueAsks(asks)
	// Begin may have stored the only row without a notice; the task has started nothing yet, so
	// only its own permit request is queued
	case t.seq == 1:
		t.m.carryPart().requeueAsks(slices.DeleteFunc(asks, func(ask flow.Ask) bool { return ask.Node != "" }))
	}
	if t.refusals > 0 {
		t.failActiveSteps(c, cmp.Or(t.objectError, "the store refuses what follows from it"))
	}
	t.recoverJobs(c)
	if t.crashes >= manyCrashes {
		t.failActiveSteps(c, cmp.Or(t.missingValue, "the task's actor keeps crashing"))
	}
	t.decideWaiting(c)
}

func (t taskLoading) notifyLoaded() {
	if t.onLoaded != nil {
		t.onLoaded()
		t.onLoaded = nil
	}
}

// recoverJobs recovers the jobs of members that are gone, and sends live members their jobs again.
// A live member lacks a job if the actor crashed between the commit and the dispatch. The request
// is repeated after recheckAfter, because it may be lost in the same way.
func (t taskLoading) recoverJobs(c actor.Context) {
	recovering := t.m.peers.recoverCommand(t.id)
	recovering.Anew = true
	t.decideCommand(c, &taskCommand{command: recovering})
	if len(recovering.Alive) == 0 || !t.hasForeignCarriers() {
		return
	}
	self, gen := c.Self(), t.gen
	t.m.work.After(recheckAfter, func() { t.m.sendMessage(self, recheckCarriers{gen}) })
}

// recheckAfter is the interval at which other members are asked whether they still have jobs.
const recheckAfter = time.Minute

// recheckCarriers makes a task check the jobs that other members carry out.
type recheckCarriers struct{ gen int }

func (t taskLoading) recheckCarriers(c actor.Context, m recheckCarriers) {
	if m.gen == t.gen && !t.loading && t.resting == restNone {
		t.recoverJobs(c)
	}
}

// hasForeignCarriers reports whether other members carry out jobs of the task.
func (t taskLoading) hasForeignCarriers() bool {
	return slices.ContainsFunc(flow.Outstanding(t.state), func(e flow.Effect) bool {
		job := flow.JobOf(e)
		return job != nil && job.Carrier != "" && job.Carrier != t.m.incarnation
	})
}

// withoutReported removes the jobs whose reports have arrived and are decided next. It keeps a job
// reported as lost if the state already contains that loss. It also keeps a function flow whose
// report is of another delivery.
func (t taskLoading) withoutReported(owed []flow.Effect) []flow.Effect {
	reported := map[flow.Address]flow.Report{}
	for _, cmd := range slices.Concat(t.isolated, t.waiting) {
		if cmd.isJobReport() {
			for _, one := range splitReports([]*taskCommand{cmd}) {
				r := one.command.(flow.Report)
				reported[r.Address] = r
			}
		}
	}
	if len(reported) == 0 {
		return owed
	}
	return slices.DeleteFunc(owed, func(e flow.Effect) bool {
		job := flow.JobOf(e)
		if job == nil {
			return false
		}
		r, ok := reported[job.Address]
		return ok && (!r.Lost && job.Exec.Type != flow.ExecCode || r.Given == job.Given)
	})
}

func (t taskLoading) failActiveSteps(c actor.Context, text string) {
	for _, st := range t.state.Active() {
		t.decideCommand(c, &taskCommand{command: flow.FailStep{Address: st.Address(), Error: text}})
	}
}

// decideWaiting decides the isolated commands, each after the row of the previous one is written.
// Then it decides the waiting commands.
func (t taskLoading) decideWaiting(c actor.Context) {
	for len(t.isolated) > 0 {
		if t.inflight != nil || t.openDraft != nil {
			return
		}
		cmd := t.isolated[0]
		t.isolated = t.isolated[1:]
		t.decideCommand(c, cmd)
	}
	waiting := t.waiting
	t.waiting = nil
	// sent through the mailbox, the commands could find the task retiring
	t.decideInTurn(waiting, func(cmd *taskCommand) {
		if !t.holdCommand(cmd) {
			t.decideCommand(c, cmd)
		}
	})
}

// resetSteps drops the step actors together with the state. Their reports are kept and decided
// after the reload.
func (t taskLoading) resetSteps(c actor.Context) {
	t.resetPerformer(c, func(landed []*activeJob) { t.waiting = append(t.waiting, reportsOf(t.id, landed)) })
}

func (t taskLoading) retryLoad(c actor.Context, err error) {
	t.tries++
	if t.m.work.HasEnded() {
		return
	}
	if !errors.As(err, new(journal.StoreReadError)) {
		t.m.log.WarnContext(t.logContext(), "loading a task failed", "task", t.id, "try", t.tries, "error", err)
	}
	if kind := flow.ErrorKindOf(err); kind != "" {
		for _, cmd := range t.waiting {
			cmd.sendAnswer(commandAnswer{err: err})
		}
		t.waiting = nil
	}
	self, gen := c.Self(), t.gen
	t.m.work.After(reloadPause(err, t.tries), func() { t.m.sendMessage(self, reloadTask{gen}) })
}

// reloadPause returns the pause before the next try to load a task. The pause stays short for an
// outage of the store, and grows for errors of the task itself.
func reloadPause(err error, tries int) time.Duration {
	if errors.As(err, new(journal.StoreReadError)) {
		return background.StorePause(tries)
	}
	return background.BackOff(tries)
}

func (t taskLoading) refuseUnknown(c actor.Context) {
	for _, cmd := range slices.Concat(t.isolated, t.waiting) {
		cmd.sendAnswer(commandAnswer{err: errNoTask(t.id)})
	}
	t.isolated, t.waiting, t.missing = nil, nil, true
	c.Send(t.m.tasks, taskUnknown{t.task})
}

// discardState drops the state of the actor and reloads the task. Commands without an answer are
// decided again.
func (t taskLoading) discardState(c actor.Context, err error) {
	sent, gathered := t.inflight.commands(), t.openDraft.commands()
	created := t.create != nil
	t.journalPart().dropUnstoredObjects()
	t.inflight, t.openDraft, t.cutCommands, t.cutScheduled = nil, nil, nil, false
	t.turnPart().addUnstored(-t.unstoredAttempts)
	t.gen++
	t.resetSteps(c)
	switch {
	case errors.Is(err, persistence.ErrRefused) || errors.As(err, new(journal.ObjectWriteError)):
		t.isolated = append(t.isolateSuspects(sent, err), t.isolated...)
		sent = nil
	case errors.Is(err, persistence.ErrExists):
		// A task with this id exists. It may come from the same request, if the answer to that
		// request was lost.
		t.m.log.Info("a task with this ID exists", "task", t.id)
	case !errors.Is(err, persistence.ErrStale) && !errors.Is(err, persistence.ErrUnknown) && !errors.Is(err, persistence.ErrNoVersion):
		t.m.log.WarnContext(t.logContext(), "commit failed", "task", t.id, "error", err)
	}
	again := append(sent, gathered...)
	if created {
		again = t.answerStarts(again, err)
		// without the start there is no task, so the other commands cannot be tried
		t.isolated = t.answerStarts(t.isolated, errStartRefused)
	}
	t.waiting = append(again, t.waiting...)
	t.requestLoad(c)
}

// errStartRefused is the answer to a start whose first row the store refused together with later
// commands.
var errStartRefused = flow.Errorf(flow.Busy,
	"the store refused the task's start, or what was asked of the task meanwhile: ask again in a moment")

// answerStarts answers the starts among the commands and returns the others.
func (t taskLoading) answerStarts(commands []*taskCommand, err error) (rest []*taskCommand) {
	for _, cmd := range commands {
		if _, ok := cmd.command.(flow.Start); ok {
			cmd.sendAnswer(commandAnswer{err: err})
			continue
		}
		rest = append(rest, cmd)
	}
	return rest
}

// isolateSuspects returns the commands that may have led to a row that the store refuses. They are
// tried one by one, so that only the bad one fails. A single command is amended instead.
func (t taskLoading) isolateSuspects(commands []*taskCommand, err error) []*taskCommand {
	commands = slices.DeleteFunc(splitReports(commands), func(cmd *taskCommand) bool {
		switch cmd.command.(type) {
		// these follow from stored rows and are repeated after every load
		case flow.Proceed, flow.Recover:
			return true
		}
		return false
	})
	switch len(commands) {
	case 0:
		t.noteRefusal(err)
		return nil
	case 1:
		return t.amendRefused(commands[0], err)
	}
	return commands
}

// splitReports splits commands with several reports into one command each.
func splitReports(commands []*taskCommand) (all []*taskCommand) {
	for _, cmd := range commands {
		reports, ok := cmd.command.(flow.Reports)
		if !ok {
			all = append(all, cmd)
			continue
		}
		for _, r := range reports {
			all = append(all, &taskCommand{task: cmd.task, command: r})
		}
	}
	return all
}

// amendRefused changes a command whose row the store refuses: an attempt fails, or a caller gets an
// error. The text of the store's error is omitted after a second refusal, because it may contain
// the refused value.
func (t taskLoading) amendRefused(cmd *taskCommand, err error) []*taskCommand {
	cmd.refused++
	text := "internal: the store refused the attempt's result"
	if cmd.refused == 1 {
		text = fmt.Sprintf("%s: %v", text, err)
	}
	elsewhere := errors.As(err, new(journal.ObjectWriteError)) // the store did not refuse the row
	if elsewhere {
		text = err.Error()
	}
	r, isReport := cmd.command.(flow.Report)
	x, isExternal := cmd.command.(flow.ExternalEnded)
	switch {
	case isReport && cmd.refused <= 2:
		r.Output, r.Deferred, r.Fatal, r.Lost, r.Error = nil, nil, !elsewhere, false, text
		cmd.command = r
		return []*taskCommand{cmd}
	case isExternal && cmd.refused <= 2:
		x.Output, x.Fatal, x.Error = nil, !elsewhere, text
		cmd.command = x
		return []*taskCommand{cmd}
	case cmd.reply != nil && elsewhere:
		cmd.sendAnswer(commandAnswer{err: err})
	case cmd.reply != nil:
		cmd.sendAnswer(commandAnswer{err: flow.Errorf(flow.Invalid, "the store refused a value of this request: %v", err)})
	default:
		t.m.log.ErrorContext(t.logContext(), "store rejected the commit of a task", "task", t.id,
			"command", fmt.Sprintf("%T", cmd.command), "error", err)
		t.noteRefusal(err)
	}
	return nil
}

// noteRefusal counts a refusal of a row that no command caused, and records its reason.
func (t taskLoading) noteRefusal(err error) {
	t.refusals++
	if t.objectError = ""; errors.As(err, new(journal.ObjectWriteError)) {
		t.objectError = err.Error()
	}
}
