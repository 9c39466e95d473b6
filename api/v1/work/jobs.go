// Package work serves jobs, their queues, and the workers that poll and report them.
package work

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/api/v1/render"
	"github.com/troupe-engine/troupe/api/v1/route"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// JobHandler serves jobs, their reports and their queues.
type JobHandler struct {
	Router  *route.Router
	Workers *WorkerHandler

	Member api.Member
	Store  api.Store
	Reader api.Reader
	Engine engine.Engine
}

// AddRoutes adds the routes of the handler.
func (h *JobHandler) AddRoutes(rt *route.Router) {
	h.addJobRoutes(rt)
	h.addReportRoutes(rt)
	h.addStreamRoutes(rt)
	h.addFastRoutes(rt)
}

func (h *JobHandler) addJobRoutes(rt *route.Router) {
	route.Register(rt, route.Operation{ID: "list-jobs", Method: http.MethodGet, Path: "/v1/jobs", Tag: "jobs",
		Summary: "List the jobs in the queue",
		Text: "The longest waiting first. A job is listed until it ends. A job that a waiting poll " +
			"receives as it starts is listed once its worker reports a status text, extends its " +
			"lease, or releases it."}, h.listJobs)
	route.Register(rt, route.Operation{ID: "get-job", Method: http.MethodGet, Path: "/v1/jobs/{job}", Tag: "jobs",
		Summary: "Get a job",
		Text:    "Its state comes from the journal of its task, even long after the job ended."}, h.getJob)
	route.Register(rt, route.Operation{ID: "get-log", Method: http.MethodGet, Path: "/v1/jobs/{job}/log", Tag: "jobs",
		Summary: "Get the output of a job",
		Text: "Runs with output have log set. For a running job it is the output that its worker " +
			"has sent so far."}, h.getLog)
	route.Register(rt, route.Operation{ID: "release-job", Method: http.MethodPost, Path: "/v1/jobs/{job}/release", Tag: "jobs",
		Summary: "Release a claimed job",
		Text: "Other workers can get it at once. Returns the job in its new state. A job that is no " +
			"longer claimed with the token is unchanged."}, h.releaseJob)
	route.Register(rt, route.Operation{ID: "list-queues", Method: http.MethodGet, Path: "/v1/queues", Tag: "jobs",
		Summary: "List queues with their lengths",
		Text:    "Only queues that are not empty, in order of service."}, h.listQueues)
}

type listJobsInput struct {
	route.Paging
	Service []string `query:"service,explode" maxItems:"100" doc:"Services of the jobs; jobs match any of them."`
}

func (h *JobHandler) listJobs(ctx context.Context, in *listJobsInput) (*route.Response[wire.Page[wire.WaitingJob]], error) {
	at, _, err := in.ParseCursor()
	if err != nil {
		return nil, err
	}
	rows, err := h.Store.QueueRows(ctx, in.Service, at.At, at.Name, in.Limit+1)
	if err != nil {
		return nil, err
	}
	rows, more := route.CutPage(rows, in.Limit)
	page := wire.Page[wire.WaitingJob]{}
	if page.Items, err = h.waitingJobs(ctx, rows); err != nil {
		return nil, err
	}
	if more {
		last := rows[len(rows)-1]
		page.Next = route.Cursor{At: last.EnqueuedAt, Name: last.Turn}.String()
	}
	return &route.Response[wire.Page[wire.WaitingJob]]{Body: page}, nil
}

// waitingJobs converts queue rows and adds the workers that hold the jobs. It omits jobs that have
// ended meanwhile.
func (h *JobHandler) waitingJobs(ctx context.Context, rows []persistence.QueueRow) ([]wire.WaitingJob, error) {
	workers, err := h.workersOf(ctx, rows)
	if err != nil {
		return nil, err
	}
	jobs := []wire.WaitingJob{}
	for _, row := range rows {
		worker, open := workers[row.JobID]
		if !open {
			continue
		}
		job := wire.WaitingJob{ID: row.JobID, Task: row.Task, Service: row.Service,
			State: "pending", EnqueuedAt: wire.Millis(row.EnqueuedAt)}
		if worker != "" {
			job.State, job.Worker = "claimed", worker
		}
		jobs = append(jobs, job)
	}
	return jobs, nil
}

// workersOf returns the worker that holds each job, by job id. A job without a worker has "".
func (h *JobHandler) workersOf(ctx context.Context, rows []persistence.QueueRow) (map[string]string, error) {
	jobs := map[string][]string{}
	for _, row := range rows {
		jobs[row.Task] = append(jobs[row.Task], row.JobID)
	}
	workers := map[string]string{}
	err := h.Reader.Each(ctx, slices.Sorted(maps.Keys(jobs)), func(v *persistence.View) error {
		for _, job := range jobs[v.ID] {
			if _, address, err := flow.ParseJobID(job); err == nil {
				if live := v.State.Live(address); live != nil {
					workers[job] = live.Worker
				}
			}
		}
		return nil
	})
	return workers, err
}

