package jobs

import (
	"cmp"
	"context"
	"fmt"

	dataproc "google.golang.org/api/dataproc/v1"

	"github.com/troupe-engine/troupe"
	"github.com/troupe-engine/troupe/cloud/internal/google"
)

// Dataproc tracks jobs of Dataproc: {"service_type": "dataproc", "job_id": …, "project": …,
// "region": …, "cluster_name": …}.
type Dataproc struct {
	opts Options
	jobs *dataproc.ProjectsRegionsJobsService
}

// NewDataproc returns a tracker.
func NewDataproc(o Options) (*Dataproc, error) {
	api, err := dataproc.NewService(context.Background(), google.Options(o.Client, o.Endpoint)...)
	if err != nil {
		return nil, fmt.Errorf("the client of Dataproc: %w", err)
	}
	return &Dataproc{o, api.Projects.Regions.Jobs}, nil
}

// Poll returns the status of a job. A job with a failed attempt is still running, because Dataproc
// retries it.
func (d *Dataproc) Poll(ctx context.Context, x troupe.External) (troupe.ExternalStatus, error) {
	a, failed, ok := readRef(x, "Dataproc", d.opts.Project)
	if !ok {
		return failed, nil
	}
	job, err := d.jobs.Get(a.Project, cmp.Or(a.Region, d.opts.Region), x.ID).Context(ctx).Fields("status").Do()
	if err != nil {
		return lookError("Dataproc", err)
	}
	if job.Status == nil {
		return troupe.ExternalStatus{}, nil
	}
	switch job.Status.State {
	case "DONE":
		return troupe.ExternalStatus{Ended: true}, nil
	case "ERROR":
		return endedStatus("Dataproc job error: " + job.Status.Details), nil
	case "CANCELLED":
		return endedStatus("Job was cancelled"), nil
	}
	return troupe.ExternalStatus{}, nil
}

// Cancel requests the cancellation of a job.
func (d *Dataproc) Cancel(ctx context.Context, x troupe.External) error {
	a, _, ok := readRef(x, "Dataproc", d.opts.Project)
	if !ok {
		return nil
	}
	_, err := d.jobs.Cancel(a.Project, cmp.Or(a.Region, d.opts.Region), x.ID, &dataproc.CancelJobRequest{}).Context(ctx).Do()
	return cancelError(err)
}
