package sim

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
)

// doCommand sends a command to a task.
func doCommand(ctx context.Context, m engine.Engine, task string, cmd flow.Command, request string) error {
	_, err := m.Do(ctx, engine.Order{Task: task, Command: cmd, Request: request})
	return err
}

// completeJob reports the end of a job.
func completeJob(ctx context.Context, m engine.Engine, job string, r flow.Report) error {
	order, err := engine.Completing(job, r)
	if err == nil {
		_, err = m.Do(ctx, order)
	}
	return err
}

// queuePoller polls for queue jobs.
type queuePoller struct {
	*simRun
	name string
}

func (p *queuePoller) runPoller() {
	for {
		ctx, stop := p.withPatience()
		quiet := p.isQuiet()
		jobs, err := p.anyMember().Poll(ctx,
			engine.Poll{Worker: p.name, Services: p.chooseServices(), Max: 1 + p.w.rng.IntN(4),
				Wait: p.w.upTo(2 * time.Second), Unlisted: p.w.drawChance(700)})
		stop()
		if err != nil {
			p.checkPatience(quiet, "Poll", err)
			p.w.sleepFor(20*time.Millisecond + p.w.upTo(200*time.Millisecond))
		}
		p.startJobs(jobs)
		p.w.sleepFor(p.w.upTo(30 * time.Millisecond))
	}
}

// startJobs carries out claimed jobs.
func (p *queuePoller) startJobs(jobs engine.Jobs) {
	for _, job := range jobs {
		p.check.checkClaimed(p.name, job.Job.Task, job.Job.Address, job.Token)
		p.check.checkCarried(p.name, job.Job.Task, job.Job.Address)
		p.w.startCoroutine(p.outside, p.name, func() { p.runJob(job) })
	}
}

func (p *queuePoller) chooseServices() []string {
	all := slices.Concat([]string{hang}, services, dagServices)
	if p.w.drawChance(700) || p.w.isCalm() {
		return all
	}
	p.w.rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:1+p.w.rng.IntN(len(all))]
}

// runJob carries out a claimed job, possibly with a mistake.
func (p *queuePoller) runJob(c engine.Claimed) {
	if c.Job.Service == hang {
		return
	}
	r := serveJob(flow.Job{Task: c.Job.Task, Address: c.Job.Address, Input: c.Job.Input,
		Params: c.Job.Params, Exec: &flow.Exec{Service: c.Job.Service}})
	r.Worker, r.Token = p.name, c.Token
	p.w.sleepFor(p.w.upTo(80 * time.Millisecond))
	if p.w.drawChance(200) {
		_, _ = p.sendHeartbeat(c)
	}
	if p.w.drawChance(100) {
		p.sendNote(c)
	}
	if p.w.drawFault(p.w.faults.sloppy) {
		p.makeMistake(c, &r)
	}
	if r.Worker != "" {
		p.reportResult(c, r)
	}
}

// makeMistake makes a typical mistake of a worker.
func (p *queuePoller) makeMistake(c engine.Claimed, r *flow.Report) {
	switch p.w.rng.IntN(6) {
	case 0: // the worker crashes
		r.Worker = ""
	case 1: // the claim of the worker expires
		p.w.sleepFor(p.visibility + p.w.upTo(2*p.visibility))
	case 2: // the worker has lost its token
		r.Token = ""
	case 3: // the worker reports twice
		p.w.startCoroutine(p.outside, p.name, func() { p.reportResult(c, *r) })
	case 4: // a foreign token is used, which must change nothing
		stale := *r
		stale.Token, stale.Output, stale.Error = "stale", nil, "with a stale token"
		p.reportResult(c, stale)
	case 5: // the worker is slow and sends heartbeats
		for range 4 {
			p.w.sleepFor(p.visibility / 3)
			_, _ = p.sendHeartbeat(c)
		}
	}
}

