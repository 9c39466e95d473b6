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

// hand is a worker that attaches: a process that keeps one session for as long as members let it, and gets on with what it has
// while its stream is broken.
type hand struct {
	*stage
	ctx      context.Context
	name     string
	all      bool // it carries out jobs of all services
	services []string
	labels   []string
	credits  int

	life     int // how often it began anew, with nothing
	at       *actor
	line     *pipe // the last one …
	seat     *pipe // … on which it was welcome
	session  string
	held     map[uint64]*piecework
	finished map[uint64]*attach.Result // that nobody has acknowledged
	tickets  map[uint64]*attach.Brought
	leaving  bool
}

// piecework is a job that a hand is at.
type piecework struct {
	*attach.Job
	seat     *pipe // the last one of the session in which it is the hand's for sure
	canceled bool
}

// fate is what happens to a hand, and when.
type fate struct {
	at   time.Duration
	what int
}

// Fates.
const (
	breaks = iota // its stream does, and it comes back soon, or late
	dies          // and begins anew
	deaf          // it does not read what it is told for a while
	leaves        // as one does that is stopped
	fates
)

// due says whether it is time. It strikes who is at something, if anybody.
func (f fate) due(d *hand) bool {
	return d.w.now >= f.at && (len(d.held) > 0 || d.w.now >= f.at+3*time.Second)
}

func (st *stage) addHands() {
	for i := range 1 + st.w.rng.IntN(4) {
		d := st.addHand(fmt.Sprint("hand-", i))
		d.all = i == 0
		st.w.launch(st.outside, d.name, d.live)
	}
}

func (st *stage) addHand(name string) *hand {
	d := &hand{stage: st, ctx: context.Background(), name: name, held: map[uint64]*piecework{}, finished: map[uint64]*attach.Result{}, tickets: map[uint64]*attach.Brought{}}
	st.hands = append(st.hands, d)
	return d
}

func (d *hand) live() {
	d.w.sleep(d.w.upTo(2 * time.Second))
	for {
		d.begin()
		a := d.whom()
		if d.attach(a) {
			d.anew()
		}
		d.w.sleep(20*time.Millisecond + d.w.upTo(300*time.Millisecond))
		if d.w.mishap(200) {
			d.w.sleep(d.w.upTo(8 * time.Second))
		}
	}
}

