package worker

import (
	"context"
	"sync"

	"github.com/troupe-engine/troupe/api/wire"
)

// What one request reports at most, unless one job alone has more.
const (
	mostReports = 200
	reportBytes = 1 << 20
)

// senders is how many requests with reports are under way at once. What comes meanwhile gathers for the next one.
const senders = 2

// reporter tells the engine how jobs ended, many at once when many end, and takes the next ones from its answer: each goes on in the slot of one
// that has ended.
type reporter struct {
	worker *Worker
	ended  chan *delivery
	next   func(jobs int) *wire.Wanted // what to ask for; nil = nothing
}

// delivery is a report that somebody waits for the answer to.
type delivery struct {
	report   wire.Report
	answered chan delivered
}

// delivered is what became of a report, and whether the slot of its job has passed to another one.
type delivered struct {
	err    error
	passed bool
}

func newReporter(w *Worker) *reporter {
	return &reporter{worker: w, ended: make(chan *delivery, mostReports)}
}

// deliver returns what the engine answered.
func (r *reporter) deliver(ctx context.Context, report wire.Report) (passed bool, err error) {
	d := &delivery{report, make(chan delivered, 1)}
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

// keep works until ctx ends. While open lasts it asks for more jobs of the services.
func (r *reporter) keep(ctx, open context.Context, services []string) {
	r.next = func(jobs int) *wire.Wanted {
		if open.Err() != nil {
			return nil
		}
		next := r.worker.wanted(services, jobs)
		return &next
	}
	var all sync.WaitGroup
	for range senders {
		all.Go(func() { r.send(ctx) })
	}
	all.Wait()
}

func (r *reporter) send(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case first := <-r.ended:
			r.sendAll(ctx, r.gather(first))
		}
	}
}

// gather takes what else has ended.
func (r *reporter) gather(first *delivery) []*delivery {
	batch := []*delivery{first}
	for bytes := first.size(); len(batch) < mostReports && bytes < reportBytes; {
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

func (d *delivery) size() int {
	size := len(d.report.Output) + len(d.report.Error) + len(d.report.Details) + len(d.report.Metrics)
	for _, l := range d.report.Lines {
		size += len(l.Text)
	}
	return size
}

// sendAll reports a batch. What is wrong with one report must not keep the others: when they are refused together, each
// is sent alone.
func (r *reporter) sendAll(ctx context.Context, batch []*delivery) {
	reports := wire.Reports{Reports: make([]wire.Report, len(batch)), Next: r.next(len(batch))}
	for i, d := range batch {
		reports.Reports[i] = d.report
	}
	var answer wire.ReportedJobs
	err := r.worker.server.post(ctx, r.worker.path("/reports"), reports, &answer, requestTime)
	if err != nil && len(batch) > 1 && unfit(err) {
		for _, d := range batch {
			r.sendAll(ctx, []*delivery{d})
		}
		return
	}
	r.share(ctx, batch, &answer, err)
}

// share gives the batch its answers, and the slots of what is reported to the next jobs.
func (r *reporter) share(ctx context.Context, batch []*delivery, answer *wire.ReportedJobs, err error) {
	jobs, passed := pulledOf(answer.Jobs), 0
	if r.next(1) == nil {
		defer r.worker.claims.decline(jobs)
		jobs = nil
	}
	results := make([]delivered, len(batch))
	for i := range batch {
		results[i].err = errOf(err, answer.Items, i)
		if passed < len(jobs) && final(results[i].err) {
			results[i].passed = true
			passed++
		}
	}
	for i, q := range jobs { // before the others end: somebody may wait until no job is in progress
		r.worker.begin(ctx, q, i < passed)
	}
	for i, d := range batch {
		d.answered <- results[i]
	}
}

// final says whether a job has ended with that answer to its report.
func final(err error) bool { return err == nil || hopeless(err) && !unfit(err) }

// errOf is what became of one report.
func errOf(err error, items []wire.Reported, i int) error {
	switch {
	case err != nil:
		return err
	case i >= len(items):
		return &statusError{text: "the engine's answer leaves it out"}
	case items[i].Problem != nil:
		return &statusError{status: items[i].Problem.Status, text: items[i].Problem.Detail, told: true}
	}
	return nil
}
