package rehearse

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/troupe-engine/troupe/flow"
)

// visibility is how long a claim holds by which nothing is heard, where the node says nothing.
const visibility = time.Minute

// take has somebody begin with a job, if it is still to be had.
func (r *player) take(job flow.Job) {
	now, ok := r.state.Job(job.Address)
	if !ok || now.Given != job.Given {
		return
	}
	queue := job.Exec.Type == flow.ExecQueue
	switch {
	case queue && r.do(flow.Claim{Address: job.Address, Worker: "worker", Token: fmt.Sprint("token-", r.made), Until: r.env.Now + visibility.Milliseconds()}) != nil:
		return
	case !queue && job.Again:
		_ = r.do(flow.Begin{Address: job.Address, Carrier: r.env.Member})
	}
	r.holds[job.Address] = 0
	r.carry(job, queue)
}

// carry is one delivery of a job to somebody who carries it out.
func (r *player) carry(job flow.Job, queue bool) {
	again := r.delivered[job.Address]
	r.delivered[job.Address]++
	at := nameOf(job.Address, job.Single)
	if again > 0 {
		at += delivery + fmt.Sprint(again+1)
	}
	if r.strikesCarrier(FaultCrash, at, job, again) {
		r.lose(job, queue)
		return
	}
	if c := r.begin(job); c.Answer.Err == nil {
		r.report(c, job, queue, at, again)
	}
}

// delivery goes before the number of one that is not the first.
const delivery = " delivery "

// begin asks for the answer, once for each attempt.
func (r *player) begin(job flow.Job) *Call {
	c := r.calls[job.Address]
	if c == nil {
		c = r.called(job)
		c.Answer = r.answer(c)
		if c.Answer.Err != nil {
			r.story.Err = c.Answer.Err
		}
		r.misfire(c)
	}
	c.Deliveries++
	return c
}

func (r *player) called(job flow.Job) *Call {
	c := &Call{Job: job, Name: nameOf(job.Address, job.Single), Number: len(r.story.Calls), Began: r.now(), BeganAt: len(r.story.Events)}
	r.calls[job.Address] = c
	r.story.Calls = append(r.story.Calls, c)
	return c
}

// misfire has a call fail that would have gone well.
func (r *player) misfire(c *Call) {
	unit := c.Address
	unit.Attempt = 0
	if r.down[unit] {
		c.Answer = Answer{Error: unavailable, After: c.Answer.After}
		return
	}
	if r.chance.quiet() || c.Answer.Error != "" || c.Answer.Silent || r.MayFail != nil && !r.MayFail(c) {
		return
	}
	for _, kind := range []FaultKind{FaultDown, FaultError} {
		if _, yes := r.chance.strikes(kind, c.Name, nil); yes {
			r.struck(kind, c.Name, 0)
			r.down[unit] = kind == FaultDown
			c.Answer = Answer{Error: unavailable, After: c.Answer.After}
			return
		}
	}
}

// unavailable is what a call fails with by misfortune.
const unavailable = "unavailable"

// strikesCarrier says whether the one who carries a job out is lost. That happens twice to an attempt at most: one that loses its carrier each time is
// given up, and then it does matter.
func (r *player) strikesCarrier(kind FaultKind, at string, job flow.Job, again int) bool {
	if r.chance.quiet() || again >= 2 || !losable(job.Exec.Type) {
		return false
	}
	_, yes := r.chance.strikes(kind, at, func() (time.Duration, bool) {
		wait := visibility
		if job.Exec.VisibilityMS > 0 {
			wait = flow.Milliseconds(job.Exec.VisibilityMS)
		}
		return 0, job.Exec.Type != flow.ExecQueue || wait < r.leeway() && job.Exec.HeartbeatMS == 0
	})
	if yes {
		r.struck(kind, at, 0)
	}
	return yes
}

// losable says whether a worker can be lost without its member: one that attaches, or claims.
func losable(t flow.ExecType) bool {
	return t == flow.ExecQueue || t == flow.ExecRemote || t == flow.ExecHTTP
}

// lose is what follows when a worker is gone: its claim runs out, or its member hears that its stream is over.
func (r *player) lose(job flow.Job, queue bool) {
	if queue {
		return
	}
	life, given := r.life, job.Given
	r.after(resume, func() {
		if r.life == life {
			_ = r.do(flow.Report{Address: job.Address, Lost: true, Given: given})
		}
	})
}

// resume is how long a member waits for an attached worker whose stream has broken.
const resume = 5 * time.Millisecond

// report tells what came of a call when it is done.
func (r *player) report(c *Call, job flow.Job, queue bool, at string, again int) {
	if c.Answer.Silent {
		return
	}
	d := c.Answer.After
	if by, yes := r.strikesTime(FaultLate, at, d, r.whileOfStory); yes {
		d += by
		r.struck(FaultLate, at, by)
	}
	if r.strikesCarrier(FaultLost, at, job, again) {
		r.after(d, func() { r.lose(job, queue) })
		return
	}
	token := ""
	if live := r.state.Live(job.Address); queue && live != nil {
		token = live.Token
	}
	r.holds[job.Address] = r.env.Now + d.Milliseconds() + 1
	life := r.life
	say := func() {
		if queue || r.life == life {
			r.land(c, job, token)
		}
	}
	r.after(d, func() {
		if _, yes := r.chance.strikes(FaultRestart, at, nil); yes && !r.chance.quiet() {
			r.struck(FaultRestart, at, 0)
			r.restart()
		}
		say()
	})
	if by, yes := r.strikesTime(FaultTwice, at, d, r.whileOfStory); yes {
		r.struck(FaultTwice, at, by)
		r.after(d+by, say)
	}
}

// land has a report taken. One about an attempt that is over changes nothing.
func (r *player) land(c *Call, job flow.Job, token string) {
	_, open := r.state.Job(job.Address)
	_ = r.do(flow.Report{Address: job.Address, Output: c.Answer.Output, Error: c.Answer.Error, Fatal: c.Answer.Fatal, Worker: "worker", Token: token, Poller: token != ""})
	if _, still := r.state.Job(job.Address); open && !still && !c.Over {
		c.Over, c.OK, c.Ended, c.EndedAt = true, c.Answer.Error == "", r.now(), len(r.story.Events)
	}
}

// nameOf names an attempt, or, without one, its unit: the path of its node, [unit] where there are several, and what is not the first visit or attempt.
func nameOf(a flow.Address, single bool) string {
	var b strings.Builder
	if a.Scope != "" && a.Scope != closing {
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
