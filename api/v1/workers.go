package v1

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/trace"
	"github.com/troupe-engine/troupe/persistence"
)

// Routes with which workers register and get their jobs. Routes with which they end them are in
// reports.go.

// workerHandler serves workers, their polls and their heartbeats.
type workerHandler struct {
	catalog *flowCatalog

	member    api.Member
	reader    api.Reader
	engine    engine.Engine
	registry  api.Registry
	workerTTL time.Duration
}

func (h *workerHandler) addWorkerRoutes(rt *apiRouter) {
	registerOperation(rt, apiOperation{id: "list-workers", method: http.MethodGet, path: "/v1/workers", tag: "workers",
		summary: "List the workers in order of their first registration"}, h.listWorkers)
	registerOperation(rt, apiOperation{id: "get-worker", method: http.MethodGet, path: "/v1/workers/{worker}", tag: "workers",
		summary: "Read a worker"}, h.getWorker)
	registerOperation(rt, apiOperation{id: "register-worker", method: http.MethodPut,
		path: "/v1/workers/{worker}", tag: "workers", summary: "Register a worker, or register it anew",
		text: "Polling needs no registration; it is how a worker is seen, and how the engine " +
			"knows whom to call. Registering anew means that the worker was restarted: what it " +
			"had claimed before goes to others when the leases run out."}, h.registerWorker)
	registerOperation(rt, apiOperation{id: "forget-worker", method: http.MethodDelete, path: "/v1/workers/{worker}", tag: "workers",
		summary: "Forget a worker",
		text: "It gets no more jobs. What it has begun it may finish; what it has claimed " +
			"and does not give back goes to others when the claims run out."}, h.forgetWorker)
	registerOperation(rt, apiOperation{id: "worker-heartbeat", method: http.MethodPost,
		path: "/v1/workers/{worker}/heartbeat", tag: "workers",
		summary: "Give a sign of life, and prolong leases",
		text: "The answer tells which of the jobs nobody waits for any longer. A registered " +
			"worker that lives keeps its claims, also without naming each of them."}, h.handleHeartbeat)
	registerOperation(rt, apiOperation{id: "poll-jobs", method: http.MethodPost, path: "/v1/workers/{worker}/poll", tag: "workers",
		summary: "Claim jobs, or wait for some",
		text: "Each job in the answer is claimed for the worker until its lease ends; then, " +
			"without a heartbeat, others get it. A job may be carried out more than once, its " +
			"end counts once."}, h.pollJobs)
	registerOperation(rt, apiOperation{id: "claim-job", method: http.MethodPost, path: "/v1/jobs/{job}/claim", tag: "workers",
		summary: "Claim one job", text: "One that somebody else has is a conflict (409)."}, h.claimJob)
	registerOperation(rt, apiOperation{id: "job-params", method: http.MethodGet, path: "/v1/jobs/{job}/params", tag: "workers",
		summary: "Read what was too large to come along with a job",
		text: "Only of a job that has not ended. With a token only the holder of the claim " +
			"is told (409)."}, h.jobParams)
}

// WorkerPath identifies a worker.
type WorkerPath struct {
	Worker string `path:"worker" minLength:"1" maxLength:"256" doc:"id of the worker, of its own choice"`
}

func (h *workerHandler) forgetWorker(ctx context.Context, in *WorkerPath) (*struct{}, error) {
	err := h.registry.Deregister(ctx, in.Worker)
	if api.Missing(err) {
		return nil, newNotFoundError("path.worker",
			"GET /v1/workers lists them; this member itself cannot be forgotten",
			"no worker %.80q is registered", in.Worker)
	}
	return nil, err
}

type listWorkersInput struct {
	Paging
	ID      string `query:"id_prefix" maxLength:"256" doc:"what the ids begin with"`
	Service string `query:"service" maxLength:"256" doc:"only those that offer it"`
	State   string `query:"state" enum:"online,offline" doc:"only those in it"`
}

func (in *listWorkersInput) matchesWorker(w *wire.KnownWorker) bool {
	return strings.HasPrefix(w.ID, in.ID) && (in.Service == "" ||
		slices.Contains(w.Services, in.Service)) && (in.State == "" || in.State == w.State)
}

