package worker

import (
	"context"
	"sync"

	"github.com/troupe-engine/troupe/api/wire"
)

// Limits of one request. A single report may be larger.
const (
	maxReports  = 200
	reportBytes = 1 << 20
)

// senders is the maximum number of concurrent requests with reports. Reports that arrive meanwhile
// are collected for the next request.
const senders = 2

// resultReporter reports the results of jobs to the engine. Results of jobs that end together share
// a request. The answer may contain the next jobs, which use the slots of the jobs that have ended.
type resultReporter struct {
	worker     *Worker
	ended      chan *pendingReport
	nextWanted func(jobs int) *wire.JobRequest // returns the request for jobs; nil for no jobs
}

// pendingReport is a report whose caller waits for the answer.
type pendingReport struct {
	report   wire.JobReport
	answered chan deliveryResult
}

// deliveryResult is the result of a report, and whether the slot of its job has passed to another
// job.
type deliveryResult struct {
	err    error
	passed bool
}

func newReporter(w *Worker) *resultReporter {
	return &resultReporter{worker: w, ended: make(chan *pendingReport, maxReports)}
}

// deliverReport sends a report and returns the engine's answer.
func (r *resultReporter) deliverReport(ctx context.Context, report wire.JobReport) (passed bool, err error) {
	d := &pendingReport{report, make(chan deliveryResult, 1)}
	select {
	case r.ended <- d:
	case <-ctx.Done():
		return false, ctx.Err()
	}
	select {
	case a := <-d.answered:
		return a.passed, a.err
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// runSenders sends reports until ctx ends. Until open ends, the requests also ask for jobs of the
// services.
func (r *resultReporter) runSenders(ctx, open context.Context, services []string) {
	r.nextWanted = func(jobs int) *wire.JobRequest {
		if open.Err() != nil {
			return nil
		}
		next := r.worker.wantedJobs(services, jobs)
		return &next
	}
	var all sync.WaitGroup
	for range senders {
		all.Go(func() { r.sendReports(ctx) })
	}
	all.Wait()
}

func (r *resultReporter) sendReports(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case first := <-r.ended:
			r.sendBatch(ctx, r.collectBatch(first))
		}
	}
}

// collectBatch adds further reports that are ready to the first one, within the limits of a
// request.
func (r *resultReporter) collectBatch(first *pendingReport) []*pendingReport {
	batch := []*pendingReport{first}
	for bytes := first.size(); len(batch) < maxReports && bytes < reportBytes; {
		select {
		case d := <-r.ended:
			batch = append(batch, d)
			bytes += d.size()
		default:
			return batch
		}
	}
	return batch
}

func (d *pendingReport) size() int {
	size := len(d.report.Output) + len(d.report.Error) + len(d.report.Details) + len(d.report.Metrics)
	for _, l := range d.report.Lines {
		size += len(l.Text)
	}
	return size
}

// sendBatch sends a batch of reports. If the engine rejects the batch, each report is sent alone,
// so that one bad report does not block the others.
func (r *resultReporter) sendBatch(ctx context.Context, batch []*pendingReport) {
	reports := wire.JobReports{Reports: make([]wire.JobReport, len(batch)), Next: r.nextWanted(len(batch))}
	for i, d := range batch {
		reports.Reports[i] = d.report
	}
	var answer wire.JobReportResults
	err := r.worker.server.postJSON(ctx, r.worker.workerPath("/reports"), reports, &answer, requestTime)
	if err != nil && len(batch) > 1 && isResultRefused(err) {
		for _, d := range batch {
			r.sendBatch(ctx, []*pendingReport{d})
		}
		return
	}
	r.distributeAnswers(ctx, batch, &answer, err)
}

// distributeAnswers passes the answers to the callers of the batch. The slots of the reported jobs
// pass to the next jobs.
func (r *resultReporter) distributeAnswers(ctx context.Context, batch []*pendingReport, answer *wire.JobReportResults, err error) {
	jobs, passed := pulledOf(answer.Jobs), 0
	if r.nextWanted(1) == nil {
		defer r.worker.claims.declineJobs(jobs)
		jobs = nil
	}
	results := make([]deliveryResult, len(batch))
	for i := range batch {
		results[i].err = errOf(err, answer.Items, i)
		if passed < len(jobs) && isFinal(results[i].err) {
			results[i].passed = true
			passed++
		}
	}
	// before the callers return, because a caller may wait until no job is in progress
	for i, q := range jobs {
		r.worker.startPulled(ctx, q, i < passed)
	}
	for i, d := range batch {
		d.answered <- results[i]
	}
}

// isFinal reports whether the answer to a report ends the job.
func isFinal(err error) bool { return err == nil || isPermanent(err) && !isResultRefused(err) }

// errOf returns the error of the report with an index.
func errOf(err error, items []wire.JobReportResult, i int) error {
	switch {
	case err != nil:
		return err
	case i >= len(items):
		return &statusError{text: "the engine's answer leaves it out"}
	case items[i].Problem != nil:
		return &statusError{status: items[i].Problem.Status, text: items[i].Problem.Detail, fromEngine: true}
	}
	return nil
}