// begin says what it offers. One that goes on with a session may have changed its credits.
func (d *hand) begin() {
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

// whom it attaches to: where its session is, if it has something to tell there, or anybody.
func (d *hand) whom() *actor {
	if d.at != nil && slices.Contains(d.troupe, d.at) && len(d.held)+len(d.finished) > 0 && !d.w.mishap(500) {
		return d.at
	}
	d.w.park(func() bool { return len(d.troupe) > 0 })
	return pick(d.w.rng, d.troupe...)
}

// anew is what is left of one that has ended.
func (d *hand) anew() {
	d.life++
	d.session, d.leaving, d.at = "", false, nil
	d.drop()
}

func (d *hand) drop() {
	clear(d.held)
	clear(d.finished)
	clear(d.tickets)
}

// attach keeps one stream for as long as it holds. It says whether the process has ended.
func (d *hand) attach(a *actor) (ended bool) {
	p := d.dial(a)
	d.line, d.at = p, a
	defer func() { p.end(d.w.chance(500), false) }()
	p.tell(&attach.FromWorker{Hello: d.hello()})
	first, ok := p.hear(d.w.now + 10*time.Second)
	if !ok || first == nil {
		return false
	}
	d.welcomed(a, first.GetWelcome())
	f := fate{d.w.now + d.w.upTo(3*time.Second), d.w.rng.IntN(fates)}
	if d.w.weather.sloppy == 0 || d.w.clear() {
		f.what = fates
	}
	return d.stay(p, first, f)
}

// stay hears and says what there is until the stream is over.
func (d *hand) stay(p *pipe, m *attach.ToWorker, f fate) (ended bool) {
	goodbye := false
	heard := d.w.now
	for {
		d.heed(m)
		goodbye = goodbye || m.GetLeaving()
		if (goodbye || d.leaving) && len(d.held)+len(d.finished) == 0 {
			p.end(true, true)
			return d.leaving
		}
		if f.what < fates && f.due(d) && !d.w.clear() {
			if over, ended := d.suffer(f.what); over {
				return ended
			}
			f.what = fates
		}
		var ok bool
		if m, ok = p.hear(d.w.now + heartbeat/2); !ok || d.w.now-heard > 3*heartbeat && m == nil {
			return d.leaving && !ok
		}
		if m != nil {
			heard = d.w.now
			continue
		}
		d.repeat(p)
	}
}

// repeat gives a sign of life, or says again what nobody has acknowledged.
func (d *hand) repeat(p *pipe) {
	m := &attach.FromWorker{}
	if d.w.mishap(d.w.weather.sloppy) {
		m.Results = d.results()
	}
	p.tell(m)
}

// suffer is what happens to it. It says whether its stream is over, and whether it has ended.
func (d *hand) suffer(what int) (over, ended bool) {
	switch what {
	case breaks:
		d.w.say("the stream of %s breaks", d.name)
		return true, false
	case dies:
		d.w.say("%s dies", d.name)
		return true, true
	case deaf:
		d.w.sleep(d.w.upTo(5 * time.Second))
	case leaves:
		d.w.say("%s leaves", d.name)
		d.leaving = true
		d.line.tell(&attach.FromWorker{Leaving: true})
		for _, n := range slices.Sorted(maps.Keys(d.held)) {
			if d.w.chance(300) {
				d.finish(n, &attach.Result{Number: n, Outcome: attach.Outcome_OUTCOME_RETURNED})
			}
		}
	}
	return false, false
}

func (d *hand) hello() *attach.Hello {
	return &attach.Hello{Protocol: 1, Worker: d.name, Services: d.services, Labels: d.labels, Credits: uint32(d.credits), Session: d.session,
		Held: slices.Sorted(maps.Keys(d.held)), Finished: slices.Sorted(maps.Keys(d.finished)), Brought: d.brought()}
}

// brought is what it comes with to another member. Now and then a ticket is not the job's.
func (d *hand) brought() (all []*attach.Brought) {
	for _, n := range slices.Sorted(maps.Keys(d.tickets)) {
		t := d.tickets[n]
		if d.w.mishap(d.w.weather.sloppy / 8) {
			t = &attach.Brought{Number: n, Id: t.GetId(), Ticket: []byte("not the ticket of the job")}
		}
		all = append(all, t)
	}
	return all
}

// welcomed begins. What it has of a session that is over has gone to others.
func (d *hand) welcomed(a *actor, w *attach.Welcome) {
	d.w.say("%s is attached to %s, resumed: %v", d.name, a.h.name, w.GetResumed())
	switch {
	case w.GetResumed():
		d.seen.Resumed++
		if d.seat.a != a && len(d.held)+len(d.finished) > 0 {
			d.seen.Moved++
		}
	case len(d.held)+len(d.finished) > 0:
		d.seen.Over++
		d.drop()
	}
	for _, j := range d.held {
		if w.GetSession() == d.session && j.seat == d.seat {
			j.seat = d.line
		}
	}
	d.session, d.seat = w.GetSession(), d.line
	if all := d.results(); len(all) > 0 {
		d.line.tell(&attach.FromWorker{Results: all})
	}
}

func (d *hand) results() (all []*attach.Result) {
	for _, n := range slices.Sorted(maps.Keys(d.finished)) {
		all = append(all, d.finished[n])
	}
	return all
}

// heed does what it is told.
func (d *hand) heed(m *attach.ToWorker) {
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
		d.take(&piecework{Job: job, seat: d.seat})
	}
}

func (d *hand) take(j *piecework) {
	n := j.GetNumber()
	if d.held[n] != nil || d.finished[n] != nil {
		d.w.fail("%s is given the job %d of its session twice", d.name, n)
	}
	d.held[n] = j
	if len(j.GetTicket()) > 0 {
		d.tickets[n] = &attach.Brought{Number: n, Id: j.GetId(), Ticket: j.GetTicket()}
	}
	d.seen.Given++
	if len(d.held) > d.credits {
		d.w.fail("%s has %d jobs and %d credits", d.name, len(d.held), d.credits)
	}
	if !slices.Contains(d.services, j.GetService()) {
		d.w.fail("%s is given a job of the service %s, which it does not offer", d.name, j.GetService())
	}
	task, at, err := flow.ParseJobID(j.GetId())
	if err != nil {
		d.w.fail("%s is given the job %s: %v", d.name, j.GetId(), err)
	}
	d.w.say("%s begins with %s as %d", d.name, j.GetId(), n)
	d.check.carried(d.name, task, at)
	d.check.once(d.name, flow.Job{Task: task, Address: at})
	d.alone(j)
	life := d.life
	d.w.launch(d.outside, d.name, func() { d.work(j, life, flow.Job{Task: task, Address: at}) })
}

