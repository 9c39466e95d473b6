package work

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/api/v1/route"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// This file has the routes with which workers end claimed jobs.

const reportText = "A late or repeated report is acknowledged and changes nothing."

func (h *JobHandler) addReportRoutes(rt *route.Router) {
	route.Register(rt, route.Operation{ID: "complete-job", Method: http.MethodPost, Path: "/v1/jobs/{job}/complete", Tag: "workers",
		Summary: "Complete a claimed job",
		Text:    reportText}, h.completeJob)
	route.Register(rt, route.Operation{ID: "fail-job", Method: http.MethodPost, Path: "/v1/jobs/{job}/fail", Tag: "workers",
		Summary: "Fail a claimed job",
		Text: "The job is retried if its flow allows it and the error is not fatal. " +
			reportText}, h.failJob)
	route.Register(rt, route.Operation{ID: "report-jobs", Method: http.MethodPost, Path: "/v1/workers/{worker}/reports", Tag: "workers",
		Summary: "Complete or fail many claimed jobs",
		Text: "Each report has its own result: a rejected one has a problem. With next, the request " +
			"also claims jobs: the oldest waiting ones, and those that start because of the " +
			"reports. That saves a poll, and a new job is claimed as it starts. " +
			reportText}, h.reportJobs)
	route.Register(rt, route.Operation{ID: "release-jobs", Method: http.MethodPost, Path: "/v1/workers/{worker}/release", Tag: "workers",
		Summary: "Release claimed jobs",
		Text: "Other workers can get them at once. A job that is no longer claimed with its token " +
			"is unchanged."}, h.releaseJobs)
}

type completeJobInput struct {
	JobPath
	Body wire.JobOutput
}

func (h *JobHandler) completeJob(ctx context.Context, in *completeJobInput) (*route.Response[wire.JobReportResult], error) {
	return h.reportJob(ctx, in.Body.Worker, wire.JobReport{Job: in.Job, Token: in.Body.Token,
		Output: in.Body.Output, Log: in.Body.Log, PrintedLines: in.Body.PrintedLines, JobMetrics: in.Body.JobMetrics})
}

type failJobInput struct {
	JobPath
	Body wire.JobFailure
}

func (h *JobHandler) failJob(ctx context.Context, in *failJobInput) (*route.Response[wire.JobReportResult], error) {
	return h.reportJob(ctx, in.Body.Worker, wire.JobReport{Job: in.Job, Token: in.Body.Token,
		Error: in.Body.Error, Details: in.Body.Details, Fatal: in.Body.Fatal, Log: in.Body.Log,
		PrintedLines: in.Body.PrintedLines, JobMetrics: in.Body.JobMetrics})
}

func (h *JobHandler) reportJob(ctx context.Context, worker string, r wire.JobReport) (*route.Response[wire.JobReportResult], error) {
	orders, errs := h.ordersFor(ctx, worker, []wire.JobReport{r})
	if errs[0] != nil {
		return nil, jobProblem(r.Job, errs[0])
	}
	out, err := h.Engine.Do(ctx, orders[0])
	if err != nil {
		return nil, jobProblem(r.Job, err)
	}
	return &route.Response[wire.JobReportResult]{Body: wire.JobReportResult{Job: r.Job, Changed: out.Changed > 0}}, nil
}

func jobProblem(job string, err error) error {
	if api.Missing(err) {
		return noJob(job)
	}
	return route.LocateError("body", err)
}

type reportsInput struct {
	WorkerPath
	Body wire.JobReports
}

// reportJobs carries out the valid reports of a request, and returns an error for each other one.
func (h *JobHandler) reportJobs(ctx context.Context, in *reportsInput) (*route.Response[wire.JobReportResults], error) {
	answer := wire.JobReportResults{Items: make([]wire.JobReportResult, len(in.Body.Reports))}
	all, errs := h.ordersFor(ctx, in.Worker, in.Body.Reports)
	var orders engine.Orders
	var places []int // indexes of the orders among the reports
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
		return &route.Response[wire.JobReportResults]{Body: answer}, nil
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
	return &route.Response[wire.JobReportResults]{Body: answer}, nil
}

// exchangeJobs carries out orders, and claims jobs if the worker requests some.
func (h *JobHandler) exchangeJobs(ctx context.Context, in *reportsInput,
	orders engine.Orders) (outcomes engine.Outcomes, jobs engine.Jobs, err error) {
	if in.Body.Next == nil {
		outcomes, err = h.Engine.DoAll(ctx, orders)
		return outcomes, nil, err
	}
	next, err := h.Workers.pollOf(ctx, "body.next", in.Worker, in.Body.Next)
	if err != nil {
		return nil, nil, err
	}
	x, err := h.Engine.Exchange(ctx, engine.Exchange{Orders: orders, Next: next})
	if err != nil {
		err = route.LocateError("body.next", err)
	}
	return x.Outcomes, x.Jobs, err
}

func (h *JobHandler) itemProblem(ctx context.Context, job string, err error) *wire.Problem {
	if api.Missing(err) {
		err = route.NewNotFoundError("job", "check the id; the jobs of deleted tasks are deleted with them", "there is no job %.300q", job)
	}
	return &h.Router.ToProblem(ctx, err).Problem
}

// ordersFor converts reports to orders for their tasks, or to errors. It first stores the log lines
// of the reports.
func (h *JobHandler) ordersFor(ctx context.Context, worker string, reports []wire.JobReport) ([]engine.Order, []error) {
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

// storeLogs stores the logs of reports, and returns which reports have stored logs. It reads each
// task once. A missing task is reported with the results of its jobs.
func (h *JobHandler) storeLogs(ctx context.Context, reports []wire.JobReport, errs []error) (kept []bool) {
	kept = make([]bool, len(reports))
	unread, places := withLogs(reports)
	if len(unread) == 0 {
		return kept
	}
	err := h.Reader.Each(ctx, slices.Sorted(maps.Keys(unread)), func(v *persistence.View) error {
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
func (h *JobHandler) storeLog(ctx context.Context, v *persistence.View, at flow.Address, r *wire.JobReport) (kept bool, err error) {
	if len(r.Lines) > 0 {
		kept, err = api.KeepLogOf(ctx, h.Member, v, at, r.Token, r.LinesFrom+int64(len(r.Lines)), api.Lines(&r.PrintedLines))
	}
	if err == nil && r.Log != "" {
		kept, err = api.KeepLogOf(ctx, h.Member, v, at, r.Token, api.LastLine, api.TextLines(r.Log))
	}
	return kept, err
}

// withLogs returns the indexes of the reports with logs by task, and the addresses of their
// attempts.
func withLogs(reports []wire.JobReport) (byTask map[string][]int, places []flow.Address) {
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
	Body wire.ReleaseClaims
}

func (h *JobHandler) releaseJobs(ctx context.Context, in *releaseJobsInput) (*struct{}, error) {
	err := engine.GiveBack(ctx, h.Engine, claimsOf(in.Body.Claims))
	if err != nil {
		return nil, route.LocateError("body.claims", err)
	}
	return nil, nil
}
