package cli

import (
	"context"
	"strconv"
	"strings"

	"github.com/troupe-engine/troupe/api/client"
	"github.com/troupe-engine/troupe/api/wire"
)

type workerListCmd struct {
	remoteFlags
	pagingFlags
	Service string `complete:"service" help:"Only those that offer this service."`
	State   string `enum:"online,offline," default:"" help:"Only those that are online, or offline."`
}

func (c *workerListCmd) Run(ctx context.Context, a *app) error {
	server, err := c.newClient()
	if err != nil {
		return err
	}
	workers, err := readPage(c.pagingFlags, func(p client.Paging) (*wire.Page[wire.KnownWorker], error) {
		return server.WorkerPage(ctx, client.WorkerQuery{Paging: p, Service: c.Service, State: c.State})
	})
	if err != nil {
		return err
	}
	t := table{header: []string{"WORKER", "STATE", "KIND", "LOAD", "SERVICES", "LABELS",
		"LAST SEEN", "URL"}, spare: []string{"URL", "LABELS", "LAST SEEN"}}
	return printPage(a, c.outputFlag, workers, t, func(w *wire.KnownWorker) []string {
		return []string{w.ID, w.State, kindOfWorker(w), strconv.Itoa(w.Load), strings.Join(w.Services, ", "), strings.Join(w.Labels, ", "),
			formatTime(w.LastHeartbeat), urlOfWorker(w)}
	})
}

// kindOfWorker returns how a worker gets its jobs, in the words of troupe worker --mode.
func kindOfWorker(w *wire.KnownWorker) string {
	switch w.Type {
	case "http":
		return "push"
	case "async":
		return "pull"
	}
	return w.Type
}

// urlOfWorker returns the address at which a worker is called; "" if it polls.
func urlOfWorker(w *wire.KnownWorker) string {
	if w.Type == "http" {
		return w.URL
	}
	return ""
}

type workerShowCmd struct {
	remoteFlags
	Worker string `arg:"" complete:"worker" help:"Id of the worker, or what it begins with."`
}

// mostJobsShown is the number of jobs of a worker that are shown.
const mostJobsShown = 50

func (c *workerShowCmd) Run(ctx context.Context, a *app) error {
	server, err := c.newClient()
	if err != nil {
		return err
	}
	id, err := workerID(ctx, server, c.Worker)
	if err != nil {
		return err
	}
	worker, err := server.Worker(ctx, id)
	if err != nil {
		return err
	}
	jobs, err := jobsOf(ctx, server, worker)
	if err != nil {
		return err
	}
	if c.isJSON() {
		return printJSON(a.stdout, struct {
			*wire.KnownWorker
			Jobs []wire.WaitingJob `json:"jobs"`
		}{worker, jobs})
	}
	if err := printFields(a.stdout, "Worker", worker.ID, "State", worker.State, "Kind", kindOfWorker(worker), "URL", urlOfWorker(worker),
		"Load", formatCount(worker.Load, "job"), "Services", strings.Join(worker.Services, ", "),
		"Labels", strings.Join(worker.Labels, ", "),
		"Registered", formatTime(worker.RegisteredAt), "Last seen", formatTime(worker.LastHeartbeat)); err != nil || len(jobs) == 0 {
		return err
	}
	return printJobs(a, jobs)
}

// jobsOf returns the queue jobs that a worker holds.
func jobsOf(ctx context.Context, server *client.Client, w *wire.KnownWorker) ([]wire.WaitingJob, error) {
	jobs := []wire.WaitingJob{}
	if w.Type != "async" || len(w.Services) == 0 {
		return jobs, nil
	}
	for job, err := range client.All(func(cursor string) (*wire.Page[wire.WaitingJob], error) {
		return server.Jobs(ctx, client.Paging{Cursor: cursor, Limit: pageSize}, w.Services...)
	}) {
		if err != nil {
			return nil, err
		}
		if job.Worker == w.ID {
			jobs = append(jobs, job)
		}
		if len(jobs) == min(mostJobsShown, max(w.Load, 1)) {
			break
		}
	}
	return jobs, nil
}