// passed hears that a job is another member's from now on, because a worker has come to that with it.
func (st *stage) passed(task string, e *flow.Event) {
	id := flow.JobID(task, e.Address())
	for _, d := range st.hands {
		for _, j := range d.held {
			if p := d.line; d.name == e.Worker && p.welcomed && p.a.Incarnation() == e.Carrier && j.GetId() == id {
				j.seat = p
			}
		}
	}
}

// alone checks that nobody else is at a job, unless he has to be taken for gone, or the member that gives it has been. Who comes back with
// it to a new session may be too late, and hear that after others have it: the session before counts until the task says that it is his.
func (d *hand) alone(j *piecework) {
	if d.givenUp(j.seat) {
		return
	}
	for _, o := range d.hands {
		for _, n := range slices.Sorted(maps.Keys(o.held)) {
			if other := o.held[n]; other != j && other.GetId() == j.GetId() && !other.canceled && !o.givenUp(other.seat) {
				d.w.fail("%s is given %s, which %s is at, whose session goes on", d.name, j.GetId(), o.name)
			}
		}
	}
}

// givenUp says whether a member may have let a session go whose last stream this is: the member is no more, or ends, or the stream is
// over for as long as it waits, by a clock that may run fast.
func (d *hand) givenUp(p *pipe) bool {
	if p.a.h.dead || p.a.ends || d.leaving || d.store.member(p.a.Incarnation()) == nil || closedNow(p.a.Lost()) {
		return true
	}
	return (p.cut || p.hungUp) && d.w.now-p.overAt >= p.a.grace*9/10
}

// work takes its time.
func (d *hand) work(j *piecework, life int, job flow.Job) {
	n := j.GetNumber()
	mine := func() bool { return d.life == life && d.held[n] == j }
	if j.GetService() == hang {
		d.w.park(func() bool { return j.canceled || !mine() })
	}
	d.w.sleep(d.w.upTo(60 * time.Millisecond))
	if d.w.chance(200) {
		d.progress(n)
	}
	if d.w.mishap(300) {
		d.w.sleep(d.w.upTo(4 * time.Second))
	}
	if !mine() {
		return
	}
	job.Input, job.Params, job.Exec = j.GetInput(), j.GetParams(), &flow.Exec{Service: j.GetService()}
	r := serve(job)
	result := &attach.Result{Number: n, Outcome: attach.Outcome_OUTCOME_COMPLETED, Output: r.Output}
	switch {
	case j.canceled && (j.GetService() == hang || d.w.chance(700)):
		result = &attach.Result{Number: n, Outcome: attach.Outcome_OUTCOME_CANCELED}
	case d.w.mishap(d.w.weather.sloppy / 4):
		result = &attach.Result{Number: n, Outcome: attach.Outcome_OUTCOME_RETURNED}
	case r.Error != "":
		result = &attach.Result{Number: n, Outcome: attach.Outcome_OUTCOME_FAILED, Error: r.Error, Fatal: r.Fatal}
	}
	d.finish(n, result)
}

// finish keeps a result until the member has it. One is said twice, now and then.
func (d *hand) finish(n uint64, r *attach.Result) {
	delete(d.held, n)
	d.finished[n] = r
	d.tell(&attach.FromWorker{Results: []*attach.Result{r}})
	if d.w.mishap(d.w.weather.sloppy / 4) {
		d.tell(&attach.FromWorker{Results: []*attach.Result{r}})
	}
}

func (d *hand) progress(n uint64) {
	p := &attach.Progress{Number: n, Note: fmt.Sprint("note ", d.w.rng.IntN(3))}
	if d.w.chance(500) {
		p.Log = []byte("at it")
	}
	d.tell(&attach.FromWorker{Progress: []*attach.Progress{p}})
}

// tell says something on the stream, if there is one.
func (d *hand) tell(m *attach.FromWorker) {
	if d.line != nil && d.line == d.seat {
		d.line.tell(m)
	}
}
