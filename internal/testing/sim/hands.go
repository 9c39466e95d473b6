package sim

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/troupe-engine/troupe/api/wire/attach"
	"github.com/troupe-engine/troupe/flow"
)

// attachedWorker is a worker process that attaches. It keeps a session as long as members allow the
// session, and continues its jobs while its stream is broken.
type attachedWorker struct {
	*simRun
	ctx      context.Context
	name     string
	all      bool // whether the worker carries out jobs of all services
	services []string
	labels   []string
	credits  int

	life          int // number of restarts
	at            *simMember
	stream        *workerStream // last stream …
	sessionStream *workerStream // the last stream on which the session was welcomed
	session       string
	held          map[uint64]*attachedJob
	finished      map[uint64]*attach.Result // results not acknowledged yet
	tickets       map[uint64]*attach.Brought
	leaving       bool
}

// attachedJob is a job that an attached worker carries out.
type attachedJob struct {
	*attach.Job
	sessionStream *workerStream // last stream of the session in which the worker certainly holds it
	canceled      bool
}

// workerFault is a fault of an attached worker, with its time.
type workerFault struct {
	at   time.Duration
	what int
}

// Kinds of faults.
const (
	breaks = iota // the stream breaks, and the worker reconnects soon or late
	dies          // the worker dies and restarts
	deaf          // the worker does not read messages for a while
	leaves        // the worker leaves gracefully
	fates
)

// isDue reports whether it is time for the fault. It prefers a moment when the worker has jobs.
func (f workerFault) isDue(d *attachedWorker) bool {
	return d.w.now >= f.at && (len(d.held) > 0 || d.w.now >= f.at+3*time.Second)
}

func (st *simRun) addHands() {
	for i := range 1 + st.w.rng.IntN(4) {
		d := st.addHand(fmt.Sprint("hand-", i))
		d.all = i == 0
		st.w.startCoroutine(st.outside, d.name, d.runWorker)
	}
}

func (st *simRun) addHand(name string) *attachedWorker {
	d := &attachedWorker{simRun: st, ctx: context.Background(), name: name,
		held: map[uint64]*attachedJob{}, finished: map[uint64]*attach.Result{},
		tickets: map[uint64]*attach.Brought{}}
	st.attachedWorkers = append(st.attachedWorkers, d)
	return d
}

func (d *attachedWorker) runWorker() {
	d.w.sleepFor(d.w.upTo(2 * time.Second))
	for {
		d.chooseOffer()
		a := d.chooseMember()
		if d.attachTo(a) {
			d.restartWorker()
		}
		d.w.sleepFor(20*time.Millisecond + d.w.upTo(300*time.Millisecond))
		if d.w.drawFault(200) {
			d.w.sleepFor(d.w.upTo(8 * time.Second))
		}
	}
}

// chooseOffer draws the services and credits that the worker offers. A worker that resumes its
// session may have changed its credits.
func (d *attachedWorker) chooseOffer() {
	all := slices.Concat([]string{hang}, services, dagServices)
	if d.session == "" {
		d.services, d.labels = all, nil
		if !d.all {
			d.w.rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
			d.services = all[:1+d.w.rng.IntN(len(all))]
		}
		d.credits = 1 + d.w.rng.IntN(4)
	}
}

// chooseMember returns the member to attach to: usually that of its session while it has jobs or
// results, otherwise any.
func (d *attachedWorker) chooseMember() *simMember {
	if d.at != nil && slices.Contains(d.activeMembers, d.at) && len(d.held)+len(d.finished) > 0 && !d.w.drawFault(500) {
		return d.at
	}
	d.w.parkUntil(func() bool { return len(d.activeMembers) > 0 })
	return pickOne(d.w.rng, d.activeMembers...)
}

// restartWorker resets a worker that has ended.
func (d *attachedWorker) restartWorker() {
	d.life++
	d.session, d.leaving, d.at = "", false, nil
	d.dropJobs()
}

func (d *attachedWorker) dropJobs() {
	clear(d.held)
	clear(d.finished)
	clear(d.tickets)
}

// attachTo serves one stream until the stream ends. It returns true if the process has ended.
func (d *attachedWorker) attachTo(a *simMember) (ended bool) {
	p := d.dialMember(a)
	d.stream, d.at = p, a
	defer func() { p.closeStream(d.w.drawChance(500), false) }()
	p.sendMessage(&attach.FromWorker{Hello: d.buildHello()})
	first, ok := p.receiveMessage(d.w.now + 10*time.Second)
	if !ok || first == nil {
		return false
	}
	d.handleWelcome(a, first.GetWelcome())
	f := workerFault{d.w.now + d.w.upTo(3*time.Second), d.w.rng.IntN(fates)}
	if d.w.faults.sloppy == 0 || d.w.isCalm() {
		f.what = fates
	}
	return d.serveStream(p, first, f)
}

