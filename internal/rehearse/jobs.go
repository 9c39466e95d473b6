package rehearse

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/troupe-engine/troupe/flow"
)

// claimVisibility is how long a claim holds by which nothing is heard, where the node says nothing.
const claimVisibility = time.Minute

// takeJob has somebody begin with a job, if it is still to be had.
func (r *player) takeJob(job flow.Job) {
	now, ok := r.state.Job(job.Address)
	if !ok || now.Given != job.Given {
		return
	}
	queue := job.Exec.Type == flow.ExecQueue
	switch {
	case queue && r.decideCommand(flow.Claim{Address: job.Address, Worker: "worker", Token: fmt.Sprint("token-", r.decisions), Until: r.env.Now + claimVisibility.Milliseconds()}) != nil:
		return
	case !queue && job.Again:
		_ = r.decideCommand(flow.Begin{Address: job.Address, Carrier: r.env.Member})
	}
	r.reportsAt[job.Address] = 0
	r.carryJob(job, queue)
}

// carryJob is one delivery of a job to somebody who carries it out.
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

// deliverySuffix goes before the number of one that is not the first.
const deliverySuffix = " delivery "

// beginCall asks for the answer, once for each attempt.
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
	c := &Call{Job: job, Name: nameOf(job.Address, job.Single), Number: len(r.story.Calls), Began: r.elapsed(), BeganAt: len(r.story.Events)}
	r.calls[job.Address] = c
	r.story.Calls = append(r.story.Calls, c)
	return c
}

// failByFault has a call fail that would have gone well.
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

// unavailable is what a call fails with by misfortune.
const unavailable = "unavailable"

// strikesCarrier reports whether the one who carries a job out is lost. That happens twice to an
// attempt at most: one that loses its carrier each time is given up, and then it does matter.
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

// canBeLost reports whether a worker can be lost without its member: one that attaches, or claims.
func canBeLost(t flow.ExecType) bool {
	return t == flow.ExecQueue || t == flow.ExecRemote || t == flow.ExecHTTP
}

// loseWorker is what follows when a worker is gone: its claim runs out, or its member hears that
// its stream is over.
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

// reconnectWait is how long a member waits for an attached worker whose stream has broken.
const reconnectWait = 5 * time.Millisecond

// reportCall tells what came of a call when it is done.
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

// takeReport has a report taken. One about an attempt that is over changes nothing.
func (r *player) takeReport(c *Call, job flow.Job, token string) {
	_, open := r.state.Job(job.Address)
	_ = r.decideCommand(flow.Report{Address: job.Address, Output: c.Answer.Output, Error: c.Answer.Error, Fatal: c.Answer.Fatal, Worker: "worker", Token: token, Poller: token != ""})
	if _, still := r.state.Job(job.Address); open && !still && !c.Over {
		c.Over, c.OK, c.Ended, c.EndedAt = true, c.Answer.Error == "", r.elapsed(), len(r.story.Events)
	}
}

// nameOf names an attempt, or, without one, its unit: the path of its node, [unit] where there are
// several, and what is not the first visit or attempt.
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

// Service is who carries a call out: its service, or its function.
func (c *Call) Service() string { return cmp.Or(c.Exec.Service, c.Exec.Func) }
