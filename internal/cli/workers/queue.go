package workers

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/troupe-engine/troupe/api/client"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/internal/cli/console"
)

// QueueCommand groups the commands for the queues of pull workers, one per service.
type QueueCommand struct {
	List queueListCmd `cmd:"" help:"List the queues with jobs."`
}

type queueListCmd struct{ console.RemoteFlags }

func (c *queueListCmd) Run(ctx context.Context, a *console.App) error {
	server, err := c.NewClient()
	if err != nil {
		return err
	}
	queues, err := server.Queues(ctx)
	if err != nil {
		return err
	}
	p := &wire.Page[wire.Queue]{Items: queues}
	return console.PrintPage(a, c.OutputFlag, p, console.Table{Header: []string{"SERVICE", "JOBS", "TASKS",
		"WORKERS", "OLDEST", "AGE"}}, func(q *wire.Queue) []string {
		return []string{q.Service, strconv.Itoa(q.Waiting), strconv.Itoa(q.Tasks),
			strconv.Itoa(q.Workers), console.FormatTime(q.OldestAt), console.FormatDuration(time.Since(q.OldestAt.Time))}
	})
}

// JobCommand holds the commands for jobs.
type JobCommand struct {
	List jobListCmd `cmd:"" help:"List queued jobs, oldest first."`
	Show jobShowCmd `cmd:"" help:"Show a job with its input and result."`
}

type jobListCmd struct {
	console.RemoteFlags
	console.PagingFlags
	Service []string `complete:"service" help:"Filter by service. Repeatable."`
}

func (c *jobListCmd) Run(ctx context.Context, a *console.App) error {
	server, err := c.NewClient()
	if err != nil {
		return err
	}
	jobs, err := console.ReadPage(c.PagingFlags, func(p client.Paging) (*wire.Page[wire.WaitingJob], error) {
		return server.Jobs(ctx, p, c.Service...)
	})
	if err != nil {
		return err
	}
	return console.PrintPage(a, c.OutputFlag, jobs, jobTable, jobRow)
}

type jobShowCmd struct {
	console.RemoteFlags
	Job string `arg:"" complete:"job" help:"Job ID or unique prefix."`
}

func (c *jobShowCmd) Run(ctx context.Context, a *console.App) error {
	server, err := c.NewClient()
	if err != nil {
		return err
	}
	job, err := console.FindJob(ctx, server, c.Job)
	if err != nil {
		return err
	}
	if c.IsJSON() {
		return console.PrintJSON(a.Stdout, job)
	}
	return console.PrintFields(a.Stdout, "Job", job.ID, "Task", job.Task, "Step", console.FormatPlace(&job.Place),
		"Branch", job.Branch, "Service", job.Service,
		"State", job.State, "Worker", job.Worker, "Note", job.StatusText, "Started",
		console.FormatTime(job.StartedAt), "Ended", console.FormatTime(job.EndedAt),
		"Duration", console.FormatElapsed(job.StartedAt, job.EndedAt), "Error", job.Error, "Input",
		string(job.Input), "Output", string(job.Output))
}

var jobTable = console.Table{Header: []string{"TASK", "SERVICE", "STATE", "WORKER", "QUEUED", "AGE", "JOB"},
	Spare: []string{"JOB", "QUEUED"}}

func jobRow(j *wire.WaitingJob) []string {
	return []string{j.Task, j.Service, j.State, j.Worker, console.FormatTime(j.EnqueuedAt),
		console.FormatDuration(time.Since(j.EnqueuedAt.Time)), j.ID}
}

func printJobs(a *console.App, jobs []wire.WaitingJob) error {
	t := jobTable
	for i := range jobs {
		t.Rows = append(t.Rows, jobRow(&jobs[i]))
	}
	fmt.Fprintln(a.Stdout)
	return t.WriteRows(a.Stdout)
}
