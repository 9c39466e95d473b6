package sim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/troupe-engine/troupe/actors"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// user starts a task, sends what it waits for, meddles a little, and waits for its end.
type user struct {
	*stage
	name    string
	play    *play
	version string
	task    string
	cancels bool
	ended   bool
	pending int // helpers that are still at it
}

// live is the user's whole life.
func (u *user) live() {
	u.w.sleep(u.w.upTo(3 * time.Second))
	u.start()
	for _, key := range slices.Sorted(maps.Keys(u.play.signals)) {
		u.help(func() {
			u.w.sleep(u.w.upTo(12 * time.Second))
			u.insist(flow.Signal{Key: key, Value: u.play.signals[key]})
		})
	}
	if u.w.chance(300) {
		u.help(u.pauseAndResume)
	}
	if u.w.chance(60) {
		u.help(u.cancel)
	}
	if u.w.chance(200) {
		u.help(u.nonsense)
	}
	if u.w.chance(200) {
		u.help(u.watch)
	}
	u.await()
	u.w.park(func() bool { return u.pending == 0 })
	u.ended = true
}

func (u *user) help(f func()) {
	u.pending++
	u.w.launch(u.outside, u.name, func() {
		defer func() { u.pending-- }()
		f()
	})
}

// start begins the task; the key makes it safe to ask again.
func (u *user) start() {
	n := actors.NewTask{VersionID: u.version, Params: u.play.params, Key: u.name}
	for {
		ctx, stop := u.patience()
		id, _, err := u.anyMember().StartTask(ctx, n)
		stop()
		if err == nil {
			u.task = id
			if u.store.tasks[id] == nil {
				u.w.fail("the start of task %s was acknowledged and is not stored", id)
			}
			u.w.say("%s has started %s", u.name, id)
			break
		}
		if kind := flow.KindOf(err); kind != "" && kind != flow.Busy {
			u.w.fail("%s could not start: %v", u.name, err)
		}
		u.w.sleep(50*time.Millisecond + u.w.upTo(time.Second))
	}
	if u.w.chance(200) {
		u.help(func() { u.startAgain(n) })
	}
}

// startAgain sends the same start, or another with the same key.
func (u *user) startAgain(n actors.NewTask) {
	other := u.w.chance(500)
	if other {
		n.Params = json.RawMessage(`{"other":true}`)
	}
	ctx, stop := u.patience()
	defer stop()
	id, created, err := u.anyMember().StartTask(ctx, n)
	switch {
	case err == nil && (other || created || id != u.task):
		u.w.fail("%s was started twice: %s (created: %v)", u.task, id, created)
	case flow.KindOf(err) == flow.Conflict && !other:
		u.w.fail("a repeated start of %s is refused: %v", u.task, err)
	}
}

// insist sends a command under one request id until it is answered.
func (u *user) insist(cmd flow.Command) error {
	u.requests++
	request := fmt.Sprintf("%s/%d", u.name, u.requests)
	for {
		err := u.ask(cmd, request)
		if err == nil || flow.KindOf(err) != "" && flow.KindOf(err) != flow.Busy {
			if err == nil && u.w.chance(100) { // a client may not have heard it
				u.w.sleep(u.w.upTo(time.Second))
				_ = u.ask(cmd, request)
			}
			return err
		}
		u.w.sleep(50*time.Millisecond + u.w.upTo(time.Second))
	}
}

func (u *user) ask(cmd flow.Command, request string) error {
	ctx, stop := u.patience()
	defer stop()
	quiet := u.quiet()
	err := u.anyMember().Do(ctx, u.task, cmd, request)
	u.impatient(quiet, "Do", err)
	u.w.say("%s: %T %s is answered: %v", u.name, cmd, request, err)
	if err == nil {
		u.check.answered(u.task, cmd, request)
	}
	return err
}

