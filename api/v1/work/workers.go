package work

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
	"github.com/troupe-engine/troupe/api/v1/catalog"
	"github.com/troupe-engine/troupe/api/v1/render"
	"github.com/troupe-engine/troupe/api/v1/route"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/trace"
	"github.com/troupe-engine/troupe/persistence"
)

// This file has the routes with which workers register and get jobs. Routes that end jobs are in
// reports.go.

// WorkerHandler serves workers, their polls and their heartbeats.
type WorkerHandler struct {
	Catalog *catalog.Flows

	Member    api.Member
	Reader    api.Reader
	Engine    engine.Engine
	Registry  api.Registry
	WorkerTTL time.Duration
}

// AddRoutes adds the routes of the handler.
func (h *WorkerHandler) AddRoutes(rt *route.Router) {
	route.Register(rt, route.Operation{ID: "list-workers", Method: http.MethodGet, Path: "/v1/workers", Tag: "workers",
		Summary: "List workers",
		Text:    "In order of their first registration."}, h.listWorkers)
	route.Register(rt, route.Operation{ID: "get-worker", Method: http.MethodGet, Path: "/v1/workers/{worker}", Tag: "workers",
		Summary: "Get a worker"}, h.getWorker)
	route.Register(rt, route.Operation{ID: "register-worker", Method: http.MethodPut,
		Path: "/v1/workers/{worker}", Tag: "workers", Summary: "Register a worker",
		Text: "Workers that poll need no registration; it makes the worker visible and gives the " +
			"engine its URL. A repeated registration means that the worker was restarted: its " +
			"earlier claims go to other workers when their leases end."}, h.registerWorker)
	route.Register(rt, route.Operation{ID: "remove-worker", Method: http.MethodDelete, Path: "/v1/workers/{worker}", Tag: "workers",
		Summary: "Remove a worker",
		Text: "The worker gets no more jobs. It may finish those it has started; claims that it " +
			"neither finishes nor releases go to other workers when they expire."}, h.forgetWorker)
	route.Register(rt, route.Operation{ID: "worker-heartbeat", Method: http.MethodPost,
		Path: "/v1/workers/{worker}/heartbeat", Tag: "workers",
		Summary: "Send a heartbeat and extend leases",
		Text: "The answer lists the jobs that are no longer needed. A registered worker that is " +
			"alive keeps its claims without naming each of them."}, h.handleHeartbeat)
	route.Register(rt, route.Operation{ID: "poll-jobs", Method: http.MethodPost, Path: "/v1/workers/{worker}/poll", Tag: "workers",
		Summary: "Poll for jobs",
		Text: "Each job in the answer is claimed for the worker until its lease ends; without a " +
			"heartbeat, other workers then get it. A job may be carried out more than once, but " +
			"its result counts once."}, h.pollJobs)
	route.Register(rt, route.Operation{ID: "claim-job", Method: http.MethodPost, Path: "/v1/jobs/{job}/claim", Tag: "workers",
		Summary: "Claim a job",
		Text:    "A job that another worker has is a conflict (409)."}, h.claimJob)
	route.Register(rt, route.Operation{ID: "job-params", Method: http.MethodGet, Path: "/v1/jobs/{job}/params", Tag: "workers",
		Summary: "Get the params of a job",
		Text: "Params that were too large to be sent with the job. Only for a job that has not " +
			"ended. With a token, only for the holder of the claim (otherwise 409)."}, h.jobParams)
}

// WorkerPath identifies a worker.
type WorkerPath struct {
	Worker string `path:"worker" minLength:"1" maxLength:"256" doc:"ID of the worker, which it chooses itself."`
}

func (h *WorkerHandler) forgetWorker(ctx context.Context, in *WorkerPath) (*struct{}, error) {
	err := h.Registry.Deregister(ctx, in.Worker)
	if api.Missing(err) {
		return nil, route.NewNotFoundError("path.worker",
			"GET /v1/workers lists them; this member itself cannot be forgotten",
			"no worker %.80q is registered", in.Worker)
	}
	return nil, err
}

