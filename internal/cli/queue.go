package cli

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/troupe-engine/troupe/api/client"
	"github.com/troupe-engine/troupe/api/wire"
)

// queueCmd groups the commands for the queues of pull workers, one per service.
type queueCmd struct {
	List queueListCmd `cmd:"" help:"List the queues that are not empty: how many jobs each has, and since when the first one waits."`
}

type queueListCmd struct{ remoteFlags }

func (c *queueListCmd) Run(ctx context.Context, a *app) error {
	server, err := c.newClient()
	if err != nil {
		return err
	}
	queues, err := server.Queues(ctx)
	if err != nil {
		return err
	}
	p := &wire.Page[wire.Queue]{Items: queues}
	return printPage(a, c.outputFlag, p, table{header: []string{"SERVICE", "JOBS", "TASKS",
		"WORKERS", "OLDEST", "AGE"}}, func(q *wire.Queue) []string {
		return []string{q.Service, strconv.Itoa(q.Waiting), strconv.Itoa(q.Tasks),
			strconv.Itoa(q.Workers), formatTime(q.Oldest), formatDuration(time.Since(q.Oldest.Time))}
	})
}

type jobCmd struct {
	List jobListCmd `cmd:"" help:"List the jobs in the queues, the longest waiting first."`
	Show jobShowCmd `cmd:"" help:"Show a job: whose it is, what it was given, and what became of it."`
}

type jobListCmd struct {
	remoteFlags
	pagingFlags
	Service []string `complete:"service" help:"Only those of this service. May be repeated."`
}

func (c *jobListCmd) Run(ctx context.Context, a *app) error {
	server, err := c.newClient()
	if err != nil {
		return err
	}
	jobs, err := readPage(c.pagingFlags, func(p client.Paging) (*wire.Page[wire.WaitingJob], error) {
		return server.Jobs(ctx, p, c.Service...)
	})
	if err != nil {
		return err
	}
	return printPage(a, c.outputFlag, jobs, jobTable, jobRow)
}

type jobShowCmd struct {
	remoteFlags
	Job string `arg:"" complete:"job" help:"Id of the job, or what it begins with: that of a task will do which has no other job."`
}

func (c *jobShowCmd) Run(ctx context.Context, a *app) error {
	server, err := c.newClient()
	if err != nil {
		return err
	}
	job, err := jobMeant(ctx, server, c.Job)
	if err != nil {
		return err
	}
	if c.isJSON() {
		return printJSON(a.stdout, job)
	}
	return printFields(a.stdout, "Job", job.ID, "Task", job.Task, "Where", placeOf(&job.Place),
		"Branch", job.Branch, "Service", job.Service,
		"State", job.State, "Worker", job.Worker, "Says", job.Note, "Started", formatTime(job.StartedAt), "Ended", formatTime(job.EndedAt),
		"Time", formatElapsed(job.StartedAt, job.EndedAt), "Error", job.Error, "Input", string(job.Input), "Output", string(job.Output))
}

var jobTable = table{header: []string{"TASK", "SERVICE", "STATE", "WORKER", "SINCE", "AGE", "JOB"}, spare: []string{"JOB", "SINCE"}}

func jobRow(j *wire.WaitingJob) []string {
	return []string{j.Task, j.Service, j.State, j.Worker, formatTime(j.EnqueuedAt), formatDuration(time.Since(j.EnqueuedAt.Time)), j.ID}
}

func printJobs(a *app, jobs []wire.WaitingJob) error {
	t := jobTable
	for i := range jobs {
		t.rows = append(t.rows, jobRow(&jobs[i]))
	}
	fmt.Fprintln(a.stdout)
	return t.writeRows(a.stdout)
}