func (h *workerHandler) listWorkers(ctx context.Context, in *listWorkersInput) (*bodyResponse[wire.Page[wire.KnownWorker]], error) {
	at, continued, err := in.parseCursor()
	if err != nil {
		return nil, err
	}
	known, err := h.registry.List(ctx)
	if err != nil {
		return nil, err
	}
	if continued {
		known = afterWorker(known, at)
	}
	found := []wire.KnownWorker{}
	for i := range known {
		if w := h.toWorker(&known[i]); in.matchesWorker(&w) {
			found = append(found, w)
		}
	}
	found, more := cutPage(found, in.Limit)
	page := wire.Page[wire.KnownWorker]{Items: found}
	if more {
		last := found[len(found)-1]
		page.Next = listCursor{last.RegisteredAt.UnixMilli(), last.ID}.String()
	}
	return &bodyResponse[wire.Page[wire.KnownWorker]]{page}, nil
}

// afterWorker returns the workers that follow a worker. If it was deleted, workers that registered
// at the same time may be returned again.
func afterWorker(known []persistence.Worker, at listCursor) []persistence.Worker {
	for i, w := range known {
		if w.ID == at.name {
			return known[i+1:]
		}
	}
	later := slices.IndexFunc(known, func(w persistence.Worker) bool { return w.RegisteredAt >= at.at })
	if later < 0 {
		return nil
	}
	return known[later:]
}

func (h *workerHandler) toWorker(k *persistence.Worker) wire.KnownWorker {
	w := wire.KnownWorker{ID: k.ID, URL: k.URL, Type: k.Type, Services: k.Services, Labels: k.Labels, Load: k.Load, State: "online",
		LastHeartbeat: wire.Millis(k.LastHeartbeat), RegisteredAt: wire.Millis(k.RegisteredAt)}
	if w.Services == nil {
		w.Services = []string{}
	}
	if !h.isOnline(k) {
		w.State = "offline"
	}
	return w
}

// isOnline reports whether the last heartbeat of a worker is recent.
func (h *workerHandler) isOnline(k *persistence.Worker) bool {
	return h.engine.Now().Sub(time.UnixMilli(k.LastHeartbeat)) <= h.workerTTL
}

func (h *workerHandler) getWorker(ctx context.Context, in *WorkerPath) (*bodyResponse[wire.KnownWorker], error) {
	known, err := h.registry.List(ctx)
	if err != nil {
		return nil, err
	}
	for i := range known {
		if known[i].ID == in.Worker {
			return &bodyResponse[wire.KnownWorker]{h.toWorker(&known[i])}, nil
		}
	}
	return nil, newNotFoundError("path.worker", "GET /v1/workers lists them", "no worker %.80q is registered", in.Worker)
}

type registerInput struct {
	WorkerPath
	Body wire.Registration
}

func (h *workerHandler) registerWorker(ctx context.Context, in *registerInput) (*bodyResponse[wire.Registered], error) {
	w := persistence.Worker{ID: in.Worker, Services: in.Body.Services, Labels: in.Body.Labels, URL: "queue", Type: "async"}
	if in.Body.URL != "" {
		w.URL, w.Type, w.Secret = in.Body.URL, "http", in.Body.Secret
	}
	if err := h.registry.Register(ctx, w); err != nil {
		return nil, locateError("body", err)
	}
	return &bodyResponse[wire.Registered]{wire.Registered{OfflineAfterMS: h.workerTTL.Milliseconds()}}, nil
}

type heartbeatInput struct {
	WorkerPath
	Body wire.Heartbeat
}

func (h *workerHandler) handleHeartbeat(ctx context.Context, in *heartbeatInput) (*bodyResponse[wire.HeartbeatAnswer], error) {
	if err := checkNotes(in.Body.Claims); err != nil {
		return nil, err
	}
	prolonging := h.extendClaims(ctx, in)
	err := h.registry.Heartbeat(ctx, in.Worker, in.Body.Load)
	claims := <-prolonging
	if claims.panicked != "" {
		panic(claims.panicked)
	}
	answer := wire.HeartbeatAnswer{Registered: !api.Missing(err), Canceled: append([]string{}, claims.Canceled...), Unheard: claims.Unheard}
	if err != nil && answer.Registered {
		return nil, err
	}
	if claims.err != nil {
		return nil, locateError("body.claims", claims.err)
	}
	held := dropCanceled(in.Body.Claims, slices.Concat(claims.Canceled, claims.Unheard))
	if err := h.recordNotes(ctx, held); err != nil {
		return nil, locateError("body.claims", err)
	}
	if err := h.storeLines(ctx, held); err != nil {
		return nil, locateError("body.claims", err)
	}
	return &bodyResponse[wire.HeartbeatAnswer]{answer}, nil
}