type listWorkersInput struct {
	route.Paging
	ID      string `query:"id_prefix" maxLength:"256" doc:"Prefix of the ID."`
	Service string `query:"service" maxLength:"256" doc:"Service that the workers offer."`
	State   string `query:"state" enum:"online,offline" doc:"State of the workers."`
}

func (in *listWorkersInput) matchesWorker(w *wire.Worker) bool {
	return strings.HasPrefix(w.ID, in.ID) && (in.Service == "" ||
		slices.Contains(w.Services, in.Service)) && (in.State == "" || in.State == w.State)
}

func (h *WorkerHandler) listWorkers(ctx context.Context, in *listWorkersInput) (*route.Response[wire.Page[wire.Worker]], error) {
	at, continued, err := in.ParseCursor()
	if err != nil {
		return nil, err
	}
	known, err := h.Registry.List(ctx)
	if err != nil {
		return nil, err
	}
	if continued {
		known = afterWorker(known, at)
	}
	found := []wire.Worker{}
	for i := range known {
		if w := h.toWorker(&known[i]); in.matchesWorker(&w) {
			found = append(found, w)
		}
	}
	found, more := route.CutPage(found, in.Limit)
	page := wire.Page[wire.Worker]{Items: found}
	if more {
		last := found[len(found)-1]
		page.Next = route.Cursor{At: last.RegisteredAt.UnixMilli(), Name: last.ID}.String()
	}
	return &route.Response[wire.Page[wire.Worker]]{Body: page}, nil
}

// afterWorker returns the workers after a cursor. If the worker of the cursor was deleted, workers
// with the same registration time may be repeated.
func afterWorker(known []persistence.Worker, at route.Cursor) []persistence.Worker {
	for i, w := range known {
		if w.ID == at.Name {
			return known[i+1:]
		}
	}
	later := slices.IndexFunc(known, func(w persistence.Worker) bool { return w.RegisteredAt >= at.At })
	if later < 0 {
		return nil
	}
	return known[later:]
}

func (h *WorkerHandler) toWorker(k *persistence.Worker) wire.Worker {
	w := wire.Worker{ID: k.ID, Type: workerType(k.Type), Services: k.Services, Labels: k.Labels, Load: k.Load, State: "online",
		LastHeartbeatAt: wire.Millis(k.LastHeartbeat), RegisteredAt: wire.Millis(k.RegisteredAt)}
	if w.Type == pushType {
		w.URL = k.URL
	}
	if w.Services == nil {
		w.Services = []string{}
	}
	if !h.isOnline(k) {
		w.State = "offline"
	}
	return w
}

// These worker types of /v1 differ from the stored types, which are those of PocketFlow.
const (
	pushType = "push"
	pullType = "pull"
)

// workerType returns the type of a worker in /v1. Registrations through PocketFlow's routes may
// have any type; the engine only calls workers of type http.
func workerType(stored string) string {
	switch stored {
	case "http":
		return pushType
	case "attached", "local":
		return stored
	}
	return pullType
}

// isOnline reports whether the last heartbeat of a worker is recent.
func (h *WorkerHandler) isOnline(k *persistence.Worker) bool {
	return h.Engine.Now().Sub(time.UnixMilli(k.LastHeartbeat)) <= h.WorkerTTL
}

func (h *WorkerHandler) getWorker(ctx context.Context, in *WorkerPath) (*route.Response[wire.Worker], error) {
	known, err := h.Registry.List(ctx)
	if err != nil {
		return nil, err
	}
	for i := range known {
		if known[i].ID == in.Worker {
			return &route.Response[wire.Worker]{Body: h.toWorker(&known[i])}, nil
		}
	}
	return nil, route.NewNotFoundError("path.worker", "GET /v1/workers lists them", "no worker %.80q is registered", in.Worker)
}

type registerInput struct {
	WorkerPath
	Body wire.WorkerRegistration
}

