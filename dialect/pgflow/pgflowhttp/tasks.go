package pgflowhttp

import (
	"encoding/json"
	"net/http"

	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
)

// pgReport is a report about the end of a run's task.
type pgReport struct {
	Step         string          `json:"step"`
	TaskIndex    int             `json:"task_index"`
	Output       json.RawMessage `json:"output"`
	ErrorMessage string          `json:"error_message"`
	Reason       string          `json:"reason"` // error or timeout
	WorkerID     string          `json:"worker_id"`
}

// pgReported is a task after a report about it. Changed is false for a late or repeated report.
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
	if err := decodeBody(r, &q); err != nil {
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
	return p.reportTask(w, r, runID(r), flow.Report{Address: at, Output: q.Output, Worker: q.WorkerID, Poller: true})
}

func (p *pgflow) completeDirect(w http.ResponseWriter, r *http.Request) error {
	q, at, err := readReport(r)
	if err != nil {
		return err
	}
	return p.reportTask(w, r, runID(r), flow.Report{Address: at, Output: q.Output, Worker: q.WorkerID, Direct: true})
}

// failTask fails a task of either route. A direct task is not retried, because only the caller
// could repeat the work.
func (p *pgflow) failTask(w http.ResponseWriter, r *http.Request) error {
	q, at, err := readReport(r)
	if err != nil {
		return err
	}
	run := runID(r)
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
	at, n, err := p.locateUnit(r.Context(), run, at)
	if err != nil {
		return err
	}
	report.Address = at
	report.Direct = n.Exec.Type == flow.ExecDirect
	report.Fatal, report.Poller = report.Direct, !report.Direct
	return p.reportTask(w, r, run, report)
}

// reportTask sends a report to a run and answers with the task. For a direct task of a run that has
// ended, the answer is the unchanged task.
func (p *pgflow) reportTask(w http.ResponseWriter, r *http.Request, run string, report flow.Report) error {
	out, err := p.engine.Do(r.Context(), engine.Order{Task: run, Command: report, Events: true})
	if report.Scope == "" && api.Missing(err) { // the step may be inside a branch
		at, _, unknown := p.locateUnit(r.Context(), run, report.Address)
		if unknown != nil {
			return unknown
		}
		report.Address = at
		out, err = p.engine.Do(r.Context(), engine.Order{Task: run, Command: report, Events: true})
	}
	if report.Direct && flow.ErrorKindOf(err) == flow.Conflict {
		if _, n, unknown := p.locateUnit(r.Context(), run, report.Address); unknown == nil && n.Exec.Type == flow.ExecDirect {
			return p.writeUnchanged(w, r, run, report.Address, err)
		}
	}
	switch {
	case report.Scope != "" && api.Missing(err): // the subflow of the step has ended
		return p.writeUnchanged(w, r, run, report.Address, noTask(report.Address))
	case err != nil && api.Missing(err):
		return noTask(report.Address)
	case err != nil:
		return err
	}
	for i := range out.Events {
		if e := &out.Events[i]; e.Type == flow.AttemptEnded {
			api.WriteJSON(w, http.StatusOK, reportedBy(run, e))
			return nil
		}
	}
	return p.writeUnchanged(w, r, run, report.Address,
		flow.Errorf(flow.Conflict, "step %.140q of run %.140q has no such task yet", report.Address.Step(), run))
}

// reportedBy returns a task with the data from the end of its attempt. The complete task is in the
// run's history.
func reportedBy(run string, e *flow.Event) pgReported {
	r := pgReported{RunID: run, StepSlug: e.Address().Step(), TaskIndex: e.Unit, Attempts: e.Attempt, Output: json.RawMessage("null"),
		LastWorkerID: textOrNull(e.Worker), Changed: true}
	status := flow.AttemptStatus(e.Status)
	if status == flow.AttemptOK {
		r.Status, r.Output, r.CompletedAt = pgCompleted, api.OrNull(e.Output), timeOrNull(e.At)
		return r
	}
	reason := reasonOf(status)
	r.Status, r.ErrorMessage, r.FailureReason = pgQueued, &e.Error, &reason
	if e.Due == 0 {
		r.Status, r.FailedAt = pgFailed, timeOrNull(e.At)
	}
	return r
}

// writeUnchanged answers with a task as it is, or with the given refusal if there is no task.
func (p *pgflow) writeUnchanged(w http.ResponseWriter, r *http.Request, run string, at flow.Address, refusal error) error {
	h, err := p.reader.History(r.Context(), run)
	if err != nil {
		return noRun(run, err)
	}
	t, found := taskAt(h, at)
	if !found {
		return refusal
	}
	api.WriteJSON(w, http.StatusOK, pgReported{RunID: run, StepSlug: t.StepSlug,
		TaskIndex: t.TaskIndex, Status: t.Status, Attempts: t.Attempts,
		Output: t.Output, ErrorMessage: t.ErrorMessage, FailureReason: t.FailureReason, CompletedAt: t.CompletedAt, FailedAt: t.FailedAt,
		LastWorkerID: t.LastWorkerID})
	return nil
}

func (p *pgflow) appendTasks(w http.ResponseWriter, r *http.Request) error {
	var q struct {
		Step  string            `json:"step"`
		Item  json.RawMessage   `json:"item"`
		Items []json.RawMessage `json:"items"`
		Route string            `json:"route"`
	}
	if err := decodeBody(r, &q); err != nil {
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
	run := runID(r)
	at := flow.Address{Node: q.Step}
	indexes, err := engine.Append(r.Context(), p.engine, run, flow.Append{Address: at, Items: q.Items, Route: q.Route}, "")
	if api.Missing(err) { // the step may be inside a branch
		if at, _, err = p.locateUnit(r.Context(), run, at); err == nil {
			indexes, err = engine.Append(r.Context(), p.engine, run, flow.Append{Address: at, Items: q.Items, Route: q.Route}, "")
		}
	}
	if err != nil {
		return err
	}
	api.WriteJSON(w, http.StatusCreated, map[string][]int{"task_indexes": indexes})
	return nil
}
