package api

import (
	"cmp"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/troupe-engine/troupe/api/stream"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
)

// Queue entries and runs are the same jobs under two names.
const (
	queuePrefix = "q-"
	runPrefix   = "run-"
)

// jobOf finds the job behind an id of this dialect, or of /v1, which has no prefixes.
func jobOf(id, prefix string) (job, task string, a flow.Address, err error) {
	job = strings.TrimPrefix(id, prefix)
	task, a, err = flow.ParseJobID(job)
	return job, task, a, err
}

// maxWait bounds a long poll, so that a client that is gone is noticed.
const maxWait = time.Minute

// poll answers, and refuses, in the list form's dialect whoever asks in it.
func (g *graph) poll(w http.ResponseWriter, r *http.Request) error {
	q, list, err := readPoll(r)
	var claimed []engine.Claimed
	if err == nil {
		claimed, err = g.claim(w, r, q)
	}
	switch {
	case err != nil && list:
		g.pgflow.refuse(w, r, err)
		return nil
	case err != nil:
		return err
	case len(claimed) == 0:
		w.WriteHeader(http.StatusNoContent)
		return nil
	case list:
		return writeTasks(w, claimed)
	}
	return writeJob(w, q.WorkerID, claimed[0])
}

// What a poll in the list form asks for that does not say.
const (
	listMax    = 10
	listWaitMS = 2000
)

// readPoll tells the list form by its fields.
func readPoll(r *http.Request) (q wire.QueuePoll, list bool, err error) {
	b, err := readBody(r)
	if err != nil {
		return q, false, err
	}
	list = b.has("max") || b.has("flow") || b.has("labels")
	err = b.strict(func() {
		q = wire.QueuePoll{WorkerID: b.text("worker_id"), Services: b.texts("services"), Max: b.number("max"), WaitMS: int64(b.number("wait_ms")),
			Flow: b.text("flow"), Labels: b.texts("labels")}
	})
	switch {
	case !list:
		return q, false, err
	case err != nil:
		return q, true, b.problem()
	case q.Flow == "" && len(q.Services) == 0:
		return q, true, flow.Errorf(flow.Invalid, "flow or services is missing: say what you can do")
	}
	q.Max = cmp.Or(q.Max, listMax)
	if !b.has("wait_ms") {
		q.WaitMS = listWaitMS
	}
	return q, true, nil
}

func writeJob(w http.ResponseWriter, worker string, c engine.Claimed) error {
	job := toQueueJob(worker, c)
	text, err := json.Marshal(wire.QueueInput{Input: job.Input, Params: job.Params, RunID: job.RunID})
	if err != nil {
		return err
	}
	job.InputJSON = string(text)
	if c.Job.ParamsKey != "" {
		job.Params = nil // they are in there
	}
	writeJSON(w, http.StatusOK, job)
	return nil
}

func (g *graph) claim(w http.ResponseWriter, r *http.Request, q wire.QueuePoll) ([]engine.Claimed, error) {
	flowID := ""
	if q.Flow != "" {
		var err error
		if flowID, q.Services, err = g.pgflow.servicesOf(r.Context(), q); err != nil {
			return nil, err
		}
	}
	if len(q.Services) == 0 {
		return nil, nil
	}
	ctx, cancel := stream.Stay(w, r)
	defer cancel()
	p := engine.Poll{Worker: q.WorkerID, Services: q.Services, FlowID: flowID, Labels: q.Labels, Max: max(q.Max, 1)}
	if q.WaitMS > 0 {
		p.Wait = min(time.Duration(min(q.WaitMS, maxWait.Milliseconds()))*time.Millisecond, maxWait)
	}
	claimed, err := g.engine.Poll(ctx, p)
	if ctx.Err() != nil && len(claimed) == 0 {
		return nil, nil // the client or the server is about to go: there is nothing for now
	}
	return claimed, err
}