// JobPath identifies a job.
type JobPath struct {
	Job string `path:"job" maxLength:"20000" doc:"ID of the job, also in the form that pollers get."`
}

func (h *JobHandler) getJob(ctx context.Context, in *JobPath) (*route.Response[wire.Job], error) {
	task, r, err := h.findJob(ctx, in.Job)
	if err != nil {
		return nil, err
	}
	return &route.Response[wire.Job]{Body: toJob(task, r)}, nil
}

// ParseJobID parses the job ids of /v1, and the ids that pollers use for jobs and runs.
func ParseJobID(id string) (task string, address flow.Address, err error) {
	for _, prefix := range []string{api.QueuePrefix, api.RunPrefix} {
		id = strings.TrimPrefix(id, prefix)
	}
	return flow.ParseJobID(id)
}

type releaseInput struct {
	JobPath
	Body wire.ReleaseClaim
}

func (h *JobHandler) releaseJob(ctx context.Context, in *releaseInput) (*route.Response[wire.Job], error) {
	task, r, err := h.findJob(ctx, in.Job)
	if err != nil {
		return nil, err
	}
	if _, err := h.Engine.Do(ctx, engine.Order{Task: task, Command: flow.GiveBack{Address: r.Address, Token: in.Body.Token}}); err != nil {
		return nil, route.LocateError("path.job", err)
	}
	return h.getJob(ctx, &in.JobPath)
}

// findJob finds the attempt of a job in the history of its task.
func (h *JobHandler) findJob(ctx context.Context, id string) (task string, r *flow.NodeRun, err error) {
	task, address, err := ParseJobID(id)
	if err != nil {
		return "", nil, noJob(id)
	}
	r, err = h.Reader.Run(ctx, task, address)
	if api.Missing(err) || err == nil && r.Kind != flow.RunAttempt {
		return "", nil, noJob(id)
	}
	return task, r, err
}

func (h *JobHandler) getLog(ctx context.Context, in *JobPath) (*route.Response[wire.Log], error) {
	task, r, err := h.findJob(ctx, in.Job)
	if err != nil {
		return nil, err
	}
	content, err := api.LogText(ctx, h.Store, task, flow.JobID(task, r.Address))
	if err != nil {
		return nil, err
	}
	if content == "" {
		return nil, route.NewNotFoundError("path.job", "look for runs with log: true", "the job %.300q has no log", in.Job)
	}
	return &route.Response[wire.Log]{Body: wire.Log{Content: content}}, nil
}

func toJob(task string, r *flow.NodeRun) wire.Job {
	j := wire.Job{
		ID: flow.JobID(task, r.Address), Key: r.Key(task), Task: task, Place: render.ToPlace(r.Address),
		Branch: r.Branch, Service: serviceOf(r), State: jobState(r),
		Queue: r.Queue, Worker: r.Worker, StatusText: r.Note, Input: r.Input, Output: r.Output, Error: r.Error, Details: r.Details,
		StartedAt: wire.Millis(r.StartedAt), EndedAt: wire.Millis(r.EndedAt),
	}
	if r.Status == flow.AttemptCanceled && j.Error == "" {
		j.Error = "canceled"
	}
	return j
}

// jobState returns the state of a job, derived from its attempt in the journal. A withdrawn job has
// failed with an error that explains the withdrawal.
func jobState(r *flow.NodeRun) string {
	switch r.Status {
	case flow.AttemptOK:
		return "completed"
	case flow.AttemptTimeout:
		return "timeout"
	case flow.AttemptError, flow.AttemptCanceled:
		return "failed"
	}
	if r.Queue && r.Worker == "" {
		return "pending"
	}
	return "claimed"
}

// serviceOf returns the service of a job. A branch that is named at run time has the name of its
// service.
func serviceOf(r *flow.NodeRun) string {
	if r.Node == nil {
		return ""
	}
	exec := r.Node.Exec
	switch r.Node.Kind {
	case flow.KindParallel:
		if len(r.Node.Each.Branches) == 0 {
			return r.Branch
		}
		exec = r.Node.Each.Branches[r.Unit].Exec
	case flow.KindForeach:
		if other, ok := r.Node.Each.Items[r.Unit]; ok {
			exec = other
		}
	}
	return cmp.Or(exec.Service, exec.Func)
}
