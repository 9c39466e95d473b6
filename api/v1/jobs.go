package v1

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// jobHandler serves jobs, their reports and their queues.
type jobHandler struct {
	router  *apiRouter
	workers *workerHandler

	member api.Member
	store  api.Store
	reader api.Reader
	engine engine.Engine
}

func (h *jobHandler) addJobRoutes(rt *apiRouter) {
	registerOperation(rt, apiOperation{id: "list-jobs", method: http.MethodGet, path: "/v1/jobs", tag: "jobs",
		summary: "List the jobs in the queue, the longest waiting first",
		text: "A job is there until it ends. One that a waiting poll gets as it begins comes " +
			"there when its worker notes or prolongs something of it, or when it is returned."}, h.listJobs)
	registerOperation(rt, apiOperation{id: "get-job", method: http.MethodGet, path: "/v1/jobs/{job}", tag: "jobs",
		summary: "Read a job", text: "Its state is told from the journal of its task, also long after it ended."}, h.getJob)
	registerOperation(rt, apiOperation{id: "get-log", method: http.MethodGet, path: "/v1/jobs/{job}/log", tag: "jobs",
		summary: "Read what a job has printed",
		text: "Runs that have a log say so. Of one that goes on it is what its worker has " +
			"sent so far."}, h.getLog)
	registerOperation(rt, apiOperation{id: "release-job", method: http.MethodPost, path: "/v1/jobs/{job}/release", tag: "jobs",
		summary: "Give a claimed job back", text: "Other pollers get it at once. It is answered " +
			"with the job as it is then; one that is not claimed with that token (any longer) " +
			"stays as it is."}, h.releaseJob)
	registerOperation(rt, apiOperation{id: "list-queues", method: http.MethodGet, path: "/v1/queues", tag: "jobs",
		summary: "How long are the queues?", text: "Those that are not empty, in order of service."}, h.listQueues)
}

type listJobsInput struct {
	Paging
	Service []string `query:"service,explode" maxItems:"100" doc:"only jobs of these services"`
}

func (h *jobHandler) listJobs(ctx context.Context, in *listJobsInput) (*bodyResponse[wire.Page[wire.WaitingJob]], error) {
	at, _, err := in.parseCursor()
	if err != nil {
		return nil, err
	}
	rows, err := h.store.QueueRows(ctx, in.Service, at.at, at.name, in.Limit+1)
	if err != nil {
		return nil, err
	}
	rows, more := cutPage(rows, in.Limit)
	page := wire.Page[wire.WaitingJob]{}
	if page.Items, err = h.waitingJobs(ctx, rows); err != nil {
		return nil, err
	}
	if more {
		last := rows[len(rows)-1]
		page.Next = listCursor{last.EnqueuedAt, last.Turn}.String()
	}
	return &bodyResponse[wire.Page[wire.WaitingJob]]{page}, nil
}

// waitingJobs adds to queue rows which workers hold the jobs. Jobs that have ended since the rows
// were read are left out.
func (h *jobHandler) waitingJobs(ctx context.Context, rows []persistence.QueueRow) ([]wire.WaitingJob, error) {
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

// workersOf returns the worker of each job; "" if it has none.
func (h *jobHandler) workersOf(ctx context.Context, rows []persistence.QueueRow) (map[string]string, error) {
	jobs := map[string][]string{}
	for _, row := range rows {
		jobs[row.Task] = append(jobs[row.Task], row.JobID)
	}
	workers := map[string]string{}
	err := h.reader.Each(ctx, slices.Sorted(maps.Keys(jobs)), func(v *persistence.View) error {
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
	Job string `path:"job" maxLength:"20000" doc:"id of the job; also as pollers know it"`
}

func (h *jobHandler) getJob(ctx context.Context, in *JobPath) (*bodyResponse[wire.Job], error) {
	task, r, err := h.findJob(ctx, in.Job)
	if err != nil {
		return nil, err
	}
	return &bodyResponse[wire.Job]{toJob(task, r)}, nil
}

// parseJob parses the ids of this API and the ids with which pollers address jobs and runs.
func parseJob(id string) (task string, address flow.Address, err error) {
	for _, prefix := range []string{api.QueuePrefix, api.RunPrefix} {
		id = strings.TrimPrefix(id, prefix)
	}
	return flow.ParseJobID(id)
}

type releaseInput struct {
	JobPath
	Body wire.Release
}

func (h *jobHandler) releaseJob(ctx context.Context, in *releaseInput) (*bodyResponse[wire.Job], error) {
	task, r, err := h.findJob(ctx, in.Job)
	if err != nil {
		return nil, err
	}
	if _, err := h.engine.Do(ctx, engine.Order{Task: task, Command: flow.GiveBack{Address: r.Address, Token: in.Body.Token}}); err != nil {
		return nil, locateError("path.job", err)
	}
	return h.getJob(ctx, &in.JobPath)
}

// findJob finds a job's attempt in the history of its task.
func (h *jobHandler) findJob(ctx context.Context, id string) (task string, r *flow.NodeRun, err error) {
	task, address, err := parseJob(id)
	if err != nil {
		return "", nil, noJob(id)
	}
	r, err = h.reader.Run(ctx, task, address)
	if api.Missing(err) || err == nil && r.Kind != flow.RunAttempt {
		return "", nil, noJob(id)
	}
	return task, r, err
}

func (h *jobHandler) getLog(ctx context.Context, in *JobPath) (*bodyResponse[wire.Log], error) {
	task, r, err := h.findJob(ctx, in.Job)
	if err != nil {
		return nil, err
	}
	content, err := api.LogText(ctx, h.store, task, flow.JobID(task, r.Address))
	if err != nil {
		return nil, err
	}
	if content == "" {
		return nil, newNotFoundError("path.job", "look for runs with log: true", "the job %.300q has no log", in.Job)
	}
	return &bodyResponse[wire.Log]{wire.Log{Content: content}}, nil
}

func toJob(task string, r *flow.NodeRun) wire.Job {
	j := wire.Job{
		ID: flow.JobID(task, r.Address), Key: r.Key(task), Task: task, Place: toPlace(r.Address),
		Branch: r.Branch, Service: serviceOf(r), State: jobState(r),
		Queue: r.Queue, Worker: r.Worker, Note: r.Note, Input: r.Input, Output: r.Output, Error: r.Error, Details: r.Details,
		StartedAt: wire.Millis(r.StartedAt), EndedAt: wire.Millis(r.EndedAt),
	}
	if r.Status == flow.AttemptCanceled && j.Error == "" {
		j.Error = "canceled"
	}
	return j
}

// jobState returns a job's state, derived from its attempt in the journal. A job that was withdrawn
// has failed, with an error that explains it.
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

// serviceOf returns the service that a job needs. Branches named at run time are named after their
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
	return orElse(exec.Service, exec.Func)
}
