package workers

import (
	"context"
	"strconv"
	"strings"

	"github.com/troupe-engine/troupe/api/client"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/internal/cli/console"
)

type workerListCmd struct {
	console.RemoteFlags
	console.PagingFlags
	Service string `complete:"service" help:"Filter by service."`
	State   string `enum:"online,offline," default:"" help:"Filter by state: online or offline."`
}

func (c *workerListCmd) Run(ctx context.Context, a *console.App) error {
	server, err := c.NewClient()
	if err != nil {
		return err
	}
	workers, err := console.ReadPage(c.PagingFlags, func(p client.Paging) (*wire.Page[wire.Worker], error) {
		return server.WorkerPage(ctx, client.WorkerQuery{Paging: p, Service: c.Service, State: c.State})
	})
	if err != nil {
		return err
	}
	t := console.Table{Header: []string{"WORKER", "STATE", "MODE", "JOBS", "SERVICES", "LABELS",
		"LAST SEEN", "URL"}, Spare: []string{"URL", "LABELS", "LAST SEEN"}}
	return console.PrintPage(a, c.OutputFlag, workers, t, func(w *wire.Worker) []string {
		return []string{w.ID, w.State, w.Type, strconv.Itoa(w.Load), strings.Join(w.Services, ", "), strings.Join(w.Labels, ", "),
			console.FormatTime(w.LastHeartbeatAt), w.URL}
	})
}

type workerShowCmd struct {
	console.RemoteFlags
	Worker string `arg:"" complete:"worker" help:"Worker ID or unique prefix."`
}

// mostJobsShown is the number of jobs of a worker that are shown.
const mostJobsShown = 50

func (c *workerShowCmd) Run(ctx context.Context, a *console.App) error {
	server, err := c.NewClient()
	if err != nil {
		return err
	}
	id, err := console.FindWorkerID(ctx, server, c.Worker)
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
	if c.IsJSON() {
		return console.PrintJSON(a.Stdout, struct {
			*wire.Worker
			Jobs []wire.WaitingJob `json:"jobs"`
		}{worker, jobs})
	}
	if err := console.PrintFields(a.Stdout, "Worker", worker.ID, "State", worker.State, "Mode",
		worker.Type, "URL", worker.URL,
		"Jobs", strconv.Itoa(worker.Load), "Services", strings.Join(worker.Services, ", "),
		"Labels", strings.Join(worker.Labels, ", "),
		"Registered", console.FormatTime(worker.RegisteredAt), "Last seen",
		console.FormatTime(worker.LastHeartbeatAt)); err != nil || len(jobs) == 0 {
		return err
	}
	return printJobs(a, jobs)
}

// jobsOf returns the queue jobs that a worker holds.
func jobsOf(ctx context.Context, server *client.Client, w *wire.Worker) ([]wire.WaitingJob, error) {
	jobs := []wire.WaitingJob{}
	if w.Type != "pull" || len(w.Services) == 0 {
		return jobs, nil
	}
	for job, err := range client.All(func(cursor string) (*wire.Page[wire.WaitingJob], error) {
		return server.Jobs(ctx, client.Paging{Cursor: cursor, Limit: console.PageSize}, w.Services...)
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