func (u *user) pauseAndResume() {
	for range 1 + u.w.rng.IntN(3) {
		u.w.sleep(u.w.upTo(5 * time.Second))
		_ = u.insist(flow.Pause{})
		u.w.sleep(u.w.upTo(3 * time.Second))
		_ = u.insist(flow.Resume{})
	}
}

func (u *user) cancel() {
	u.cancels = true
	u.w.sleep(u.w.upTo(10 * time.Second))
	if err := u.insist(flow.Cancel{}); err != nil {
		u.w.fail("Cancel of %s is refused: %v", u.task, err)
	}
}

// nonsense must be refused and leave no trace.
func (u *user) nonsense() {
	u.w.sleep(u.w.upTo(5 * time.Second))
	if err := u.insist(flow.Signal{Key: "_rt", Value: json.RawMessage(`1`)}); flow.KindOf(err) != flow.Invalid {
		u.w.fail("a signal to _rt is answered with %v", err)
	}
	if err := u.insist(flow.Signal{Key: "x", Value: json.RawMessage(`"` + poison + `"`)}); flow.KindOf(err) != flow.Invalid {
		u.w.fail("a signal that the store refuses is answered with %v", err)
	}
	ctx, stop := u.patience()
	defer stop()
	poisoned := actors.NewTask{VersionID: u.version, Params: json.RawMessage(`{"x":"` + poison + `"}`), Key: u.name + " poisoned"}
	_, _, err := u.anyMember().StartTask(ctx, poisoned)
	if kind := flow.KindOf(err); err == nil || kind != "" && kind != flow.Invalid && kind != flow.Busy {
		u.w.fail("a start that the store refuses is answered with %v", err)
	}
	err = u.anyMember().Do(ctx, "task-of-nobody", flow.Cancel{}, "")
	if kind := flow.KindOf(err); err == nil || kind != "" && kind != flow.NotFound && kind != flow.Busy {
		u.w.fail("a command to a task that does not exist is answered with %v", err)
	}
}

// watch reads the journal as it grows.
func (u *user) watch() {
	u.w.sleep(u.w.upTo(5 * time.Second))
	ctx, stop := u.patience()
	defer stop()
	seq := int64(0)
	for row, err := range u.anyMember().Watch(ctx, u.task, 0) {
		if err != nil {
			return
		}
		if row.Seq != seq+1 {
			u.w.fail("a watcher of %s sees row %d after %d", u.task, row.Seq, seq)
		}
		seq = row.Seq
	}
}

func (u *user) await() {
	for {
		ctx, stop := u.patience()
		status, err := u.anyMember().Await(ctx, u.task)
		stop()
		if err == nil {
			if row := u.store.tasks[u.task]; row == nil || row.Status != string(status) {
				u.w.fail("the end of %s (%s) is told, and is not stored", u.task, status)
			}
			u.w.say("%s knows that %s is %s", u.name, u.task, status)
			return
		}
		if flow.KindOf(err) == flow.NotFound {
			u.w.fail("nobody knows task %s: %v", u.task, err)
		}
		u.w.sleep(50*time.Millisecond + u.w.upTo(time.Second))
	}
}

// verify compares the end with what the core alone makes of it.
func (u *user) verify() {
	got := outcomeOf(u.check.tasks[u.task].state, u.play.signals)
	if u.cancels && got.Status == flow.TaskCanceled {
		return
	}
	want := u.play.want
	if u.limits.Deliveries != endless {
		return // how often a job's carrier was lost decides how it ends
	}
	if u.play.loose {
		want, got = outcome{Status: want.Status}, outcome{Status: got.Status}
	}
	if got != want {
		u.w.fail("task %s ended as %+v, by the core alone it is %+v; its flow is %s with %s", u.task, got, want, u.play.definition, u.play.params)
	}
}

// patience is how long somebody waits for an answer.
func (st *stage) patience() (context.Context, func()) {
	ctx, cancel := context.WithCancel(context.Background())
	wait := 500*time.Millisecond + st.w.upTo(20*time.Second)
	if st.w.clear() {
		wait = 20 * time.Second
	}
	stop := st.w.after(nil, wait, cancel)
	return ctx, func() { stop(); cancel() }
}