func (p *queuePoller) sendNote(c engine.Claimed) {
	ctx, stop := p.withPatience()
	defer stop()
	err := doCommand(ctx, p.anyMember(), c.Job.Task, flow.Note{Address: c.Job.Address,
		Token: c.Token, Text: fmt.Sprint("note ", p.w.rng.IntN(3))}, "")
	t := p.check.tasks[c.Job.Task]
	if kind := flow.ErrorKindOf(err); kind == flow.Invalid || kind == flow.NotFound && p.check.former[c.Job.Task] == nil && !t.deleted {
		p.w.failRun("a note is answered with %v", err)
	}
}

func (p *queuePoller) sendHeartbeat(c engine.Claimed) ([]string, error) {
	ctx, stop := p.withPatience()
	defer stop()
	x, err := engine.Extend(ctx, p.anyMember(), p.name, []engine.Claim{{Job: c.Job.ID(), Token: c.Token}}, 0)
	return x.Canceled, err
}

// reportResult repeats a result until it is answered.
func (p *queuePoller) reportResult(c engine.Claimed, r flow.Report) {
	for {
		ctx, stop := p.withPatience()
		err := p.completeJob(ctx, c.Job.ID(), r)
		stop()
		if err == nil {
			r.Address = c.Job.Address
			p.check.checkAnswered(c.Job.Task, r, "")
		}
		if err == nil || flow.ErrorKindOf(err) != "" && flow.ErrorKindOf(err) != flow.Busy {
			return
		}
		p.w.sleepFor(50*time.Millisecond + p.w.upTo(time.Second))
	}
}

// completeJob reports the end of a job, and polls for further jobs in every second call.
func (p *queuePoller) completeJob(ctx context.Context, job string, r flow.Report) error {
	if p.w.drawChance(500) {
		return completeJob(ctx, p.anyMember(), job, r)
	}
	order, err := engine.Completing(job, r)
	if err != nil {
		return err
	}
	done, err := p.anyMember().Exchange(ctx, engine.Exchange{Orders: engine.Orders{order},
		Next: engine.Poll{Worker: p.name, Services: p.chooseServices(), Max: 1 + p.w.rng.IntN(2), Unlisted: p.w.drawChance(700)}})
	p.startJobs(done.Jobs)
	if err == nil {
		err = done.Outcomes[0].Err
	}
	return err
}

const panicOfCarrier = "of a carrier"

// jobCarrier carries out jobs on a member.
type jobCarrier struct {
	*simRun
	h *host
}

// Carry carries out a job with delays. It may panic, hang or be interrupted.
func (c jobCarrier) Carry(ctx context.Context, job flow.Job) flow.Report {
	c.check.checkCarried(c.h.name, job.Task, job.Address)
	c.check.checkOnce(c.h.name, job)
	c.h.carrying[job.ID()]++
	defer c.h.finishJob(job.ID())
	if orElse(job.Exec.Service, job.Exec.Func) == hang {
		c.w.parkUntil(func() bool { return ctx.Err() != nil })
		return flow.Report{Error: "hung until it was withdrawn"}
	}
	c.w.yieldOnce()
	if c.w.drawChance(300) {
		c.w.sleepFor(c.w.upTo(50 * time.Millisecond))
	}
	if c.w.drawFault(c.w.faults.stalls) {
		c.w.sleepFor(c.w.upTo(6 * time.Second))
	}
	r := serveJob(job)
	if c.w.drawFault(c.w.faults.sloppy) {
		c.w.startCoroutine(c.outside, "gossip", func() { c.reportDuplicate(job, r) })
	}
	if r.Error == panicText {
		panic(panicOfCarrier)
	}
	return r
}

// reportDuplicate reports a job that is also reported by its carrier. After the end of the attempt
// the report may be wrong.
func (c jobCarrier) reportDuplicate(job flow.Job, r flow.Report) {
	c.w.sleepFor(c.w.upTo(time.Second))
	if c.check.tasks[job.Task].attempts[job.Address] {
		r.Output, r.Error = nil, "too late"
	}
	r.Address = job.Address
	ctx, stop := c.withPatience()
	defer stop()
	if err := completeJob(ctx, c.anyMember(), job.ID(), r); err == nil {
		c.check.checkAnswered(job.Task, r, "")
	}
}