// serveStream handles messages until the stream is over.
func (d *attachedWorker) serveStream(p *workerStream, m *attach.ToWorker, f workerFault) (ended bool) {
	goodbye := false
	heard := d.w.now
	for {
		d.handleMessage(m)
		goodbye = goodbye || m.GetLeaving()
		if (goodbye || d.leaving) && len(d.held)+len(d.finished) == 0 {
			p.closeStream(true, true)
			return d.leaving
		}
		if f.what < fates && f.isDue(d) && !d.w.isCalm() {
			if over, ended := d.applyFault(f.what); over {
				return ended
			}
			f.what = fates
		}
		var ok bool
		if m, ok = p.receiveMessage(d.w.now + heartbeat/2); !ok || d.w.now-heard > 3*heartbeat && m == nil {
			return d.leaving && !ok
		}
		if m != nil {
			heard = d.w.now
			continue
		}
		d.resendResults(p)
	}
}

// resendResults sends a heartbeat, or repeats the results that were not acknowledged.
func (d *attachedWorker) resendResults(p *workerStream) {
	m := &attach.FromWorker{}
	if d.w.drawFault(d.w.faults.sloppy) {
		m.Results = d.listResults()
	}
	p.sendMessage(m)
}

// applyFault applies a fault. It returns whether the stream is over, and whether the process has
// ended.
func (d *attachedWorker) applyFault(what int) (over, ended bool) {
	switch what {
	case breaks:
		d.w.addTrace("the stream of %s breaks", d.name)
		return true, false
	case dies:
		d.w.addTrace("%s dies", d.name)
		return true, true
	case deaf:
		d.w.sleepFor(d.w.upTo(5 * time.Second))
	case leaves:
		d.w.addTrace("%s leaves", d.name)
		d.leaving = true
		d.stream.sendMessage(&attach.FromWorker{Leaving: true})
		for _, n := range slices.Sorted(maps.Keys(d.held)) {
			if d.w.drawChance(300) {
				d.recordResult(n, &attach.Result{Number: n, Outcome: attach.Outcome_OUTCOME_RETURNED})
			}
		}
	}
	return false, false
}

func (d *attachedWorker) buildHello() *attach.Hello {
	return &attach.Hello{Protocol: 1, Worker: d.name, Services: d.services, Labels: d.labels,
		Credits: uint32(d.credits), Session: d.session,
		Held: slices.Sorted(maps.Keys(d.held)), Finished: slices.Sorted(maps.Keys(d.finished)), Brought: d.listBrought()}
}

// listBrought returns the jobs that the worker brings to another member. Sometimes a ticket belongs
// to another job.
func (d *attachedWorker) listBrought() (all []*attach.Brought) {
	for _, n := range slices.Sorted(maps.Keys(d.tickets)) {
		t := d.tickets[n]
		if d.w.drawFault(d.w.faults.sloppy / 8) {
			t = &attach.Brought{Number: n, Id: t.GetId(), Ticket: []byte("not the ticket of the job")}
		}
		all = append(all, t)
	}
	return all
}

// handleWelcome starts a session. The jobs of an ended session belong to other workers now.
func (d *attachedWorker) handleWelcome(a *simMember, w *attach.Welcome) {
	d.w.addTrace("%s is attached to %s, resumed: %v", d.name, a.h.name, w.GetResumed())
	switch {
	case w.GetResumed():
		d.counts.Resumed++
		if d.sessionStream.a != a && len(d.held)+len(d.finished) > 0 {
			d.counts.Moved++
		}
	case len(d.held)+len(d.finished) > 0:
		d.counts.Over++
		d.dropJobs()
	}
	for _, j := range d.held {
		if w.GetSession() == d.session && j.sessionStream == d.sessionStream {
			j.sessionStream = d.stream
		}
	}
	d.session, d.sessionStream = w.GetSession(), d.stream
	if all := d.listResults(); len(all) > 0 {
		d.stream.sendMessage(&attach.FromWorker{Results: all})
	}
}

func (d *attachedWorker) listResults() (all []*attach.Result) {
	for _, n := range slices.Sorted(maps.Keys(d.finished)) {
		all = append(all, d.finished[n])
	}
	return all
}

// handleMessage handles a message of the member.
func (d *attachedWorker) handleMessage(m *attach.ToWorker) {
	for _, n := range m.GetAcknowledged() {
		delete(d.finished, n)
		delete(d.tickets, n)
	}
	for _, n := range m.GetCanceled() {
		if j := d.held[n]; j != nil {
			j.canceled = true
		}
	}
	for _, job := range m.GetJobs() {
		d.takeJob(&attachedJob{Job: job, sessionStream: d.sessionStream})
	}
}

