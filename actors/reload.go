package actors

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

func (t *task) load(c actor.Context) {
	t.loading, t.handed = true, nil
	gen, self, m := t.gen, c.Self(), t.m
	m.loader.load(t.id, func(l loaded) {
		l.gen = gen
		m.tell(self, l)
	})
}

// loaded takes the state from the store, takes over what was carried by one who is gone, and then
// answers what has been waiting.
func (t *task) loaded(c actor.Context, l loaded) {
	if l.gen != t.gen {
		return
	}
	t.isUp()
	switch {
	case errors.Is(l.err, persistence.ErrUnreadable):
		t.cannotRead(c, l)
		return
	case l.err != nil:
		t.loadAgain(c, l.err)
		return
	case l.view == nil:
		t.refuseUnknown(c)
		return
	}
	t.loading, t.tries = false, 0
	t.state, t.seq, t.asleep, t.parked = l.view.State, l.view.Seq, l.resting, false
	t.journal, t.snapshot = l.journal, l.snap
	t.columns, t.columnsAt = l.view.Columns, l.view.UpdatedAt
	t.create, t.apart = nil, l.apart
	t.letGoOfAll(c)
	t.m.hub.notify(t.id) // of what was written without an answer
	if t.state.Status.Ended() {
		c.Send(t.m.tasks, ended{t, t.state.Status, false})
	}
	owed := t.unreported(flow.OutstandingTo(t.state, t.m.incarnation))
	c.Send(t.m.sessions, only{task: t.id, owed: owed})
	asks, owed := asksOf(owed)
	t.perform(c, owed)
	switch {
	case !l.resting || t.crashes > 0: // else it is known who has asked
		t.m.asksAnew(asks)
	case t.seq == 1: // it may have been stored by somebody who told nobody; then it has begun nothing yet, and asks for itself alone
		t.m.asksAnew(slices.DeleteFunc(asks, func(ask flow.Ask) bool { return ask.Node != "" }))
	}
	if t.refusals > 0 {
		t.failStep(c, cmp.Or(t.unkept, "the store refuses what follows from it"))
	}
	t.takeOver(c)
	if t.crashes >= manyCrashes {
		t.failStep(c, cmp.Or(t.lacks, "the task's actor keeps crashing"))
	}
	t.goOn(c)
}

func (t *task) isUp() {
	if t.up != nil {
		t.up()
		t.up = nil
	}
}

// takeOver takes over what was carried by members that are gone, and asks those who live for the rest: one of them may not
// know that it carries a job, because who has stored so crashed before it said so. It does so again after a while, as
// the question may share that fate.
func (t *task) takeOver(c actor.Context) {
	recovering := t.m.recovering(t.id)
	recovering.Anew = true
	t.decide(c, &command{cmd: recovering})
	if len(recovering.Alive) == 0 || !t.carriedElsewhere() {
		return
	}
	self, gen := c.Self(), t.gen
	t.m.cfg.Host.Clock.AfterFunc(askAgain, func() { t.m.tell(self, whatOthersCarry{gen}) })
}

// askAgain is how long it is until members are asked again whether they know the jobs they carry.
const askAgain = time.Minute

// whatOthersCarry tells a task to look after jobs that other members carry.
type whatOthersCarry struct{ gen int }

func (t *task) whatOthersCarry(c actor.Context, m whatOthersCarry) {
	if m.gen == t.gen && !t.loading && t.resting == awake {
		t.takeOver(c)
	}
}

// carriedElsewhere says whether other members carry jobs of the task.
func (t *task) carriedElsewhere() bool {
	return slices.ContainsFunc(flow.Outstanding(t.state), func(e flow.Effect) bool {
		job := flow.JobOf(e)
		return job != nil && job.Carrier != "" && job.Carrier != t.m.incarnation
	})
}

