package flow

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/troupe-engine/troupe/flow/expr"
)

// External is a piece of work outside: a job of another system that an attempt has begun there and
// waits for.
type External struct {
	Task, Job string          // whose it is: the task, and the attempt by its job's id
	Index     int             // among those of the attempt
	Service   string          // who knows about it: the name of a tracker
	ID        string          // what it is called there
	Data      json.RawMessage // what the tracker has to know of it
	Memo      json.RawMessage // what the tracker has noted the last time; nil = nothing
	StartedAt int64           // when the attempt began to wait
	Polls     int             // how often it was looked at
	Failures  int             // how often in a row that was in vain …
	FailingAt int64           // … and since when; 0 = it was not
	Pending   bool            // it is not under way there yet: who looks after it tells when it is, by BeganAt
}

// ExternalStatus is how work outside is. The zero value is: it goes on.
type ExternalStatus struct {
	Ended bool
	// BeganAt is since when it is under way, in Unix milliseconds, by whatever clock: of work that
	// was Pending, and then at each look. 0 = it is not, or nobody knows.
	BeganAt int64
	Output  json.RawMessage // of one that went well: JSON, or nil
	Error   string          // of one that failed
	// Details of the error, JSON, and Metrics, a list as in Report: of work that a program of ours
	// does; nil = there are none. Those of the work with which its attempt ends are kept.
	Details, Metrics json.RawMessage
	// Again is when to ask again, also after an error; 0 = after a second, and then after twice as
	// long, up to ten seconds.
	Again time.Duration
	// Memo is kept for the next time, as External.Memo: JSON; nil = what was kept before.
	Memo json.RawMessage
}

// Outside is what an attempt waits for that has begun work outside. Nobody carries it out
// meanwhile.
type Outside struct {
	Jobs        []OutsideJob
	Left        int             // how many have not ended
	Output      json.RawMessage // of the attempt; nil = what the jobs outside have as theirs
	Worker, URL string          // who began them
	Log         bool
	Since       int64
}

// OutsideJob is one of them.
type OutsideJob struct {
	Service, ID string
	Ended       bool
	Output      json.RawMessage
}

// ExternalEnded says that work outside has ended. Error "" means it went well. Of what nobody waits
// for nothing changes.
type ExternalEnded struct {
	Address
	Index  int
	Output json.RawMessage
	Error  string
	Fatal  bool // trying again is of no use

	Details, Metrics json.RawMessage // as those of an ExternalStatus
	BeganAt          int64           // likewise
}

func (ExternalEnded) isCommand() {}

type (
	// Track asks to follow jobs in other systems until they have ended.
	Track struct {
		Address
		Jobs []External
	}
	// Untrack ends that for one of the jobs.
	Untrack struct {
		Address
		Index int
	}
	// Recall says that nobody waits for work outside any longer: whoever carries it out there
	// should stop.
	Recall struct {
		Address
		Indexes []int
	}
	// Adrift says so of work that was begun for an attempt which was over by then. Nothing that is
	// stored knows of it.
	Adrift struct{ Jobs []External }
)

func (Track) isEffect()   {}
func (Untrack) isEffect() {}
func (Recall) isEffect()  {}
func (Adrift) isEffect()  {}

// MaxExternals bounds how many jobs outside one attempt waits for.
const MaxExternals = 1000

// externalJSON is how an event has a job outside.
type externalJSON struct {
	Service string          `json:"service"`
	ID      string          `json:"id"`
	Data    json.RawMessage `json:"data,omitempty"`
	Pending bool            `json:"pending,omitempty"`
}

// waitsOutside reports whether a report means that its attempt waits for work outside from now on.
// A list of that in which something is missing makes it a failed one.
func (d *decider) waitsOutside(st *Step, u *Unit, c *Report) bool {
	jobs, output := c.Deferred, c.Output
	if len(jobs) == 0 && st.Node.Deferred {
		var err error
		if jobs, output, err = deferredIn(st.scope.openValue(c.Output)); err != nil {
			c.Error, c.Output = err.Error(), nil
			return false
		}
	}
	if len(jobs) == 0 {
		return false
	}
	if err := checkExternals(jobs); err != nil {
		c.Error, c.Output = err.Error(), nil
		return false
	}
	e := st.newEvent(AttemptDeferred)
	e.Unit, e.Attempt, e.Output, e.Input = c.Unit, c.Attempt, output, listOfExternals(jobs)
	e.Worker, e.URL, e.Log, e.Metrics = truncateText(cmp.Or(c.Worker, u.Live.Worker), MaxName), truncateText(c.URL, MaxName), c.Log, metricsOf(c)
	if !st.Node.Patient {
		e.Due = u.Live.Due
	}
	d.emitEvent(e)
	return true
}