func (h *WorkerHandler) registerWorker(ctx context.Context, in *registerInput) (*route.Response[wire.RegistrationResult], error) {
	w := persistence.Worker{ID: in.Worker, Services: in.Body.Services, Labels: in.Body.Labels, URL: "queue", Type: "async"}
	if in.Body.URL != "" {
		w.URL, w.Type, w.Secret = in.Body.URL, "http", in.Body.Secret
	}
	if err := h.Registry.Register(ctx, w); err != nil {
		return nil, route.LocateError("body", err)
	}
	return &route.Response[wire.RegistrationResult]{Body: wire.RegistrationResult{OfflineAfterMS: h.WorkerTTL.Milliseconds()}}, nil
}

type heartbeatInput struct {
	WorkerPath
	Body wire.Heartbeat
}

func (h *WorkerHandler) handleHeartbeat(ctx context.Context, in *heartbeatInput) (*route.Response[wire.HeartbeatResult], error) {
	if err := checkNotes(in.Body.Claims); err != nil {
		return nil, err
	}
	prolonging := h.extendClaims(ctx, in)
	err := h.Registry.Heartbeat(ctx, in.Worker, in.Body.Load)
	claims := <-prolonging
	if claims.panicked != "" {
		panic(claims.panicked)
	}
	answer := wire.HeartbeatResult{Registered: !api.Missing(err),
		Canceled: append([]string{}, claims.Canceled...), Unreachable: claims.Unheard}
	if err != nil && answer.Registered {
		return nil, err
	}
	if claims.err != nil {
		return nil, route.LocateError("body.claims", claims.err)
	}
	held := dropCanceled(in.Body.Claims, slices.Concat(claims.Canceled, claims.Unheard))
	if err := h.recordNotes(ctx, held); err != nil {
		return nil, route.LocateError("body.claims", err)
	}
	if err := h.storeLines(ctx, held); err != nil {
		return nil, route.LocateError("body.claims", err)
	}
	return &route.Response[wire.HeartbeatResult]{Body: answer}, nil
}

// extendedClaims is the result of extending the claims of a heartbeat.
type extendedClaims struct {
	engine.Extended
	err      error
	panicked string // panic value and stack; the request panics with it
}

// extendClaims extends the claims of a heartbeat concurrently with its other work. So claims do not
// expire while the heartbeat waits, and an unreachable member does not delay the heartbeat.
func (h *WorkerHandler) extendClaims(ctx context.Context, in *heartbeatInput) <-chan extendedClaims {
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
		x, err := api.Extend(ctx, h.Engine, in.Worker, claimsOf(in.Body.Claims), by)
		done <- extendedClaims{Extended: x, err: err}
	}()
	return done
}

// checkNotes rejects invalid notes before any claim is extended. A later error would hide which
// jobs are canceled.
func checkNotes(held []wire.HeldJob) error {
	for i, c := range held {
		if len(c.StatusText) > flow.MaxName {
			return route.NewInvalidError(fmt.Sprintf("body.claims[%d].note", i), "make it shorter",
				"the note has %d bytes, more than the limit of %d", len(c.StatusText), flow.MaxName)
		}
	}
	return nil
}

func claimsOf(held []wire.HeldJob) []engine.Claim {
	claims := make([]engine.Claim, len(held))
	for i, c := range held {
		claims[i] = engine.Claim{Job: c.Job, Token: c.Token}
	}
	return claims
}

// dropCanceled removes claims that are no longer valid.
func dropCanceled(held []wire.HeldJob, canceled []string) []wire.HeldJob {
	return slices.DeleteFunc(held, func(c wire.HeldJob) bool { return slices.Contains(canceled, c.Job) })
}