// unreported leaves out the jobs whose reports are here already, and are decided next. One that was lost is dispatched
// by that decision, unless the state knows of that loss already.
func (t *task) unreported(owed []flow.Effect) []flow.Effect {
	reported := map[flow.Address]flow.Report{}
	for _, cmd := range slices.Concat(t.alone, t.waiting) {
		if cmd.landed() {
			for _, one := range apart([]*command{cmd}) {
				r := one.cmd.(flow.Report)
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
		return ok && (!r.Lost || r.Given == job.Given)
	})
}

func (t *task) failStep(c actor.Context, text string) {
	for _, st := range t.state.Active() {
		t.decide(c, &command{cmd: flow.FailStep{Address: st.Address(), Error: text}})
	}
}

// goOn decides what is to be tried alone, each after the row of the one before is written, and then
// whatever has been waiting.
func (t *task) goOn(c actor.Context) {
	for len(t.alone) > 0 {
		if t.inflight != nil || t.open != nil {
			return
		}
		cmd := t.alone[0]
		t.alone = t.alone[1:]
		t.decide(c, cmd)
	}
	waiting := t.waiting
	t.waiting = nil
	t.each(waiting, func(cmd *command) { // at once: behind what is in the mailbox it might find the task retiring
		if !t.hold(cmd) {
			t.decide(c, cmd)
		}
	})
}

// letGoOfAll is for a state that is forgotten. What has landed is decided with the next one.
func (t *task) letGoOfAll(c actor.Context) {
	t.reset(c, func(landed []*flight) { t.waiting = append(t.waiting, reportsOf(t.id, landed)) })
}

func (t *task) loadAgain(c actor.Context, err error) {
	t.tries++
	if t.m.ctx.Err() != nil {
		return
	}
	if !errors.As(err, new(notRead)) {
		t.m.log.WarnContext(t.logging(), "a task could not be loaded", "task", t.id, "try", t.tries, "error", err)
	}
	if kind := flow.ErrorKindOf(err); kind != "" {
		for _, cmd := range t.waiting {
			cmd.answer(answer{err: err})
		}
		t.waiting = nil
	}
	self, gen := c.Self(), t.gen
	t.m.cfg.Host.Clock.AfterFunc(reloadPause(err, t.tries), func() { t.m.tell(self, reload{gen}) })
}

// reloadPause is how long a task that could not be loaded waits: it goes on soon after an outage, and what is wrong with itself is seldom looked at.
func reloadPause(err error, tries int) time.Duration {
	if errors.As(err, new(notRead)) {
		return storePause(tries)
	}
	return backOff(tries)
}

func (t *task) refuseUnknown(c actor.Context) {
	for _, cmd := range slices.Concat(t.alone, t.waiting) {
		cmd.answer(answer{err: errNoTask(t.id)})
	}
	t.alone, t.waiting, t.missing = nil, nil, true
	c.Send(t.m.tasks, unknown{t})
}

// forget drops everything this incarnation of the actor knew, and reloads; the commands that have no
// answer yet are decided again.
func (t *task) forget(c actor.Context, err error) {
	sent, gathered := t.inflight.commands(), t.open.commands()
	created := t.create != nil
	t.dropMade()
	t.inflight, t.open, t.more, t.going = nil, nil, nil, false
	t.come(-t.coming)
	t.gen++
	t.letGoOfAll(c)
	switch {
	case errors.Is(err, persistence.ErrRefused) || errors.As(err, new(unkept)):
		t.alone = append(t.suspects(sent, err), t.alone...)
		sent = nil
	case errors.Is(err, persistence.ErrExists):
		// Somebody with the same id was first, perhaps this very request whose answer got lost.
		t.m.log.Info("a task with this id exists", "task", t.id)
	case !errors.Is(err, persistence.ErrStale) && !errors.Is(err, persistence.ErrUnknown) && !errors.Is(err, persistence.ErrNoVersion):
		t.m.log.WarnContext(t.logging(), "a commit failed", "task", t.id, "error", err)
	}
	again := append(sent, gathered...)
	if created {
		again = t.answerStarts(again, err)
		t.alone = t.answerStarts(t.alone, errTogether) // there will be no task that they could be tried with
	}
	t.waiting = append(again, t.waiting...)
	t.load(c)
}

// errTogether is the answer to a start whose first row the store refused, when others were decided behind it.
var errTogether = flow.Errorf(flow.Busy, "the store refused the task's start, or what was asked of the task meanwhile: ask again in a moment")

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
	commands = slices.DeleteFunc(apart(commands), func(cmd *command) bool {
		switch cmd.cmd.(type) {
		case flow.Proceed, flow.Recover: // follow from what is stored: done after every load
			return true
		}
		return false
	})
	switch len(commands) {
	case 0:
		t.refused(err)
		return nil
	case 1:
		return t.blame(commands[0], err)
	}
	return commands
}

// apart has each report by itself.
func apart(commands []*command) (all []*command) {
	for _, cmd := range commands {
		reports, ok := cmd.cmd.(flow.Reports)
		if !ok {
			all = append(all, cmd)
			continue
		}
		for _, r := range reports {
			all = append(all, &command{task: cmd.task, cmd: r})
		}
	}
	return all
}

// blame makes of a command whose consequences the store refuses one that it takes: an attempt fails,
// whoever asked is told. The store's words may hold what it refuses; then they are left out.
func (t *task) blame(cmd *command, err error) []*command {
	cmd.refused++
	text := "internal: the store refused the attempt's result"
	if cmd.refused == 1 {
		text = fmt.Sprintf("%s: %v", text, err)
	}
	elsewhere := errors.As(err, new(unkept)) // it was not the store
	if elsewhere {
		text = err.Error()
	}
	r, isReport := cmd.cmd.(flow.Report)
	x, isExternal := cmd.cmd.(flow.ExternalEnded)
	switch {
	case isReport && cmd.refused <= 2:
		r.Output, r.Deferred, r.Fatal, r.Lost, r.Error = nil, nil, !elsewhere, false, text
		cmd.cmd = r
		return []*command{cmd}
	case isExternal && cmd.refused <= 2:
		x.Output, x.Fatal, x.Error = nil, !elsewhere, text
		cmd.cmd = x
		return []*command{cmd}
	case cmd.reply != nil && elsewhere:
		cmd.answer(answer{err: err})
	case cmd.reply != nil:
		cmd.answer(answer{err: flow.Errorf(flow.Invalid, "the store refused a value of this request: %v", err)})
	default:
		t.m.log.ErrorContext(t.logging(), "the store refuses what a task leads to", "task", t.id, "command", fmt.Sprintf("%T", cmd.cmd), "error", err)
		t.refused(err)
	}
	return nil
}

// refused notes that what is stored already leads to what the store refuses, and why.
func (t *task) refused(err error) {
	t.refusals++
	if t.unkept = ""; errors.As(err, new(unkept)) {
		t.unkept = err.Error()
	}
}
