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

// Routes with which workers end claimed jobs.

const reportText = "A report that comes late, or again, is acknowledged and changes nothing."

func (h *jobHandler) addReportRoutes(rt *apiRouter) {
	registerOperation(rt, apiOperation{id: "complete-job", method: http.MethodPost, path: "/v1/jobs/{job}/complete", tag: "workers",
		summary: "Complete a claimed job", text: reportText}, h.completeJob)
	registerOperation(rt, apiOperation{id: "fail-job", method: http.MethodPost, path: "/v1/jobs/{job}/fail", tag: "workers",
		summary: "Fail a claimed job", text: "It is tried again, if its flow says so and the error is not fatal. " + reportText}, h.failJob)
	registerOperation(rt, apiOperation{id: "report-jobs", method: http.MethodPost, path: "/v1/workers/{worker}/reports", tag: "workers",
		summary: "Complete and fail claimed jobs, many at once",
		text: "Each is answered in its place: one that is refused has a problem there. With " +
			"next, jobs are claimed meanwhile: of those that wait the oldest, and those that " +
			"begin by what is reported; that saves a poll, and a job that begins is claimed as " +
			"it begins. " + reportText}, h.reportJobs)
	registerOperation(rt, apiOperation{id: "release-jobs", method: http.MethodPost, path: "/v1/workers/{worker}/release", tag: "workers",
		summary: "Give claimed jobs back", text: "Other workers get them at once. What is not " +
			"claimed with that token (any longer) stays as it is."}, h.releaseJobs)
}

type completeJobInput struct {
	JobPath
	Body wire.JobOutput
}

func (h *jobHandler) completeJob(ctx context.Context, in *completeJobInput) (*bodyResponse[wire.Reported], error) {
	return h.reportJob(ctx, in.Body.Worker, wire.Report{Job: in.Job, Token: in.Body.Token,
		Output: in.Body.Output, Log: in.Body.Log, Said: in.Body.Said, Numbers: in.Body.Numbers})
}

type failJobInput struct {
	JobPath
	Body wire.JobFailure
}

func (h *jobHandler) failJob(ctx context.Context, in *failJobInput) (*bodyResponse[wire.Reported], error) {
	return h.reportJob(ctx, in.Body.Worker, wire.Report{Job: in.Job, Token: in.Body.Token,
		Error: in.Body.Error, Details: in.Body.Details, Fatal: in.Body.Fatal, Log: in.Body.Log,
		Said: in.Body.Said, Numbers: in.Body.Numbers})
}

func (h *jobHandler) reportJob(ctx context.Context, worker string, r wire.Report) (*bodyResponse[wire.Reported], error) {
	orders, errs := h.ordersFor(ctx, worker, []wire.Report{r})
	if errs[0] != nil {
		return nil, jobProblem(r.Job, errs[0])
	}
	out, err := h.engine.Do(ctx, orders[0])
	if err != nil {
		return nil, jobProblem(r.Job, err)
	}
	return &bodyResponse[wire.Reported]{wire.Reported{Job: r.Job, Changed: out.Changed > 0}}, nil
}

func jobProblem(job string, err error) error {
	if api.Missing(err) {
		return noJob(job)
	}
	return locateError("body", err)
}

type reportsInput struct {
	WorkerPath
	Body wire.Reports
}

// reportJobs carries out all valid reports of a request.
func (h *jobHandler) reportJobs(ctx context.Context, in *reportsInput) (*bodyResponse[wire.ReportedJobs], error) {
	answer := wire.ReportedJobs{Items: make([]wire.Reported, len(in.Body.Reports))}
	all, errs := h.ordersFor(ctx, in.Worker, in.Body.Reports)
	var orders engine.Orders
	var places []int // indexes of the orders in the answer
	for i, err := range errs {
		item := &answer.Items[i]
		item.Job = in.Body.Reports[i].Job
		if err != nil {
			item.Problem = h.itemProblem(ctx, item.Job, err)
			continue
		}
		orders, places = append(orders, all[i]), append(places, i)
	}
	if len(orders) == 0 {
		return &bodyResponse[wire.ReportedJobs]{answer}, nil
	}
	outcomes, jobs, err := h.exchangeJobs(ctx, in, orders)
	if err != nil {
		return nil, err
	}
	for i, out := range outcomes {
		item := &answer.Items[places[i]]
		item.Changed = out.Changed > 0
		if out.Err != nil {
			item.Problem = h.itemProblem(ctx, item.Job, out.Err)
		}
	}
	answer.Jobs = toClaimedJobs(jobs)
	return &bodyResponse[wire.ReportedJobs]{answer}, nil
}

