package flow

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/troupe-engine/troupe/flow/expr"
)

// ChildTask is the service of external jobs that are tasks of this engine. A function that is a
// flow starts such tasks and waits for their results. Func of the Exec is the name of the flow.
const ChildTask = "child_task"

// External is a job of another system. An attempt has started the job there and waits for its end.
type External struct {
	Task, Job string          // the task, and the job id of the attempt
	Index     int             // position among the external jobs of the attempt
	Service   string          // name of the tracker that queries the job's status
	ID        string          // id in the other system
	Data      json.RawMessage // data about the job for the tracker
	Memo      json.RawMessage // note that the tracker stored last; nil if there is none
	StartedAt int64           // time when the attempt began to wait
	Polls     int             // number of times its status was queried
	Failures  int             // number of consecutive failed queries
	FailingAt int64           // time of the first of these failures; 0 if the last query succeeded
	// Pending is set if the job does not run in the other system yet. The tracker reports the start
	// through BeganAt.
	Pending bool
}

// ExternalStatus is the status of an external job. The zero value means that it still runs.
type ExternalStatus struct {
	Ended bool
	// BeganAt is the time when the job started to run, in Unix milliseconds, by any clock. It is
	// set at each query of a job that was Pending. 0 means that the job does not run yet, or that
	// the time is unknown.
	BeganAt int64
	Output  json.RawMessage // output of a successful job: JSON, or nil
	Error   string          // error of a failed job
	// Details of the error are JSON, and Metrics are a list as in Report. They come from jobs that
	// run programs of the flow; nil if there are none. Of several jobs, those of the job that ends
	// the attempt are stored.
	Details, Metrics json.RawMessage
	// Again is the delay until the next query, also after an error. If Again is 0, the delay is one
	// second and then doubles, up to ten seconds.
	Again time.Duration
	// Memo is JSON that the next query gets as External.Memo. With nil the previous memo stays.
	Memo json.RawMessage
}

// Outside is the state of an attempt that waits for external jobs. Meanwhile no worker carries the
// attempt out.
type Outside struct {
	Jobs        []OutsideJob
	Left        int             // number of jobs that have not ended
	Output      json.RawMessage // output of the attempt; nil for the outputs of the jobs
	Worker, URL string          // the worker that started the jobs
	Log         bool
	Since       int64
}

// OutsideJob is one of the external jobs that an attempt waits for.
type OutsideJob struct {
	Service, ID string
	Ended       bool
	Output      json.RawMessage
}

// ExternalEnded reports that an external job has ended. An empty Error means success. If no attempt
// waits for the job, nothing changes.
type ExternalEnded struct {
	Address
	Index  int
	Output json.RawMessage
	Error  string
	Fatal  bool // a retry cannot succeed

	Details, Metrics json.RawMessage // as in ExternalStatus
	BeganAt          int64           // as in ExternalStatus
}

func (ExternalEnded) isCommand() {}

type (
	// Track asks the tracker to follow external jobs until they end.
	Track struct {
		Address
		Jobs []External
	}
	// Untrack stops following one of the jobs.
	Untrack struct {
		Address
		Index int
	}
	// Recall cancels external jobs of an attempt that no longer waits. The other system should stop
	// them.
	Recall struct {
		Address
		Indexes []int
	}
	// Adrift cancels external jobs that were started for an attempt that was already over. The
	// store has no record of them.
	Adrift struct{ Jobs []External }
)

func (Track) isEffect()   {}
func (Untrack) isEffect() {}
func (Recall) isEffect()  {}
func (Adrift) isEffect()  {}

// MaxExternals is the maximum number of external jobs per attempt.
const MaxExternals = 1000

// externalJSON is the form of an external job in an event.
type externalJSON struct {
	Service string          `json:"service"`
	ID      string          `json:"id"`
	Data    json.RawMessage `json:"data,omitempty"`
	Pending bool            `json:"pending,omitempty"`
}

// waitsOutside reports whether a report makes its attempt wait for external jobs. If the list of
// jobs is incomplete, the report becomes a failure.
func (d externalDecider) waitsOutside(st *Step, u *Unit, c *Report) bool {
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
	e.Worker, e.URL, e.Log, e.Metrics = truncateText(cmp.Or(c.Worker, u.Live.Worker), MaxName),
		truncateText(c.URL, MaxName), c.Log, metricsOf(c)
	if !st.Node.Patient {
		e.Due = u.Live.Due
	}
	d.emitEvent(e)
	return true
}