// recordNotes stores the status texts that a worker sends for its jobs.
func (h *WorkerHandler) recordNotes(ctx context.Context, held []wire.HeldJob) error {
	var orders engine.Orders
	for _, c := range held {
		if c.StatusText == "" {
			continue
		}
		task, at, err := flow.ParseJobID(c.Job)
		if err != nil {
			return err
		}
		orders = append(orders, engine.Order{Task: task, Command: flow.Note{Address: at, Token: c.Token, Text: c.StatusText}})
	}
	if len(orders) == 0 {
		return nil
	}
	outcomes, err := h.Engine.DoAll(ctx, orders)
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

// storeLines stores the log lines of jobs that continue.
func (h *WorkerHandler) storeLines(ctx context.Context, held []wire.HeldJob) error {
	for _, c := range held {
		if len(c.Lines) == 0 {
			continue
		}
		task, address, err := flow.ParseJobID(c.Job)
		if err == nil {
			_, err = api.KeepLog(ctx, h.Member, task, address, c.Token, c.LinesFrom+int64(len(c.Lines)), api.Lines(&c.PrintedLines))
		}
		if err != nil && !api.Missing(err) {
			return err
		}
	}
	return nil
}

type pollInput struct {
	WorkerPath
	Body wire.PollRequest
}

func (h *WorkerHandler) pollJobs(ctx context.Context, in *pollInput) (*route.Response[wire.ClaimedJobs], error) {
	p, err := h.pollOf(ctx, "body", in.Worker, &in.Body.JobRequest)
	if err != nil {
		return nil, err
	}
	x := route.ExchangeOf(ctx)
	jobs, err := api.Poll(x.Writer, x.Request, h.Engine, p, in.Body.WaitMS)
	if err != nil {
		return nil, route.LocateError("body", err)
	}
	return &route.Response[wire.ClaimedJobs]{Body: wire.ClaimedJobs{Jobs: toClaimedJobs(jobs)}}, nil
}

// pollOf converts a job request to a poll. where is the place of the job request in the body.
func (h *WorkerHandler) pollOf(ctx context.Context, where, worker string, w *wire.JobRequest) (engine.Poll, error) {
	p := engine.Poll{Worker: worker, Services: w.Services, Labels: w.Labels, Max: w.Max, Unlisted: true}
	if w.Flow != "" {
		f, err := h.Catalog.FindFlow(ctx, where+".flow", w.Flow)
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
		Place: render.ToPlace(j.Address), Units: max(j.Units, 1), Branch: j.Branch, Service: j.Service,
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

func (h *WorkerHandler) claimJob(ctx context.Context, in *claimJobInput) (*route.Response[wire.ClaimedJob], error) {
	_, task, address, err := api.JobOf(in.Job, api.QueuePrefix)
	if err != nil {
		return nil, noJob(in.Job)
	}
	claim := flow.Claim{Address: address, Worker: in.Body.Worker, Token: cmp.Or(in.Body.Token, uuid.NewString())}
	out, err := h.Engine.Do(ctx, engine.Order{Task: task, Command: claim})
	if api.Missing(err) || err == nil && out.Job == nil {
		return nil, noJob(in.Job)
	} else if err != nil {
		return nil, route.LocateError("path.job", err)
	}
	return &route.Response[wire.ClaimedJob]{Body: toClaimedJob(out.Job)}, nil
}

func noJob(id string) error {
	return route.NewNotFoundError("path.job", "check the id; the jobs of deleted tasks are deleted with them", "there is no job %.300q", id)
}

type jobParamsInput struct {
	JobPath
	Token string `query:"token" maxLength:"256" doc:"Token of the claim, to check that the caller holds it; absent = no check."`
}

func (h *WorkerHandler) jobParams(ctx context.Context, in *jobParamsInput) (*route.Response[wire.JobParams], error) {
	_, task, address, err := api.JobOf(in.Job, api.QueuePrefix)
	if err != nil {
		return nil, noJob(in.Job)
	}
	view, err := h.Reader.View(ctx, task)
	if api.Missing(err) {
		return nil, noJob(in.Job)
	} else if err != nil {
		return nil, err
	}
	job, open := view.State.Job(address)
	switch {
	case !open:
		return nil, route.NewNotFoundError("path.job", "GET /v1/jobs/{job} returns its state",
			"the job %.300q has ended or does not exist", in.Job)
	case in.Token != "" && !view.State.Holds(address, in.Token):
		return nil, route.LocateError("query.token", flow.Errorf(flow.Conflict, "the job is no longer claimed with that token"))
	}
	return &route.Response[wire.JobParams]{Body: wire.JobParams{Params: api.OrObject(job.Params), RunInput: api.OrNull(job.Run)}}, nil
}