// quiet says whether the weather has been calm for long enough that everything is answered in time.
func (st *stage) quiet() bool { return st.w.now > st.w.weather.calmAt+20*time.Second }

// impatient complains of an answer that did not come though nothing was in its way.
func (st *stage) impatient(quiet bool, what string, err error) {
	if quiet && errors.Is(err, context.Canceled) {
		st.w.fail("%s was not answered in calm weather", what)
	}
}

// poller takes queue jobs.
type poller struct {
	*stage
	name string
	busy int
}

func (p *poller) live() {
	for {
		ctx, stop := p.patience()
		quiet := p.quiet()
		jobs, err := p.anyMember().Poll(ctx, actors.Poll{Worker: p.name, Services: p.services(), Max: 1 + p.w.rng.IntN(4), Wait: p.w.upTo(2 * time.Second)})
		stop()
		if err != nil {
			p.impatient(quiet, "Poll", err)
			p.w.sleep(20*time.Millisecond + p.w.upTo(200*time.Millisecond))
		}
		for _, job := range jobs {
			p.check.claimed(p.name, job.Job.Task, job.Job.Address, job.Token)
			p.check.carried(p.name, job.Job)
			p.w.launch(p.outside, p.name, func() { p.work(job) })
		}
		p.w.sleep(p.w.upTo(30 * time.Millisecond))
	}
}

func (p *poller) services() []string {
	all := append([]string{hang}, services...)
	if p.w.chance(700) || p.w.clear() {
		return all
	}
	p.w.rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:1+p.w.rng.IntN(len(all))]
}

// work carries out a claimed job, more or less.
func (p *poller) work(c actors.Claimed) {
	if c.Job.Exec.Service == hang {
		return
	}
	r := serve(c.Job)
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
func (p *poller) slip(c actors.Claimed, r *flow.Report) {
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

func (p *poller) note(c actors.Claimed) {
	ctx, stop := p.patience()
	defer stop()
	err := p.anyMember().Do(ctx, c.Job.Task, flow.Note{Address: c.Job.Address, Text: fmt.Sprint("note ", p.w.rng.IntN(3))}, "")
	if kind := flow.KindOf(err); kind == flow.Invalid || kind == flow.NotFound {
		p.w.fail("a note is answered with %v", err)
	}
}

func (p *poller) heartbeat(c actors.Claimed) ([]string, error) {
	ctx, stop := p.patience()
	defer stop()
	return p.anyMember().Heartbeat(ctx, p.name, []string{c.Job.ID()}, c.Token)
}

// report sends a result until it is answered.
func (p *poller) report(c actors.Claimed, r flow.Report) {
	for {
		ctx, stop := p.patience()
		err := p.anyMember().Complete(ctx, c.Job.ID(), r)
		stop()
		if err == nil {
			r.Address = c.Job.Address
			p.check.answered(c.Job.Task, r, "")
		}
		if err == nil || flow.KindOf(err) != "" && flow.KindOf(err) != flow.Busy {
			return
		}
		p.w.sleep(50*time.Millisecond + p.w.upTo(time.Second))
	}
}

// carrier carries out jobs on a member.
type carrier struct {
	*stage
	h *host
}

// Carry takes its time; it panics, hangs and stops halfway as its job and the weather have it.
func (c carrier) Carry(ctx context.Context, job flow.Job) flow.Report {
	c.check.carried(c.h.name, job)
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
		panic("of a carrier")
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
	if err := c.anyMember().Complete(ctx, job.ID(), r); err == nil {
		c.check.answered(job.Task, r, "")
	}
}

// quitting says whether an error is one that a member's loss explains.
func quitting(err error) bool {
	return errors.Is(err, persistence.ErrTaken) || errors.Is(err, errLost) || errors.Is(err, errDown) || errors.Is(err, persistence.ErrFenced)
}