func toQueueJob(worker string, c engine.Claimed) wire.QueueJob {
	id := c.Job.ID()
	node, _ := place(c.Job.Address)
	return wire.QueueJob{
		ID: queuePrefix + id, TaskID: c.Job.Task, NodeKey: node, Service: c.Job.Service, Status: "claimed",
		WorkerID: worker, CreatedAt: seconds(c.Job.EnqueuedAt), StartedAt: seconds(c.ClaimedAt), TimeoutAt: seconds(c.Until),
		Input: orNull(c.Job.Input), Params: orObject(c.Job.Params), RunID: runPrefix + id, Token: c.Token,
		VisibilityMS: c.Until - c.ClaimedAt,
	}
}

func orNull(v json.RawMessage) json.RawMessage {
	if len(v) == 0 {
		return json.RawMessage("null")
	}
	return v
}

func orObject(v json.RawMessage) json.RawMessage {
	if len(v) == 0 {
		return json.RawMessage("{}")
	}
	return v
}

func (g *graph) complete(w http.ResponseWriter, r *http.Request) error {
	var q wire.QueueComplete
	var worker string
	b, err := readBody(r)
	if err != nil {
		return err
	}
	if b.has("id") && !b.has("queue_id") {
		if err := g.pgflow.completeByID(w, r, b); err != nil {
			g.pgflow.refuse(w, r, err)
		}
		return nil
	}
	err = b.strict(func() {
		q = wire.QueueComplete{QueueID: b.text("queue_id"), Result: b.raw("result"), Error: b.text("error"),
			Token: b.text("token"), RunID: b.text("run_id"), Log: b.text("log")}
		b.into("fatal", &q.Fatal)
		b.text("log_path") // checked like the others, and never opened
		worker = b.text("worker_id")
	})
	if err != nil {
		return err
	}
	job, task, a, err := jobOf(q.QueueID, queuePrefix)
	if err != nil {
		return notFound("queue entry not found")
	}
	report := flow.Report{Address: a, Output: q.Result, Error: q.Error, Fatal: q.Fatal, Token: q.Token, Worker: worker, Poller: true}
	if report.Log, err = g.keepLog(r, task, job, a, q); err != nil {
		return err
	}
	if err := g.order(r, task, report); err != nil {
		return err
	}
	return writeOK(w)
}

// keepLog stores what the worker sent along, if it still holds the job: a late stranger must not
// overwrite the log of another.
func (g *graph) keepLog(r *http.Request, task, job string, a flow.Address, q wire.QueueComplete) (bool, error) {
	if q.Log == "" {
		return false, nil
	}
	v, err := g.reader.View(r.Context(), task)
	if err != nil {
		return false, err
	}
	live := v.State.Live(a)
	if live == nil || live.Token == "" || q.Token != "" && q.Token != live.Token {
		return false, nil
	}
	return true, g.store.PutLog(r.Context(), task, job, []byte(q.Log))
}

// params tells a worker what was too large to go along with each job.
func (g *graph) params(w http.ResponseWriter, r *http.Request) error {
	var q wire.QueueParams
	err := readStrict(r, func(b *graphBody) {
		q = wire.QueueParams{QueueID: b.text("queue_id"), Token: b.text("token")}
	})
	if err != nil {
		return err
	}
	_, task, a, err := jobOf(q.QueueID, queuePrefix)
	if err != nil {
		return notFound("queue entry not found")
	}
	v, err := g.reader.View(r.Context(), task)
	if Missing(err) {
		return notFound("queue entry not found")
	} else if err != nil {
		return err
	}
	job, open := v.State.Job(a)
	switch {
	case !open:
		return notFound("queue entry not found")
	case q.Token != "" && !v.State.Holds(a, q.Token):
		return flow.Errorf(flow.Conflict, "the token is not that of the newest claim: another worker holds the job")
	}
	writeJSON(w, http.StatusOK, wire.QueueParamsAnswer{Params: orObject(job.Params), FlowInput: orNull(job.Run)})
	return nil
}

// maxExtend bounds how long a claim may be prolonged at once.
const maxExtend = 24 * time.Hour

