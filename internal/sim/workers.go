package sim

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
)

// tell gives a command to a task.
func tell(ctx context.Context, m engine.Engine, task string, cmd flow.Command, request string) error {
	_, err := m.Do(ctx, engine.Order{Task: task, Command: cmd, Request: request})
	return err
}

// complete reports the end of a job.
func complete(ctx context.Context, m engine.Engine, job string, r flow.Report) error {
	order, err := engine.Completing(job, r)
	if err == nil {
		_, err = m.Do(ctx, order)
	}
	return err
}

// poller takes queue jobs.
type poller struct {
	*stage
	name string
}

func (p *poller) live() {
	for {
		ctx, stop := p.patience()
		quiet := p.quiet()
		jobs, err := p.anyMember().Poll(ctx, engine.Poll{Worker: p.name, Services: p.services(), Max: 1 + p.w.rng.IntN(4), Wait: p.w.upTo(2 * time.Second), Unlisted: p.w.chance(700)})
		stop()
		if err != nil {
			p.impatient(quiet, "Poll", err)
			p.w.sleep(20*time.Millisecond + p.w.upTo(200*time.Millisecond))
		}
		p.begin(jobs)
		p.w.sleep(p.w.upTo(30 * time.Millisecond))
	}
}

// begin carries out claimed jobs.
func (p *poller) begin(jobs engine.Jobs) {
	for _, job := range jobs {
		p.check.claimed(p.name, job.Job.Task, job.Job.Address, job.Token)
		p.check.carried(p.name, job.Job.Task, job.Job.Address)
		p.w.launch(p.outside, p.name, func() { p.work(job) })
	}
}

func (p *poller) services() []string {
	all := slices.Concat([]string{hang}, services, dagServices)
	if p.w.chance(700) || p.w.clear() {
		return all
	}
	p.w.rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:1+p.w.rng.IntN(len(all))]
}

// work carries out a claimed job, more or less.
func (p *poller) work(c engine.Claimed) {
	if c.Job.Service == hang {
		return
	}
	r := serve(flow.Job{Task: c.Job.Task, Address: c.Job.Address, Input: c.Job.Input, Params: c.Job.Params, Exec: &flow.Exec{Service: c.Job.Service}})
	r.Worker, r.Token = p.name, c.Token
	p.w.sleep(p.w.upTo(80 * time.Millisecond))
	if p.w.chance(200) {
		_, _ = p.heartbeat(c)
	}
	if p.w.chance(100) {
		p.note(c)
	}
	if p.w.mishap(p.w.weather.sloppy) {
		p.slip(c, &r)
	}
	if r.Worker != "" {
		p.report(c, r)
	}
}

// slip is what workers get wrong.
func (p *poller) slip(c engine.Claimed, r *flow.Report) {
	switch p.w.rng.IntN(6) {
	case 0: // it crashes
		r.Worker = ""
	case 1: // its claim runs out meanwhile
		p.w.sleep(p.visibility + p.w.upTo(2*p.visibility))
	case 2: // it has lost its token
		r.Token = ""
	case 3: // it says so twice
		p.w.launch(p.outside, p.name, func() { p.report(c, *r) })
	case 4: // it uses another's token, which must change nothing
		stale := *r
		stale.Token, stale.Output, stale.Error = "stale", nil, "with a stale token"
		p.report(c, stale)
	case 5: // it is slow and says that it is alive
		for range 4 {
			p.w.sleep(p.visibility / 3)
			_, _ = p.heartbeat(c)
		}
	}
}

func (p *poller) note(c engine.Claimed) {
	ctx, stop := p.patience()
	defer stop()
	err := tell(ctx, p.anyMember(), c.Job.Task, flow.Note{Address: c.Job.Address, Token: c.Token, Text: fmt.Sprint("note ", p.w.rng.IntN(3))}, "")
	t := p.check.tasks[c.Job.Task]
	if kind := flow.ErrorKindOf(err); kind == flow.Invalid || kind == flow.NotFound && p.check.former[c.Job.Task] == nil && !t.gone {
		p.w.fail("a note is answered with %v", err)
	}
}

func (p *poller) heartbeat(c engine.Claimed) ([]string, error) {
	ctx, stop := p.patience()
	defer stop()
	x, err := engine.Extend(ctx, p.anyMember(), p.name, []engine.Claim{{Job: c.Job.ID(), Token: c.Token}}, 0)
	return x.Canceled, err
}

// report sends a result until it is answered.
func (p *poller) report(c engine.Claimed, r flow.Report) {
	for {
		ctx, stop := p.patience()
		err := p.complete(ctx, c.Job.ID(), r)
		stop()
		if err == nil {
			r.Address = c.Job.Address
			p.check.answered(c.Job.Task, r, "")
		}
		if err == nil || flow.ErrorKindOf(err) != "" && flow.ErrorKindOf(err) != flow.Busy {
			return
		}
		p.w.sleep(50*time.Millisecond + p.w.upTo(time.Second))
	}
}

// complete reports the end of a job, and every other time takes others for it.
func (p *poller) complete(ctx context.Context, job string, r flow.Report) error {
	if p.w.chance(500) {
		return complete(ctx, p.anyMember(), job, r)
	}
	order, err := engine.Completing(job, r)
	if err != nil {
		return err
	}
	done, err := p.anyMember().Exchange(ctx, engine.Exchange{Orders: engine.Orders{order},
		Next: engine.Poll{Worker: p.name, Services: p.services(), Max: 1 + p.w.rng.IntN(2), Unlisted: p.w.chance(700)}})
	p.begin(done.Jobs)
	if err == nil {
		err = done.Outcomes[0].Err
	}
	return err
}

const panicOfCarrier = "of a carrier"

// carrier carries out jobs on a member.
type carrier struct {
	*stage
	h *host
}

// Carry takes its time; it panics, hangs and stops halfway as its job and the weather have it.
func (c carrier) Carry(ctx context.Context, job flow.Job) flow.Report {
	c.check.carried(c.h.name, job.Task, job.Address)
	c.check.once(c.h.name, job)
	c.h.carrying[job.ID()]++
	defer c.h.put(job.ID())
	if orElse(job.Exec.Service, job.Exec.Func) == hang {
		c.w.park(func() bool { return ctx.Err() != nil })
		return flow.Report{Error: "hung until it was withdrawn"}
	}
	c.w.breathe()
	if c.w.chance(300) {
		c.w.sleep(c.w.upTo(50 * time.Millisecond))
	}
	if c.w.mishap(c.w.weather.stalls) {
		c.w.sleep(c.w.upTo(6 * time.Second))
	}
	r := serve(job)
	if c.w.mishap(c.w.weather.sloppy) {
		c.w.launch(c.outside, "gossip", func() { c.gossip(job, r) })
	}
	if r.Error == panicText {
		panic(panicOfCarrier)
	}
	return r
}

// gossip reports a job that somebody else reports, too. When its attempt is over, anything may be said.
func (c carrier) gossip(job flow.Job, r flow.Report) {
	c.w.sleep(c.w.upTo(time.Second))
	if c.check.tasks[job.Task].attempts[job.Address] {
		r.Output, r.Error = nil, "too late"
	}
	r.Address = job.Address
	ctx, stop := c.patience()
	defer stop()
	if err := complete(ctx, c.anyMember(), job.ID(), r); err == nil {
		c.check.answered(job.Task, r, "")
	}
}