// extendedClaims is the result of extending the claims of a heartbeat.
type extendedClaims struct {
	engine.Extended
	err      error
	panicked string // panic value and stack; a panic ends the request, as it does elsewhere
}

// extendClaims extends the claims of a heartbeat concurrently with its other work. Claims may be
// about to expire while the heartbeat waits for other members. And the heartbeat must not be late
// because the task of a claim is on a member that does not answer.
func (h *workerHandler) extendClaims(ctx context.Context, in *heartbeatInput) <-chan extendedClaims {
	done := make(chan extendedClaims, 1)
	if len(in.Body.Claims) == 0 {
		done <- extendedClaims{}
		return done
	}
	go func() {
		defer func() {
			if p := recover(); p != nil {
				done <- extendedClaims{panicked: fmt.Sprintf("%v\n%s", p, debug.Stack())}
			}
		}()
		by := time.Duration(in.Body.ExtendMS) * time.Millisecond
		x, err := api.Extend(ctx, h.engine, in.Worker, claimsOf(in.Body.Claims), by)
		done <- extendedClaims{Extended: x, err: err}
	}()
	return done
}

// checkNotes rejects invalid notes before any claim is extended. Afterwards an error would hide
// which jobs are canceled.
func checkNotes(held []wire.HeldClaim) error {
	for i, c := range held {
		if len(c.Note) > flow.MaxName {
			return newInvalidError(fmt.Sprintf("body.claims[%d].note", i), "make it shorter",
				"the note has %d bytes, more than the limit of %d", len(c.Note), flow.MaxName)
		}
	}
	return nil
}

func claimsOf(held []wire.HeldClaim) []engine.Claim {
	claims := make([]engine.Claim, len(held))
	for i, c := range held {
		claims[i] = engine.Claim{Job: c.Job, Token: c.Token}
	}
	return claims
}

// dropCanceled removes claims that are no longer valid.
func dropCanceled(held []wire.HeldClaim, canceled []string) []wire.HeldClaim {
	return slices.DeleteFunc(held, func(c wire.HeldClaim) bool { return slices.Contains(canceled, c.Job) })
}

// recordNotes stores the notes with which a worker describes the states of its jobs.
func (h *workerHandler) recordNotes(ctx context.Context, held []wire.HeldClaim) error {
	var orders engine.Orders
	for _, c := range held {
		if c.Note == "" {
			continue
		}
		task, at, err := flow.ParseJobID(c.Job)
		if err != nil {
			return err
		}
		orders = append(orders, engine.Order{Task: task, Command: flow.Note{Address: at, Token: c.Token, Text: c.Note}})
	}
	if len(orders) == 0 {
		return nil
	}
	outcomes, err := h.engine.DoAll(ctx, orders)
	if err != nil {
		return err
	}
	for _, out := range outcomes {
		if out.Err != nil && !api.Missing(out.Err) && flow.ErrorKindOf(out.Err) != flow.Conflict {
			return out.Err
		}
	}
	return nil
}

// storeLines stores log lines of jobs that go on.
func (h *workerHandler) storeLines(ctx context.Context, held []wire.HeldClaim) error {
	for _, c := range held {
		if len(c.Lines) == 0 {
			continue
		}
		task, address, err := flow.ParseJobID(c.Job)
		if err == nil {
			_, err = api.KeepLog(ctx, h.member, task, address, c.Token, c.LinesFrom+int64(len(c.Lines)), api.Lines(&c.Said))
		}
		if err != nil && !api.Missing(err) {
			return err
		}
	}
	return nil
}

type pollInput struct {
	WorkerPath
	Body wire.Poll
}

func (h *workerHandler) pollJobs(ctx context.Context, in *pollInput) (*bodyResponse[wire.ClaimedJobs], error) {
	p, err := h.pollOf(ctx, "body", in.Worker, &in.Body.Wanted)
	if err != nil {
		return nil, err
	}
	x := ctx.Value(exchangeKey{}).(httpExchange)
	jobs, err := api.Poll(x.w, x.r, h.engine, p, in.Body.WaitMS)
	if err != nil {
		return nil, locateError("body", err)
	}
	return &bodyResponse[wire.ClaimedJobs]{wire.ClaimedJobs{Jobs: toClaimedJobs(jobs)}}, nil
}