// extend prolongs claims. Whoever names a job by id is refused in the dialect that does so.
func (g *graph) extend(w http.ResponseWriter, r *http.Request) error {
	q, byID, err := readHeartbeat(r)
	if err == nil {
		var canceled []string
		if canceled, err = g.prolong(r, q); err == nil {
			writeJSON(w, http.StatusOK, wire.QueueHeartbeatAnswer{OK: "1", Canceled: canceled})
			return nil
		}
	}
	if byID {
		g.pgflow.refuse(w, r, err)
		return nil
	}
	if flow.KindOf(err) == flow.NotFound {
		return notFound("queue entry not found")
	}
	return err
}

func readHeartbeat(r *http.Request) (q wire.QueueHeartbeat, byID bool, err error) {
	b, err := readBody(r)
	if err != nil {
		return q, false, err
	}
	byID = b.has("id") && !b.has("queue_id")
	err = b.strict(func() {
		q = wire.QueueHeartbeat{QueueID: b.text("queue_id"), QueueIDs: b.texts("queue_ids"),
			Token: b.text("token"), WorkerID: b.text("worker_id")}
		if byID {
			q.QueueID = b.text("id")
		}
		b.into("extend", &q.Extend)
	})
	switch {
	case err != nil && byID:
		err = b.problem()
	case err != nil:
	case !(q.Extend >= 0 && q.Extend <= maxExtend.Seconds()):
		err = badRequest("extend must be between 0 and " + strconv.Itoa(int(maxExtend.Seconds())) + " seconds")
	case len(q.IDs()) == 0:
		err = badRequest("queue_id required")
	}
	return q, byID, err
}

// prolong answers with the ids of those jobs that nobody waits for any longer, as they were asked for.
func (g *graph) prolong(r *http.Request, q wire.QueueHeartbeat) (canceled []string, err error) {
	ids := q.IDs()
	claims := make([]engine.Claim, len(ids))
	for i, id := range ids {
		claims[i].Token = q.Token
		if claims[i].Job, _, _, err = jobOf(id, queuePrefix); err != nil {
			return nil, err
		}
	}
	over, err := engine.Extend(r.Context(), g.engine, q.WorkerID, claims, time.Duration(q.Extend*float64(time.Second)))
	if err != nil {
		return nil, err
	}
	gone := map[string]bool{}
	for _, job := range over {
		gone[job] = true
	}
	canceled = []string{}
	for i := range claims {
		if gone[claims[i].Job] {
			canceled = append(canceled, ids[i])
		}
	}
	return canceled, nil
}

func (g *graph) release(w http.ResponseWriter, r *http.Request) error {
	var q wire.QueueRelease
	err := readStrict(r, func(b *graphBody) {
		q = wire.QueueRelease{QueueID: b.text("queue_id"), Token: b.text("token")}
		b.into("claims", &q.Claims)
	})
	if err != nil {
		return err
	}
	all := q.All()
	if len(all) == 0 {
		return badRequest("queue_id required")
	}
	claims := make([]engine.Claim, len(all))
	for i, c := range all {
		if claims[i].Job, _, _, err = jobOf(c.QueueID, queuePrefix); err != nil {
			return notFound("queue entry not found")
		}
		if claims[i].Token = c.Token; c.Token == "" {
			return badRequest("token required: it is in the answer of the poll")
		}
	}
	if err := engine.GiveBack(r.Context(), g.engine, claims); Missing(err) {
		return notFound("queue entry not found")
	} else if err != nil {
		return err
	}
	return writeOK(w)
}

// updateRun answers 200 for runs that are over or were never there, as workers expect.
func (g *graph) updateRun(w http.ResponseWriter, r *http.Request) error {
	var q wire.QueueUpdateRun
	err := readStrict(r, func(b *graphBody) {
		q = wire.QueueUpdateRun{RunID: b.text("run_id"), Status: b.text("status")}
	})
	if err != nil {
		return err
	}
	if q.RunID == "" {
		return badRequest("run_id required")
	}
	_, task, a, err := jobOf(q.RunID, runPrefix)
	if err == nil {
		err = g.order(r, task, flow.Note{Address: a, Text: q.Status})
	}
	if err != nil && !Missing(err) && flow.KindOf(err) != flow.Conflict {
		return err
	}
	return writeOK(w)
}