func (d *attachedWorker) takeJob(j *attachedJob) {
	n := j.GetNumber()
	if d.held[n] != nil || d.finished[n] != nil {
		d.w.failRun("%s is given the job %d of its session twice", d.name, n)
	}
	d.held[n] = j
	if len(j.GetTicket()) > 0 {
		d.tickets[n] = &attach.Brought{Number: n, Id: j.GetId(), Ticket: j.GetTicket()}
	}
	d.counts.Given++
	if len(d.held) > d.credits {
		d.w.failRun("%s has %d jobs and %d credits", d.name, len(d.held), d.credits)
	}
	if !slices.Contains(d.services, j.GetService()) {
		d.w.failRun("%s is given a job of the service %s, which it does not offer", d.name, j.GetService())
	}
	task, at, err := flow.ParseJobID(j.GetId())
	if err != nil {
		d.w.failRun("%s is given the job %s: %v", d.name, j.GetId(), err)
	}
	d.w.addTrace("%s begins with %s as %d", d.name, j.GetId(), n)
	d.check.checkCarried(d.name, task, at)
	d.check.checkOnce(d.name, flow.Job{Task: task, Address: at})
	d.checkSoleHolder(j)
	life := d.life
	d.w.startCoroutine(d.outside, d.name, func() { d.runJob(j, life, flow.Job{Task: task, Address: at}) })
}

// noteJobMoved records that a job moved to another member because its worker attached there.
func (st *simRun) noteJobMoved(task string, e *flow.Event) {
	id := flow.JobID(task, e.Address())
	for _, d := range st.attachedWorkers {
		for _, j := range d.held {
			if p := d.stream; d.name == e.Worker && p.welcomed && p.a.Incarnation() == e.Carrier && j.GetId() == id {
				j.sessionStream = p
			}
		}
	}
}

// checkSoleHolder checks that no other worker holds a job, unless that worker or its member had to
// be considered gone. A worker that brings the job to a new session may be too late: the earlier
// session counts until the task confirms the move.
func (d *attachedWorker) checkSoleHolder(j *attachedJob) {
	if d.isGivenUp(j.sessionStream) {
		return
	}
	for _, o := range d.attachedWorkers {
		for _, n := range slices.Sorted(maps.Keys(o.held)) {
			if other := o.held[n]; other != j && other.GetId() == j.GetId() && !other.canceled && !o.isGivenUp(other.sessionStream) {
				d.w.failRun("%s is given %s, which %s is at, whose session goes on", d.name, j.GetId(), o.name)
			}
		}
	}
}

// isGivenUp reports whether a member may have ended the session of a stream: the member is gone or
// ending, or the stream has been over for the grace period by a clock that may run fast.
func (d *attachedWorker) isGivenUp(p *workerStream) bool {
	if p.a.h.dead || p.a.ends || d.leaving || d.store.findMember(p.a.Incarnation()) == nil || closedNow(p.a.Lost()) {
		return true
	}
	return (p.cut || p.hungUp) && d.w.now-p.overAt >= p.a.grace*9/10
}

// runJob carries out a job with delays.
func (d *attachedWorker) runJob(j *attachedJob, life int, job flow.Job) {
	n := j.GetNumber()
	mine := func() bool { return d.life == life && d.held[n] == j }
	if j.GetService() == hang {
		d.w.parkUntil(func() bool { return j.canceled || !mine() })
	}
	d.w.sleepFor(d.w.upTo(60 * time.Millisecond))
	if d.w.drawChance(200) {
		d.sendProgress(n)
	}
	if d.w.drawFault(300) {
		d.w.sleepFor(d.w.upTo(4 * time.Second))
	}
	if !mine() {
		return
	}
	job.Input, job.Params, job.Exec = j.GetInput(), j.GetParams(), &flow.Exec{Service: j.GetService()}
	r := serveJob(job)
	result := &attach.Result{Number: n, Outcome: attach.Outcome_OUTCOME_COMPLETED, Output: r.Output}
	switch {
	case j.canceled && (j.GetService() == hang || d.w.drawChance(700)):
		result = &attach.Result{Number: n, Outcome: attach.Outcome_OUTCOME_CANCELED}
	case d.w.drawFault(d.w.faults.sloppy / 4):
		result = &attach.Result{Number: n, Outcome: attach.Outcome_OUTCOME_RETURNED}
	case r.Error != "":
		result = &attach.Result{Number: n, Outcome: attach.Outcome_OUTCOME_FAILED, Error: r.Error, Fatal: r.Fatal}
	}
	d.recordResult(n, result)
}

// recordResult keeps a result until the member acknowledges it. Sometimes the result is sent twice.
func (d *attachedWorker) recordResult(n uint64, r *attach.Result) {
	delete(d.held, n)
	d.finished[n] = r
	d.sendMessage(&attach.FromWorker{Results: []*attach.Result{r}})
	if d.w.drawFault(d.w.faults.sloppy / 4) {
		d.sendMessage(&attach.FromWorker{Results: []*attach.Result{r}})
	}
}

func (d *attachedWorker) sendProgress(n uint64) {
	p := &attach.Progress{Number: n, StatusText: fmt.Sprint("status ", d.w.rng.IntN(3))}
	if d.w.drawChance(500) {
		p.Log = []byte("at it")
	}
	d.sendMessage(&attach.FromWorker{Progress: []*attach.Progress{p}})
}

// sendMessage sends a message if the worker has a stream.
func (d *attachedWorker) sendMessage(m *attach.FromWorker) {
	if d.stream != nil && d.stream == d.sessionStream {
		d.stream.sendMessage(m)
	}
}
