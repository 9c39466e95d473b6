package pocketflowhttp

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/payload"
)

func (g *graph) pollQueue(w http.ResponseWriter, r *http.Request) error {
	q, err := readPoll(r)
	if err != nil {
		return err
	}
	jobs, err := api.Poll(w, r, g.Engine, engine.Poll{Worker: q.WorkerID, Services: q.Services, Max: 1}, q.WaitMS)
	if err != nil {
		return err
	}
	if len(jobs) == 0 {
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	job := jobs[0]
	if job.Job.ParamsKey != "" { // a request for one job gets the params with it
		known, err := g.findHeld(r.Context(), job.Job.Task, job.Job.Address, job.Token)
		if err != nil {
			return err
		}
		job.Job.Params = known.Params
	}
	return writeJob(w, q.WorkerID, job)
}

// readPoll rejects a faulty poll. Otherwise the worker would poll for ever without a result.
func readPoll(r *http.Request) (q wire.QueuePoll, err error) {
	b, err := api.ReadBody(r)
	if err != nil {
		return q, err
	}
	q = wire.QueuePoll{WorkerID: b.Text("worker_id"), Services: b.Texts("services"), WaitMS: int64(b.Number("wait_ms"))}
	switch {
	case b.Bad:
		return q, badRequest("bad request: " + b.Problem().Error())
	case q.Services == nil: // an empty list gets no job, as clients expect
		return q, badRequest(`services is missing: say what jobs may be for, as in {"worker_id": "w1", "services": ["resize"]}`)
	}
	return q, nil
}

func writeJob(w http.ResponseWriter, worker string, c engine.Claimed) error {
	job := toQueueJob(worker, c)
	text, err := json.Marshal(wire.QueueInput{Input: job.Input, Params: job.Params, RunID: job.RunID})
	if err == nil {
		text, err = payload.Of(w).Whole(text)
	}
	if err != nil {
		return err
	}
	job.InputJSON = string(text)
	if c.Job.ParamsKey != "" {
		job.Params = nil // InputJSON contains them
	}
	api.WriteJSON(w, http.StatusOK, job)
	return nil
}

func toQueueJob(worker string, c engine.Claimed) wire.QueueJob {
	id := c.Job.ID()
	node, _ := displayPlace(c.Job.Address)
	return wire.QueueJob{
		ID: api.QueuePrefix + id, Key: c.Job.Key(), TaskID: c.Job.Task, NodeKey: node, Service: c.Job.Service, Status: "claimed",
		WorkerID: worker, CreatedAt: toSeconds(c.Job.EnqueuedAt), StartedAt: toSeconds(c.ClaimedAt), TimeoutAt: toSeconds(c.Until),
		Input: api.OrNull(c.Job.Input), Params: api.OrObject(c.Job.Params), RunID: api.RunPrefix + id, Token: c.Token,
		VisibilityMS: c.Until - c.ClaimedAt,
	}
}

func (g *graph) completeJob(w http.ResponseWriter, r *http.Request) error {
	var q wire.QueueComplete
	var worker string
	b, err := api.ReadBody(r)
	if err != nil {
		return err
	}
	err = b.Strict(func() {
		q = wire.QueueComplete{QueueID: b.Text("queue_id"), Result: b.Raw("result"), Error: b.Text("error"),
			Token: b.Text("token"), RunID: b.Text("run_id"), Log: b.Text("log")}
		b.Into("fatal", &q.Fatal)
		b.Text("log_path") // the type is checked as for other fields; the path is never opened
		worker = b.Text("worker_id")
	})
	if err != nil {
		return err
	}
	_, task, a, err := api.JobOf(q.QueueID, api.QueuePrefix)
	if err != nil {
		return notFound("queue entry not found")
	}
	report := flow.Report{Address: a, Output: q.Result, Error: q.Error, Fatal: q.Fatal, Token: q.Token, Worker: worker, Poller: true}
	if report.Log, err = api.KeepLog(r.Context(), g.Member, task, a, q.Token, api.LastLine, api.TextLines(q.Log)); err != nil {
		return err
	}
	if err := g.sendCommand(r, task, report); err != nil {
		return err
	}
	return writeOK(w)
}

// sendParams answers with the params that were too large to be sent with each job.
func (g *graph) sendParams(w http.ResponseWriter, r *http.Request) error {
	var q wire.QueueParams
	err := api.ReadStrict(r, func(b *api.Body) {
		q = wire.QueueParams{QueueID: b.Text("queue_id"), Token: b.Text("token")}
	})
	if err != nil {
		return err
	}
	_, task, a, err := api.JobOf(q.QueueID, api.QueuePrefix)
	if err != nil {
		return notFound("queue entry not found")
	}
	job, err := g.findHeld(r.Context(), task, a, q.Token)
	if err != nil {
		return err
	}
	api.WriteJSON(w, http.StatusOK, wire.QueueParamsAnswer{Params: api.OrObject(job.Params), FlowInput: api.OrNull(job.Run)})
	return nil
}

// findHeld returns a job from the state of its task. If there is a token, it returns only a job
// that was claimed with the token.
func (g *graph) findHeld(ctx context.Context, task string, a flow.Address, token string) (flow.Job, error) {
	v, err := g.Reader.View(ctx, task)
	if api.Missing(err) {
		return flow.Job{}, notFound("queue entry not found")
	} else if err != nil {
		return flow.Job{}, err
	}
	job, open := v.State.Job(a)
	switch {
	case !open:
		return flow.Job{}, notFound("queue entry not found")
	case token != "" && !v.State.Holds(a, token):
		return flow.Job{}, flow.Errorf(flow.Conflict, "the token is not that of the newest claim: another worker holds the job")
	}
	return job, nil
}

// handleExtend extends claims.
func (g *graph) handleExtend(w http.ResponseWriter, r *http.Request) error {
	var q wire.QueueHeartbeat
	err := api.ReadStrict(r, func(b *api.Body) {
		q = wire.QueueHeartbeat{QueueID: b.Text("queue_id"), QueueIDs: b.Texts("queue_ids"),
			Token: b.Text("token"), WorkerID: b.Text("worker_id")}
		b.Into("extend", &q.Extend)
	})
	if err != nil {
		return err
	}
	answer, err := g.extendClaims(r, q)
	if flow.ErrorKindOf(err) == flow.NotFound {
		return notFound("queue entry not found")
	} else if err != nil {
		return err
	}
	api.WriteJSON(w, http.StatusOK, answer)
	return nil
}

// extendClaims answers with the ids of withdrawn jobs and of jobs with unreachable runs. The ids
// have the form in which they were sent.
func (g *graph) extendClaims(r *http.Request, q wire.QueueHeartbeat) (answer wire.QueueHeartbeatAnswer, err error) {
	by, err := api.ExtendBy(q.Extend)
	if err != nil {
		return answer, err
	}
	ids := q.IDs()
	if len(ids) == 0 {
		return answer, badRequest("queue_id required")
	}
	claims := make([]engine.Claim, len(ids))
	for i, id := range ids {
		claims[i].Token = q.Token
		if claims[i].Job, _, _, err = api.JobOf(id, api.QueuePrefix); err != nil {
			return answer, err
		}
	}
	x, err := api.Extend(r.Context(), g.Engine, q.WorkerID, claims, by)
	if err != nil {
		return answer, err
	}
	answer = wire.QueueHeartbeatAnswer{OK: "1", Canceled: []string{}}
	canceled, unheard := setOf(x.Canceled), setOf(x.Unheard)
	for i := range claims {
		switch {
		case canceled[claims[i].Job]:
			answer.Canceled = append(answer.Canceled, ids[i])
		case unheard[claims[i].Job]:
			answer.Unheard = append(answer.Unheard, ids[i])
		}
	}
	return answer, nil
}

func setOf(jobs []string) map[string]bool {
	set := make(map[string]bool, len(jobs))
	for _, job := range jobs {
		set[job] = true
	}
	return set
}

func (g *graph) releaseClaims(w http.ResponseWriter, r *http.Request) error {
	var q wire.QueueRelease
	err := api.ReadStrict(r, func(b *api.Body) {
		q = wire.QueueRelease{QueueID: b.Text("queue_id"), Token: b.Text("token")}
		b.Into("claims", &q.Claims)
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
		if claims[i].Job, _, _, err = api.JobOf(c.QueueID, api.QueuePrefix); err != nil {
			return notFound("queue entry not found")
		}
		if claims[i].Token = c.Token; c.Token == "" {
			return badRequest("token required: it is in the answer of the poll")
		}
	}
	if err := engine.GiveBack(r.Context(), g.Engine, claims); err != nil {
		return err
	}
	return writeOK(w)
}

// updateRun updates a run. It answers 200 even if the run has ended or never existed, as workers
// expect.
func (g *graph) updateRun(w http.ResponseWriter, r *http.Request) error {
	var q wire.QueueUpdateRun
	err := api.ReadStrict(r, func(b *api.Body) {
		q = wire.QueueUpdateRun{RunID: b.Text("run_id"), Status: b.Text("status")}
	})
	if err != nil {
		return err
	}
	if q.RunID == "" {
		return badRequest("run_id required")
	}
	_, task, a, err := api.JobOf(q.RunID, api.RunPrefix)
	if err == nil {
		err = g.sendCommand(r, task, flow.Note{Address: a, Text: q.Status})
	}
	if err != nil && !api.Missing(err) && flow.ErrorKindOf(err) != flow.Conflict {
		return err
	}
	return writeOK(w)
}