// pollOf returns the poll for a worker's wishes. where is the part of the request with them.
func (h *workerHandler) pollOf(ctx context.Context, where, worker string, w *wire.Wanted) (engine.Poll, error) {
	p := engine.Poll{Worker: worker, Services: w.Services, Labels: w.Labels, Max: w.Max, Unlisted: true}
	if w.Flow != "" {
		f, err := h.catalog.flowBy(ctx, where+".flow", w.Flow)
		if err != nil {
			return p, err
		}
		p.FlowID = f.ID
	}
	return p, nil
}

func toClaimedJobs(jobs engine.Jobs) []wire.ClaimedJob {
	all := make([]wire.ClaimedJob, len(jobs))
	for i := range jobs {
		all[i] = toClaimedJob(&jobs[i])
	}
	return all
}

func toClaimedJob(c *engine.Claimed) wire.ClaimedJob {
	j := &c.Job
	job := wire.ClaimedJob{
		ID: j.ID(), Key: j.Key(), Task: j.Task, Flow: j.Flow, Step: j.Step(),
		Place: toPlace(j.Address), Units: max(j.Units, 1), Branch: j.Branch, Service: j.Service,
		Labels: j.Labels,
		Input:  api.OrNull(j.Input), ParamsKey: j.ParamsKey, TimeoutMS: j.TimeoutMS,
		Trace: trace.Parent(j.Task, j.Traced, j.Address), Deliveries: j.Deliveries,
		EnqueuedAt: wire.Millis(j.EnqueuedAt),
		Token:      c.Token, LeaseMS: c.Until - c.ClaimedAt, LeaseUntil: wire.Millis(c.Until),
	}
	if j.ParamsKey == "" {
		job.Params = api.OrObject(j.Params)
	}
	if !j.RunApart {
		job.RunInput = api.OrNull(j.Run)
	}
	return job
}

type claimJobInput struct {
	JobPath
	Body wire.ClaimJob
}

func (h *workerHandler) claimJob(ctx context.Context, in *claimJobInput) (*bodyResponse[wire.ClaimedJob], error) {
	_, task, address, err := api.JobOf(in.Job, api.QueuePrefix)
	if err != nil {
		return nil, noJob(in.Job)
	}
	claim := flow.Claim{Address: address, Worker: in.Body.Worker, Token: cmp.Or(in.Body.Token, uuid.NewString())}
	out, err := h.engine.Do(ctx, engine.Order{Task: task, Command: claim})
	if api.Missing(err) || err == nil && out.Job == nil {
		return nil, noJob(in.Job)
	} else if err != nil {
		return nil, locateError("path.job", err)
	}
	return &bodyResponse[wire.ClaimedJob]{toClaimedJob(out.Job)}, nil
}

func noJob(id string) error {
	return newNotFoundError("path.job", "check the id; the jobs of deleted tasks are deleted with them", "there is no job %.300q", id)
}

type jobParamsInput struct {
	JobPath
	Token string `query:"token" maxLength:"256" doc:"of the claim; absent = whoever asks is told"`
}

func (h *workerHandler) jobParams(ctx context.Context, in *jobParamsInput) (*bodyResponse[wire.JobParams], error) {
	_, task, address, err := api.JobOf(in.Job, api.QueuePrefix)
	if err != nil {
		return nil, noJob(in.Job)
	}
	view, err := h.reader.View(ctx, task)
	if api.Missing(err) {
		return nil, noJob(in.Job)
	} else if err != nil {
		return nil, err
	}
	job, open := view.State.Job(address)
	switch {
	case !open:
		return nil, newNotFoundError("path.job", "GET /v1/jobs/{job} says what became of it",
			"the job %.300q has ended, or is none", in.Job)
	case in.Token != "" && !view.State.Holds(address, in.Token):
		return nil, locateError("query.token", flow.Errorf(flow.Conflict, "the job is no longer claimed with that token"))
	}
	return &bodyResponse[wire.JobParams]{wire.JobParams{Params: api.OrObject(job.Params), RunInput: api.OrNull(job.Run)}}, nil
}
