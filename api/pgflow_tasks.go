package api

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/flow"
)

// pgReport names a task of a run and says how it ended.
type pgReport struct {
	Step         string          `json:"step"`
	TaskIndex    int             `json:"task_index"`
	Output       json.RawMessage `json:"output"`
	ErrorMessage string          `json:"error_message"`
	Reason       string          `json:"reason"` // error or timeout
	WorkerID     string          `json:"worker_id"`
}

// pgReported is a task after a report about it. Changed is false for one that came late, or again.
type pgReported struct {
	RunID         string          `json:"run_id"`
	StepSlug      string          `json:"step_slug"`
	TaskIndex     int             `json:"task_index"`
	Status        string          `json:"status"`
	Attempts      int             `json:"attempts_count"`
	Output        json.RawMessage `json:"output"`
	ErrorMessage  *string         `json:"error_message"`
	FailureReason *string         `json:"failure_reason"`
	CompletedAt   *wire.Time      `json:"completed_at"`
	FailedAt      *wire.Time      `json:"failed_at"`
	LastWorkerID  *string         `json:"last_worker_id"`
	Changed       bool            `json:"changed"`
}

func readReport(r *http.Request) (q pgReport, at flow.Address, err error) {
	if err := decode(r, &q); err != nil {
		return q, at, err
	}
	if q.Step == "" {
		return q, at, flow.Errorf(flow.Invalid, "step is missing: say whose task it is")
	}
	return q, flow.Address{Node: q.Step, Unit: q.TaskIndex}, nil
}

func (p *pgflow) completeTask(w http.ResponseWriter, r *http.Request) error {
	q, at, err := readReport(r)
	if err != nil {
		return err
	}
	return p.report(w, r, r.PathValue("run"), flow.Report{Address: at, Output: q.Output, Worker: q.WorkerID, Poller: true})
}

func (p *pgflow) completeDirect(w http.ResponseWriter, r *http.Request) error {
	q, at, err := readReport(r)
	if err != nil {
		return err
	}
	return p.report(w, r, r.PathValue("run"), flow.Report{Address: at, Output: q.Output, Worker: q.WorkerID, Direct: true})
}

// failTask is for tasks of both routes. A direct one is not tried again: nobody but the caller would.
func (p *pgflow) failTask(w http.ResponseWriter, r *http.Request) error {
	q, at, err := readReport(r)
	if err != nil {
		return err
	}
	run := r.PathValue("run")
	report := flow.Report{Address: at, Error: q.ErrorMessage, Worker: q.WorkerID}
	if report.Error == "" {
		report.Error = "failed"
	}
	switch q.Reason {
	case "", "error":
	case "timeout":
		report.TimedOut = true
	default:
		return flow.Errorf(flow.Invalid, "reason %.40q is none: write error or timeout", q.Reason)
	}
	direct, err := p.isDirect(r.Context(), run, q.Step)
	if err != nil {
		return noRun(run, err)
	}
	report.Direct, report.Fatal, report.Poller = direct, direct, !direct
	return p.report(w, r, run, report)
}

func (p *pgflow) isDirect(ctx context.Context, run, step string) (bool, error) {
	row, err := p.store.Task(ctx, run)
	if err != nil {
		return false, err
	}
	plan, err := p.reader.Plan(ctx, row.VersionID)
	if err != nil {
		return false, err
	}
	n := plan.Root.Nodes[step]
	return n != nil && n.Exec.Type == flow.ExecDirect, nil
}

// report gives a report to a run and answers with the task. A direct task of a run that is over stays as
// it is, like any other.
func (p *pgflow) report(w http.ResponseWriter, r *http.Request, run string, report flow.Report) error {
	events, err := p.engine.Tell(r.Context(), run, report, "")
	if report.Direct && flow.KindOf(err) == flow.Conflict {
		if direct, known := p.isDirect(r.Context(), run, report.Node); known == nil && direct {
			return p.writeUnchanged(w, r, run, report.Address, err)
		}
	}
	if err != nil {
		return noRun(run, err)
	}
	for i := range events {
		if e := &events[i]; e.Type == flow.AttemptEnded {
			writeJSON(w, http.StatusOK, reportedBy(run, e))
			return nil
		}
	}
	return p.writeUnchanged(w, r, run, report.Address,
		flow.Errorf(flow.Conflict, "step %.140q of run %.140q has no such task yet", report.Node, run))
}

// reportedBy tells of a task what the end of its attempt says. The whole of it is a matter of its history.
func reportedBy(run string, e *flow.Event) pgReported {
	r := pgReported{RunID: run, StepSlug: e.Node, TaskIndex: e.Unit, Attempts: e.Attempt, Output: json.RawMessage("null"),
		LastWorkerID: textOrNull(e.Worker), Changed: true}
	status := flow.AttemptStatus(e.Status)
	if status == flow.AttemptOK {
		r.Status, r.Output, r.CompletedAt = pgCompleted, orNull(e.Output), moment(e.At)
		return r
	}
	reason := reasonOf(status)
	r.Status, r.ErrorMessage, r.FailureReason = pgQueued, &e.Error, &reason
	if e.Due == 0 {
		r.Status, r.FailedAt = pgFailed, moment(e.At)
	}
	return r
}

// writeUnchanged answers with a task as it is, or with a refusal when there is none.
func (p *pgflow) writeUnchanged(w http.ResponseWriter, r *http.Request, run string, at flow.Address, refusal error) error {
	h, err := p.reader.History(r.Context(), run)
	if err != nil {
		return noRun(run, err)
	}
	for _, tasks := range tasksOf(h) {
		if at.Unit >= len(tasks) || at.Unit < 0 || tasks[at.Unit].StepSlug != at.Node {
			continue
		}
		t := tasks[at.Unit]
		writeJSON(w, http.StatusOK, pgReported{RunID: run, StepSlug: t.StepSlug, TaskIndex: t.TaskIndex, Status: t.Status, Attempts: t.Attempts,
			Output: t.Output, ErrorMessage: t.ErrorMessage, FailureReason: t.FailureReason, CompletedAt: t.CompletedAt, FailedAt: t.FailedAt,
			LastWorkerID: t.LastWorkerID})
		return nil
	}
	return refusal
}

func (p *pgflow) appendTasks(w http.ResponseWriter, r *http.Request) error {
	var q struct {
		Step  string            `json:"step"`
		Item  json.RawMessage   `json:"item"`
		Items []json.RawMessage `json:"items"`
		Route string            `json:"route"`
	}
	if err := decode(r, &q); err != nil {
		return err
	}
	switch {
	case q.Step == "":
		return flow.Errorf(flow.Invalid, "step is missing: say which fanout gets the items")
	case (q.Item == nil) == (q.Items == nil):
		return flow.Errorf(flow.Invalid, "send either item or items")
	case q.Item != nil:
		q.Items = []json.RawMessage{q.Item}
	}
	run := r.PathValue("run")
	indexes, err := p.engine.Append(r.Context(), run, flow.Address{Node: q.Step}, q.Items, q.Route, "")
	if err != nil {
		return noRun(run, err)
	}
	writeJSON(w, http.StatusCreated, map[string][]int{"task_indexes": indexes})
	return nil
}