// cancelOrphaned has work end that a starter has begun for an attempt which is over. One that waits
// is not: it has that work already.
func (d *decider) cancelOrphaned(c *Report) {
	if _, u := d.s.findAttempt(c.Address); len(c.Deferred) == 0 || u != nil && !d.s.Status.Ended() || checkExternals(c.Deferred) != nil {
		return
	}
	jobs := slices.Clone(c.Deferred)
	for i := range jobs {
		x := &jobs[i]
		x.Task, x.Job, x.Index, x.StartedAt = d.s.Task, JobID(d.s.Task, c.Address), i, cmp.Or(x.StartedAt, d.env.Now)
	}
	d.effects = append(d.effects, Adrift{jobs})
}

func checkExternals(jobs []External) error {
	if len(jobs) > MaxExternals {
		return Errorf(Limit, "limit: the attempt waits for %d jobs outside, more than the %d there may be", len(jobs), MaxExternals)
	}
	for i := range jobs {
		switch x := &jobs[i]; {
		case x.Service == "" || len(x.Service) > MaxName || !IsName(x.Service):
			return Errorf(Invalid, "deferred[%d]: its service is a name of at most %d bytes of UTF-8 text", i, MaxName)
		case x.ID == "" || len(x.ID) > maxExternalID || !IsName(x.ID):
			return Errorf(Invalid, "deferred[%d]: its id is UTF-8 text of at most %d bytes", i, maxExternalID)
		case len(x.Data) > 0 && !expr.Valid(x.Data):
			return Errorf(Invalid, "deferred[%d]: its data is not valid JSON", i)
		}
	}
	return nil
}

// maxExternalID is how long the name of a job outside may be: some are paths.
const maxExternalID = 2048

func listOfExternals(jobs []External) json.RawMessage {
	list := make([]json.RawMessage, len(jobs))
	for i, x := range jobs {
		b := expr.AppendQuote([]byte(`{"service":`), x.Service)
		b = expr.AppendQuote(append(b, `,"id":`...), x.ID)
		if len(x.Data) > 0 {
			b = append(append(b, `,"data":`...), x.Data...)
		}
		if x.Pending {
			b = append(b, `,"pending":true`...)
		}
		list[i] = append(b, '}')
	}
	return listOf(list)
}

// decodeExternals reads what listOfExternals wrote. An event that does not fit has none.
func decodeExternals(e *Event) []externalJSON {
	var list []externalJSON
	if json.Unmarshal(e.Input, &list) != nil {
		return nil
	}
	return list
}

// externalEnded notes the end of work outside. The attempt ends with the last of them, or with the
// first that failed.
func (d *decider) externalEnded(c ExternalEnded) error {
	st, u := d.s.findAttempt(c.Address)
	if d.s.Status.Ended() || u == nil || u.Live.Outside == nil || !u.Live.Outside.isAwaiting(c.Index) {
		return nil
	}
	if err := d.limits.checkValue("the output of the work outside", c.Output); err != nil {
		c.Error, c.Output = err.Error(), nil
	}
	x := u.Live.Outside
	if c.Error == "" || c.BeganAt > 0 { // what has ended well has begun, also when nobody has seen it
		d.noteWorkStarted(st, u, c.Address, c.BeganAt)
	}
	e := st.newEvent(ExternalOver)
	e.Unit, e.Attempt, e.Index, e.Output, e.Error = c.Unit, c.Attempt, c.Index, c.Output, truncateText(c.Error, maxErrorText)
	d.emitEvent(e)
	r := Report{Address: c.Address, Worker: x.Worker, URL: x.URL, Log: x.Log, Metrics: c.Metrics}
	switch {
	case c.Error != "":
		d.recallOutside(u, c.Address)
		r.Error, r.Details, r.Fatal = c.Error, c.Details, c.Fatal
	case x.Left > 0:
		return nil
	default:
		r.Output = x.attemptOutput()
	}
	return d.settleResult(st, u, r)
}

// noteWorking notes that somebody is at an attempt elsewhere.
func (d *decider) noteWorking(c Working) {
	if st, u := d.s.findAttempt(c.Address); u != nil && !d.s.Status.Ended() && !u.Live.Permits.Waits() {
		d.noteWorkStarted(st, u, c.Address, c.At)
	}
}

// noteWorkStarted notes since when somebody is at an attempt elsewhere, once. That was not before
// it was handed over, whatever the clock there says.
func (d *decider) noteWorkStarted(st *Step, u *Unit, a Address, at int64) {
	since := u.Live.StartedAt
	switch x := u.Live.Outside; {
	case u.Live.Heard:
		return
	case x != nil:
		since = x.Since
	case !st.unitExec(a.Unit).ByFiles() || u.Status != UnitRunning:
		return
	}
	e := st.newEvent(AttemptBegun)
	e.Unit, e.Attempt, e.Until = a.Unit, a.Attempt, max(min(at, d.env.Now), since)
	d.emitEvent(e)
}

