package rehearse

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/troupe-engine/troupe/flow"
)

// claimVisibility is the default duration of a claim without heartbeats.
const claimVisibility = time.Minute

// takeJob lets a worker begin a job, if the job is still available.
func (r *player) takeJob(job flow.Job) {
	now, ok := r.state.Job(job.Address)
	if !ok || now.Given != job.Given {
		return
	}
	queue := job.Exec.Type == flow.ExecQueue
	switch {
	case queue && r.decideCommand(flow.Claim{Address: job.Address, Worker: "worker",
		Token: fmt.Sprint("token-", r.decisions), Until: r.env.Now + claimVisibility.Milliseconds()}) != nil:
		return
	case !queue && job.Again:
		_ = r.decideCommand(flow.Begin{Address: job.Address, Carrier: r.env.Member})
	}
	r.reportsAt[job.Address] = 0
	r.carryJob(job, queue)
}

// carryJob simulates one delivery of a job to a worker.
func (r *player) carryJob(job flow.Job, queue bool) {
	again := r.delivered[job.Address]
	r.delivered[job.Address]++
	at := nameOf(job.Address, job.Single)
	if again > 0 {
		at += deliverySuffix + fmt.Sprint(again+1)
	}
	if r.strikesCarrier(FaultCrash, at, job, again) {
		r.loseWorker(job, queue)
		return
	}
	if c := r.beginCall(job); c.Answer.Err == nil {
		r.reportCall(c, job, queue, at, again)
	}
}

// deliverySuffix precedes the number of a repeated delivery in its name.
const deliverySuffix = " delivery "

// beginCall gets the answer, once per attempt.
func (r *player) beginCall(job flow.Job) *Call {
	c := r.calls[job.Address]
	if c == nil {
		c = r.addCall(job)
		c.Answer = r.answer(c)
		if c.Answer.Err != nil {
			r.story.Err = c.Answer.Err
		}
		r.failByFault(c)
	}
	c.Deliveries++
	return c
}

func (r *player) addCall(job flow.Job) *Call {
	c := &Call{Job: job, Name: nameOf(job.Address, job.Single), Number: len(r.story.Calls),
		Began: r.elapsed(), BeganAt: len(r.story.Events)}
	r.calls[job.Address] = c
	r.story.Calls = append(r.story.Calls, c)
	return c
}

// failByFault makes a successful call fail.
func (r *player) failByFault(c *Call) {
	unit := c.Address
	unit.Attempt = 0
	if r.failedUnits[unit] {
		c.Answer = Answer{Error: unavailable, After: c.Answer.After}
		return
	}
	if r.chance.isQuiet() || c.Answer.Error != "" || c.Answer.Silent || r.MayFail != nil && !r.MayFail(c) {
		return
	}
	for _, kind := range []FaultKind{FaultDown, FaultError} {
		if _, yes := r.chance.drawFault(kind, c.Name, nil); yes {
			r.recordStrike(kind, c.Name, 0)
			r.failedUnits[unit] = kind == FaultDown
			c.Answer = Answer{Error: unavailable, After: c.Answer.After}
			return
		}
	}
}

// unavailable is the error of a call that fails by a fault.
const unavailable = "unavailable"

// strikesCarrier reports whether the worker of a job is lost. That happens at most twice per
// attempt: an attempt that always loses its worker would fail, and that would change the result.
func (r *player) strikesCarrier(kind FaultKind, at string, job flow.Job, again int) bool {
	if r.chance.isQuiet() || again >= 2 || !canBeLost(job.Exec.Type) {
		return false
	}
	_, yes := r.chance.drawFault(kind, at, func() (time.Duration, bool) {
		wait := claimVisibility
		if job.Exec.VisibilityMS > 0 {
			wait = flow.Milliseconds(job.Exec.VisibilityMS)
		}
		return 0, job.Exec.Type != flow.ExecQueue || wait < r.timeToTimeout() && job.Exec.HeartbeatMS == 0
	})
	if yes {
		r.recordStrike(kind, at, 0)
	}
	return yes
}

// canBeLost reports whether a worker of this type can be lost without its member: it attaches, or
// claims jobs.
func canBeLost(t flow.ExecType) bool {
	return t == flow.ExecQueue || t == flow.ExecRemote || t == flow.ExecPush
}

// loseWorker handles the loss of a worker: its claim expires, or its member notices the broken
// stream.
func (r *player) loseWorker(job flow.Job, queue bool) {
	if queue {
		return
	}
	life, given := r.memberLife, job.Given
	r.queueAfter(reconnectWait, func() {
		if r.memberLife == life {
			_ = r.decideCommand(flow.Report{Address: job.Address, Lost: true, Given: given})
		}
	})
}

// reconnectWait is how long a member waits for an attached worker with a broken stream.
const reconnectWait = 5 * time.Millisecond

// reportCall schedules the report of a call.
func (r *player) reportCall(c *Call, job flow.Job, queue bool, at string, again int) {
	if c.Answer.Silent {
		return
	}
	d := c.Answer.After
	if by, yes := r.strikesTime(FaultLate, at, d, r.whileOfStory); yes {
		d += by
		r.recordStrike(FaultLate, at, by)
	}
	if r.strikesCarrier(FaultLost, at, job, again) {
		r.queueAfter(d, func() { r.loseWorker(job, queue) })
		return
	}
	token := ""
	if live := r.state.Live(job.Address); queue && live != nil {
		token = live.Token
	}
	r.reportsAt[job.Address] = r.env.Now + d.Milliseconds() + 1
	life := r.memberLife
	say := func() {
		if queue || r.memberLife == life {
			r.takeReport(c, job, token)
		}
	}
	r.queueAfter(d, func() {
		if _, yes := r.chance.drawFault(FaultRestart, at, nil); yes && !r.chance.isQuiet() {
			r.recordStrike(FaultRestart, at, 0)
			r.restartMember()
		}
		say()
	})
	if by, yes := r.strikesTime(FaultTwice, at, d, r.whileOfStory); yes {
		r.recordStrike(FaultTwice, at, by)
		r.queueAfter(d+by, say)
	}
}

// takeReport delivers a report. A report for an attempt that has ended changes nothing.
func (r *player) takeReport(c *Call, job flow.Job, token string) {
	_, open := r.state.Job(job.Address)
	_ = r.decideCommand(flow.Report{Address: job.Address, Output: c.Answer.Output,
		Error: c.Answer.Error, Fatal: c.Answer.Fatal, Worker: "worker", Token: token, Poller: token != ""})
	if _, still := r.state.Job(job.Address); open && !still && !c.Over {
		c.Over, c.OK, c.Ended, c.EndedAt = true, c.Answer.Error == "", r.elapsed(), len(r.story.Events)
	}
}

// nameOf returns the name of an attempt, or of a unit without an attempt: the path of its node,
// [unit] if there are several, and the numbers of later visits and attempts.
func nameOf(a flow.Address, single bool) string {
	var b strings.Builder
	if a.Scope != "" && a.Scope != closingScope {
		b.WriteString(strings.ReplaceAll(a.Scope, "#1", "") + "/")
	}
	b.WriteString(a.Node)
	if !single {
		fmt.Fprintf(&b, "[%d]", a.Unit)
	}
	if a.Visit > 1 {
		fmt.Fprintf(&b, " visit %d", a.Visit)
	}
	if a.Attempt > 1 {
		fmt.Fprintf(&b, " attempt %d", a.Attempt)
	}
	return b.String()
}

// Service returns the service or function of a call.
func (c *Call) Service() string { return cmp.Or(c.Exec.Service, c.Exec.Func) }