// cancelOrphaned cancels the external jobs that a starter has created for an attempt that is over.
// An attempt that still waits already has these jobs, so the report is ignored.
func (d externalDecider) cancelOrphaned(c *Report) {
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

// maxExternalID is the maximum length of the id of an external job in bytes. Some ids are paths.
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

// decodeExternals decodes the output of listOfExternals. It returns nil for an event that does not
// fit.
func decodeExternals(e *Event) []externalJSON {
	var list []externalJSON
	if json.Unmarshal(e.Input, &list) != nil {
		return nil
	}
	return list
}

// externalEnded records the end of an external job. The attempt ends with the last of its jobs, or
// with the first failed one.
func (d externalDecider) externalEnded(c ExternalEnded) error {
	st, u := d.s.findAttempt(c.Address)
	if d.s.Status.Ended() || u == nil || u.Live.Outside == nil || !u.Live.Outside.isAwaiting(c.Index) {
		return nil
	}
	if err := d.limits.checkValue("the output of the work outside", c.Output); err != nil {
		c.Error, c.Output = err.Error(), nil
	}
	x := u.Live.Outside
	// a job that succeeded has begun, even if no query saw it run
	if c.Error == "" || c.BeganAt > 0 {
		d.noteWorkStarted(st, u, c.Address, c.BeganAt)
	}
	e := st.newEvent(ExternalJobEnded)
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
	return d.attemptPart().settleResult(st, u, r)
}

// noteWorking records that an attempt is now carried out elsewhere.
func (d externalDecider) noteWorking(c Working) {
	if st, u := d.s.findAttempt(c.Address); u != nil && !d.s.Status.Ended() && !u.Live.Permits.Waits() {
		d.noteWorkStarted(st, u, c.Address, c.At)
	}
}

// noteWorkStarted records, once, the time since when an attempt is carried out elsewhere. The time
// is never before the hand-over, whatever the other clock shows.
func (d externalDecider) noteWorkStarted(st *Step, u *Unit, a Address, at int64) {
	since := u.Live.StartedAt
	switch x := u.Live.Outside; {
	case u.Live.Heard:
		return
	case x != nil:
		since = x.Since
	case !st.unitExec(a.Unit).ByFiles() || u.Status != UnitRunning:
		return
	}
	e := st.newEvent(AttemptStarted)
	e.Unit, e.Attempt, e.Until = a.Unit, a.Attempt, max(min(at, d.env.Now), since)
	d.emitEvent(e)
}

// Begins reports whether an event means that an attempt is carried out from now on, or from the
// Until of the event on. For a program that reports through files, only the start of its worker
// counts.
func (x *Exec) Begins(e *Event) bool {
	switch e.Type {
	case AttemptClaimed:
		return true
	case AttemptStarted:
		return e.Until > 0 || !x.ByFiles()
	case AttemptDeferred:
		return !areAllPending(decodeExternals(e))
	}
	return false
}

// areAllPending reports whether none of the external jobs of an attempt runs yet.
func areAllPending(list []externalJSON) bool {
	return len(list) > 0 && !slices.ContainsFunc(list, func(x externalJSON) bool { return !x.Pending })
}

// isAwaiting reports whether the attempt still waits for the external job.
func (x *Outside) isAwaiting(index int) bool {
	return index >= 0 && index < len(x.Jobs) && !x.Jobs[index].Ended
}

// attemptOutput returns the output of the attempt: the output that came with the jobs, else that of
// the only job, else the list of all outputs.
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

// recallOutside cancels the external jobs of an attempt that have not ended.
func (d externalDecider) recallOutside(u *Unit, a Address) {
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

// waitOutside makes an attempt wait for external jobs. From then on no worker carries the attempt
// out, and its claim is over.
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

// noteEnded records the end of an external job.
func (x *Outside) noteEnded(e *Event) {
	if x == nil || !x.isAwaiting(e.Index) {
		return
	}
	x.Jobs = slices.Clone(x.Jobs) // readers of the state may hold the old slice
	x.Jobs[e.Index].Ended, x.Jobs[e.Index].Output = true, e.Output
	x.Left--
}

// appendTrack adds the effect that tracks the external jobs of an event. The attempt itself is no
// longer carried out here.
func (s owedState) appendTrack(effects []Effect, e *Event) []Effect {
	st := s.activeStep(e.Address())
	if st == nil {
		return effects
	}
	list := decodeExternals(e)
	t := Track{Address: e.Address(), Jobs: make([]External, len(list))}
	for i, x := range list {
		t.Jobs[i] = External{Task: s.Task, Job: JobID(s.Task, e.Address()), Index: i,
			Service: x.Service, ID: x.ID, Data: x.Data, StartedAt: e.At, Pending: x.Pending}
	}
	return append(effects, Over{e.Address(), st.unitExec(e.Unit).Type == ExecQueue, End{Metrics: e.Metrics}}, t)
}

// describeWait describes the external jobs that the attempt waits for. begun means that one of them
// runs.
func (x *Outside) describeWait(w Wait, begun bool) Wait {
	w.For, w.Since = WaitsExternal, x.Since
	first := &x.Jobs[x.openIndexes()[0]]
	w.Text = fmt.Sprintf("external job %s %s must end", first.Service, first.ID)
	if !begun {
		w.Text = fmt.Sprintf("external job %s %s must start", first.Service, first.ID)
	}
	if len(x.Jobs) > 1 {
		w.Text = fmt.Sprintf("%d of %d external jobs have not ended; the first is %s %s", x.Left, len(x.Jobs), first.Service, first.ID)
	}
	return w
}

// WaitsExternal is the reason of a Wait for the end of an external job.
const WaitsExternal = "external"

// customHTTP is the service of an entry that has a url and no service_type.
const customHTTP = "custom_http"

// deferredIn returns the external jobs that an output names: {"deferred": [{"service_type": …,
// "job_id": …, …}], "data": …}. result is the later output of the attempt: data, or the whole
// output without data. A list without any object is a plain output.
func deferredIn(output json.RawMessage) (jobs []External, result json.RawMessage, err error) {
	if expr.KindOf(output) != expr.KindObject {
		return nil, output, nil
	}
	list, found := expr.Field(output, "deferred")
	if !found || expr.KindOf(list) != expr.KindArray {
		return nil, output, nil
	}
	entries, _ := expr.Elements(list)
	if !anyObject(entries) {
		return nil, output, nil
	}
	for i, entry := range entries {
		x, err := deferredEntry(i, entry)
		if err != nil {
			return nil, nil, err
		}
		jobs = append(jobs, x)
	}
	if data, found := expr.Field(output, "data"); found {
		return jobs, data, nil
	}
	return jobs, output, nil
}

func anyObject(entries []json.RawMessage) bool {
	for _, entry := range entries {
		if expr.KindOf(entry) == expr.KindObject {
			return true
		}
	}
	return false
}

// deferredEntry decodes an entry of the list of deferredIn. The tracker gets the whole entry as its
// data.
func deferredEntry(i int, entry json.RawMessage) (External, error) {
	if expr.KindOf(entry) != expr.KindObject {
		return External{}, Errorf(Invalid, "deferred[%d] is %s: each job outside is an object "+
			"with service_type and job_id", i, expr.KindOf(entry))
	}
	x := External{Service: textField(entry, "service_type"), ID: idField(entry, "job_id"), Data: entry}
	if x.Service == "" && textField(entry, "url") != "" {
		x.Service = customHTTP
	}
	switch {
	case x.Service == "":
		return External{}, Errorf(Invalid, "deferred[%d] has no service_type: name the service of the job %.80q", i, x.ID)
	case x.ID == "":
		return External{}, Errorf(Invalid, "deferred[%d] has no job_id: name the job of %.80s", i, x.Service)
	}
	return x, nil
}

// idField returns a field that is a text, or a number as written.
func idField(obj json.RawMessage, key string) string {
	v, _ := expr.Field(obj, key)
	if expr.KindOf(v) == expr.KindNumber {
		return string(v)
	}
	return textField(obj, key)
}