// Begins reports whether an event tells that somebody is at an attempt from now on, or from its
// Until on. Of a program that tells by files that is its worker, not who has started it.
func (x *Exec) Begins(e *Event) bool {
	switch e.Type {
	case AttemptClaimed:
		return true
	case AttemptBegun:
		return e.Until > 0 || !x.ByFiles()
	case AttemptDeferred:
		return !areAllPending(decodeExternals(e))
	}
	return false
}

// areAllPending says that nobody is at any of an attempt's jobs outside yet.
func areAllPending(list []externalJSON) bool {
	return len(list) > 0 && !slices.ContainsFunc(list, func(x externalJSON) bool { return !x.Pending })
}

// isAwaiting reports whether a job outside is awaited.
func (x *Outside) isAwaiting(index int) bool {
	return index >= 0 && index < len(x.Jobs) && !x.Jobs[index].Ended
}

// attemptOutput is the attempt's: what came with the jobs, else that of the only one, else a list
// of theirs.
func (x *Outside) attemptOutput() json.RawMessage {
	switch {
	case len(x.Output) > 0:
		return x.Output
	case len(x.Jobs) == 1:
		return x.Jobs[0].Output
	}
	outputs := make([]json.RawMessage, len(x.Jobs))
	for i := range x.Jobs {
		outputs[i] = x.Jobs[i].Output
	}
	return listOf(outputs)
}

// recallOutside has the work outside of an attempt end that has not ended by itself.
func (d *decider) recallOutside(u *Unit, a Address) {
	if left := u.Live.Outside.openIndexes(); len(left) > 0 {
		d.effects = append(d.effects, Recall{Address: a, Indexes: left})
	}
}

func (x *Outside) openIndexes() (indexes []int) {
	for i := range x.Jobs {
		if !x.Jobs[i].Ended {
			indexes = append(indexes, i)
		}
	}
	return indexes
}

// waitOutside has an attempt wait. Nobody carries it out any longer, and no claim for it holds.
func (u *Unit) waitOutside(e *Event) {
	x := &Outside{Output: e.Output, Worker: e.Worker, URL: e.URL, Log: e.Log, Since: e.At}
	list := decodeExternals(e)
	for _, job := range list {
		x.Jobs = append(x.Jobs, OutsideJob{Service: job.Service, ID: job.ID})
	}
	x.Left = len(x.Jobs)
	l := u.Live
	u.Status, l.Heard = UnitRunning, true
	if areAllPending(list) {
		u.Status, l.Heard = UnitDispatched, false
	}
	l.Outside, l.Due, l.StartBy = x, e.Due, 0
	l.Carrier, l.Worker, l.ClaimedAt, l.Until, l.Note = "", "", 0, 0, ""
}

// noteEnded notes the end of a job outside.
func (x *Outside) noteEnded(e *Event) {
	if x == nil || !x.isAwaiting(e.Index) {
		return
	}
	x.Jobs = slices.Clone(x.Jobs) // whoever reads the state may have them
	x.Jobs[e.Index].Ended, x.Jobs[e.Index].Output = true, e.Output
	x.Left--
}

// appendTrack asks to look after the work outside of an event, which nobody carries out any longer
// here.
func (s *State) appendTrack(effects []Effect, e *Event) []Effect {
	st := s.activeStep(e.Address())
	if st == nil {
		return effects
	}
	list := decodeExternals(e)
	t := Track{Address: e.Address(), Jobs: make([]External, len(list))}
	for i, x := range list {
		t.Jobs[i] = External{Task: s.Task, Job: JobID(s.Task, e.Address()), Index: i, Service: x.Service, ID: x.ID, Data: x.Data, StartedAt: e.At, Pending: x.Pending}
	}
	return append(effects, Over{e.Address(), st.unitExec(e.Unit).Type == ExecQueue, End{Metrics: e.Metrics}}, t)
}

// describeWait tells what an attempt waits for outside. begun = somebody is at it.
func (x *Outside) describeWait(w Wait, begun bool) Wait {
	w.For, w.Since = WaitsOutside, x.Since
	first := &x.Jobs[x.openIndexes()[0]]
	w.Text = fmt.Sprintf("%s %s has to end", first.Service, first.ID)
	if !begun {
		w.Text = fmt.Sprintf("%s %s has to begin", first.Service, first.ID)
	}
	if len(x.Jobs) > 1 {
		w.Text = fmt.Sprintf("%d of %d jobs outside have yet to end, the first is %s %s", x.Left, len(x.Jobs), first.Service, first.ID)
	}
	return w
}

// WaitsOutside is what a Wait is for that work in another system ends.
const WaitsOutside = "outside"