// exchangeJobs carries out orders, and claims jobs if the worker asks for some.
func (h *jobHandler) exchangeJobs(ctx context.Context, in *reportsInput,
	orders engine.Orders) (outcomes engine.Outcomes, jobs engine.Jobs, err error) {
	if in.Body.Next == nil {
		outcomes, err = h.engine.DoAll(ctx, orders)
		return outcomes, nil, err
	}
	next, err := h.workers.pollOf(ctx, "body.next", in.Worker, in.Body.Next)
	if err != nil {
		return nil, nil, err
	}
	x, err := h.engine.Exchange(ctx, engine.Exchange{Orders: orders, Next: next})
	if err != nil {
		err = locateError("body.next", err)
	}
	return x.Outcomes, x.Jobs, err
}

func (h *jobHandler) itemProblem(ctx context.Context, job string, err error) *wire.Problem {
	if api.Missing(err) {
		err = newNotFoundError("job", "check the id; the jobs of deleted tasks are deleted with them", "there is no job %.300q", job)
	}
	return &h.router.toProblem(ctx, err).Problem
}

// ordersFor converts reports to commands for their tasks, or to errors. Log lines in the reports
// are stored first.
func (h *jobHandler) ordersFor(ctx context.Context, worker string, reports []wire.Report) ([]engine.Order, []error) {
	orders, errs := make([]engine.Order, len(reports)), make([]error, len(reports))
	kept := h.storeLogs(ctx, reports, errs)
	for i := range reports {
		if errs[i] != nil {
			continue
		}
		r := &reports[i]
		report := flow.Report{Output: r.Output, Error: r.Error, Details: r.Details,
			Metrics: r.Metrics, Fatal: r.Fatal, Token: r.Token, Worker: worker, Log: kept[i]}
		orders[i], errs[i] = engine.Completing(strings.TrimPrefix(r.Job, api.QueuePrefix), report)
	}
	return orders, errs
}

// storeLogs stores the logs in reports, and returns for which reports there are logs. Each task is
// read once, however many of its jobs have ended. A task that does not exist is reported with the
// results of its jobs.
func (h *jobHandler) storeLogs(ctx context.Context, reports []wire.Report, errs []error) (kept []bool) {
	kept = make([]bool, len(reports))
	unread, places := withLogs(reports)
	if len(unread) == 0 {
		return kept
	}
	err := h.reader.Each(ctx, slices.Sorted(maps.Keys(unread)), func(v *persistence.View) error {
		for _, i := range unread[v.ID] {
			kept[i], errs[i] = h.storeLog(ctx, v, places[i], &reports[i])
		}
		delete(unread, v.ID)
		return nil
	})
	for _, reports := range unread {
		for _, i := range reports {
			errs[i] = err
		}
	}
	return kept
}

// storeLog stores the log of one report.
func (h *jobHandler) storeLog(ctx context.Context, v *persistence.View, at flow.Address, r *wire.Report) (kept bool, err error) {
	if len(r.Lines) > 0 {
		kept, err = api.KeepLogOf(ctx, h.member, v, at, r.Token, r.LinesFrom+int64(len(r.Lines)), api.Lines(&r.Said))
	}
	if err == nil && r.Log != "" {
		kept, err = api.KeepLogOf(ctx, h.member, v, at, r.Token, api.LastLine, api.TextLines(r.Log))
	}
	return kept, err
}

// withLogs returns the reports with logs, grouped by task, and their attempts.
func withLogs(reports []wire.Report) (byTask map[string][]int, places []flow.Address) {
	byTask, places = map[string][]int{}, make([]flow.Address, len(reports))
	for i := range reports {
		if reports[i].Log == "" && len(reports[i].Lines) == 0 {
			continue
		}
		if _, task, place, err := api.JobOf(reports[i].Job, api.QueuePrefix); err == nil {
			byTask[task], places[i] = append(byTask[task], i), place
		}
	}
	return byTask, places
}

type releaseJobsInput struct {
	WorkerPath
	Body wire.GiveBack
}

func (h *jobHandler) releaseJobs(ctx context.Context, in *releaseJobsInput) (*struct{}, error) {
	err := engine.GiveBack(ctx, h.engine, claimsOf(in.Body.Claims))
	if err != nil {
		return nil, locateError("body.claims", err)
	}
	return nil, nil
}
