package sim

import (
	"context"
	"time"

	"github.com/troupe-engine/troupe/actors"
	"github.com/troupe-engine/troupe/flow"
)

// relay is workers that are attached to a member. They come and go, with what they have.
type relay struct {
	carrier
	calledOff map[actors.Passage]context.CancelFunc // of those that are under way
	shut      bool
}

func newRelay(c carrier) *relay {
	return &relay{carrier: c, calledOff: map[actors.Passage]context.CancelFunc{}}
}

// Offers changes its mind from job to job.
func (r *relay) Offers(*flow.Exec) bool { return !r.shut && r.w.chance(600) }

func (r *relay) Send(jobs []actors.Passage) {
	for _, p := range jobs {
		r.w.launch(r.h, "relay", func() { r.pass(p) })
	}
}

// pass gives a job to a worker after a while.
func (r *relay) pass(p actors.Passage) {
	if r.w.chance(500) {
		r.w.sleep(r.w.upTo(200 * time.Millisecond))
	}
	if !r.shut && r.w.mishap(r.w.weather.sloppy/4) { // nobody is there any more
		p.Land(flow.Report{Lost: true, Unbegun: true})
		return
	}
	job := p.Job()
	if r.shut || !p.Begin() {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	r.calledOff[p] = cancel
	r.check.handedOver(job.Task, job.Address)
	report := r.work(ctx, job)
	if r.calledOff[p] != nil {
		delete(r.calledOff, p)
		p.Land(report)
	}
}

// work is a worker's at a job; it may go away before it has done it.
func (r *relay) work(ctx context.Context, job flow.Job) (report flow.Report) {
	defer func() {
		if reason := recover(); reason == panicOfCarrier {
			report = flow.Report{Error: panicText}
		} else if reason != nil {
			panic(reason)
		}
	}()
	report = r.Carry(ctx, job)
	if r.w.mishap(r.w.weather.sloppy / 2) {
		report = flow.Report{Lost: true}
	}
	return report
}

// CallOff ends a job; its worker may notice late.
func (r *relay) CallOff(p actors.Passage) {
	if cancel := r.calledOff[p]; cancel != nil {
		delete(r.calledOff, p)
		cancel()
		p.Land(flow.Report{Lost: true})
	}
}

// Shut lets those who are at a job finish.
func (r *relay) Shut() { r.shut = true }
