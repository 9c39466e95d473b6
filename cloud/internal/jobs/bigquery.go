package jobs

import (
	"context"
	"fmt"

	bigquery "google.golang.org/api/bigquery/v2"

	"github.com/troupe-engine/troupe"
	"github.com/troupe-engine/troupe/cloud/internal/google"
)

// BigQuery tracks jobs of BigQuery: {"service_type": "bigquery", "job_id": …, "project": …,
// "location": …}.
type BigQuery struct {
	opts Options
	jobs *bigquery.JobsService
}

// NewBigQuery returns a tracker.
func NewBigQuery(o Options) (*BigQuery, error) {
	api, err := bigquery.NewService(context.Background(), google.Options(o.Client, o.Endpoint)...)
	if err != nil {
		return nil, fmt.Errorf("the client of BigQuery: %w", err)
	}
	return &BigQuery{o, api.Jobs}, nil
}

// Poll returns the status of a job.
func (b *BigQuery) Poll(ctx context.Context, x troupe.External) (troupe.ExternalStatus, error) {
	a, failed, ok := readRef(x, "BigQuery", b.opts.Project)
	if !ok {
		return failed, nil
	}
	call := b.jobs.Get(a.Project, x.ID).Context(ctx)
	if a.Location != "" {
		call.Location(a.Location)
	}
	job, err := call.Fields("status").Do()
	switch {
	case err != nil:
		return lookError("BigQuery", err)
	case job.Status == nil || job.Status.State != "DONE":
		return troupe.ExternalStatus{}, nil
	case job.Status.ErrorResult != nil:
		return endedStatus("BigQuery job failed: " + job.Status.ErrorResult.Message), nil
	}
	return troupe.ExternalStatus{Ended: true}, nil
}

// Cancel requests the cancellation of a job.
func (b *BigQuery) Cancel(ctx context.Context, x troupe.External) error {
	a, _, ok := readRef(x, "BigQuery", b.opts.Project)
	if !ok {
		return nil
	}
	call := b.jobs.Cancel(a.Project, x.ID).Context(ctx)
	if a.Location != "" {
		call.Location(a.Location)
	}
	_, err := call.Do()
	return cancelError(err)
}
