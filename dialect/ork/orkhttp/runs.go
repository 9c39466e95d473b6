package orkhttp

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"

	"github.com/google/uuid"

	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// runItem is a run in a list.
type runItem struct {
	ID         string     `json:"id"`
	Workflow   string     `json:"workflow"`
	Status     string     `json:"status"`
	Triggered  string     `json:"triggered_by"`
	CreatedAt  *wire.Time `json:"created_at"`
	StartedAt  *wire.Time `json:"started_at"`
	FinishedAt *wire.Time `json:"finished_at"`
}

// runDetails is a single run with its details.
type runDetails struct {
	runItem
	Error      *string         `json:"error"`
	Input      json.RawMessage `json:"input"`
	SnapshotID string          `json:"snapshot_id"`
}

// States of runs and of tasks.
const (
	pending    = "pending"
	dispatched = "dispatched"
	running    = "running"
	paused     = "paused"
	success    = "success"
	failed     = "failed"
	skipped    = "skipped"
	cancelled  = "cancelled"
)

// statusOf returns the state of a run from its row or its journal.
func statusOf(status flow.TaskStatus, isPaused, isCanceled bool) string {
	switch {
	case isCanceled, status == flow.TaskCanceling, status == flow.TaskCanceled:
		return cancelled
	case status == flow.TaskCompleted:
		return success
	case status == flow.TaskFailed:
		return failed
	case isPaused:
		return paused
	case status == flow.TaskPending:
		return pending
	}
	return running
}

func statusIn(s *flow.State) string { return statusOf(s.Status, s.Paused(), s.CancelAt != 0) }

// Triggers of a run, and the label that holds the trigger.
const (
	triggerLabel = "triggered_by"
	byHand       = "manual"
	byPage       = "ui"
)

func runOf(row *persistence.TaskRow) runItem {
	r := runItem{ID: publicRunID(row.ID), Workflow: row.FlowSlug,
		Status: statusOf(flow.TaskStatus(row.Status), row.Paused, false), Triggered: row.Labels[triggerLabel],
		CreatedAt: timeOrNull(row.CreatedAt), FinishedAt: timeOrNull(row.EndedAt)}
	if r.Workflow == "" {
		r.Workflow = row.FlowName
	}
	if r.Triggered == "" {
		r.Triggered = byHand
	}
	return r
}

// startedAt returns when a run began to run. This is its creation time, unless its flow limits the
// number of runs at once.
func (d *dialect) startedAt(ctx context.Context, row *persistence.TaskRow, status flow.TaskStatus) *wire.Time {
	if status == flow.TaskPending {
		return nil
	}
	if plan, err := d.Reader.Plan(ctx, row.VersionID); err != nil || plan.Keys == nil {
		return timeOrNull(row.CreatedAt)
	}
	began, err := d.Reader.Began(ctx, row.ID)
	if err != nil { // a run that cannot be read is listed with the data of its row
		return nil
	}
	return timeOrNull(began)
}

// startRun starts a run of the workflow named in the body.
func (d *dialect) startRun(w http.ResponseWriter, r *http.Request) error {
	var q struct {
		Workflow string `json:"workflow"`
		startRequest
	}
	if err := decodeBody(r, &q); err != nil {
		return err
	}
	return d.beginRun(w, r, q.Workflow, q.startRequest, byPage, http.StatusOK)
}

// startNamed starts a run of the workflow named in the path.
func (d *dialect) startNamed(w http.ResponseWriter, r *http.Request) error {
	var q startRequest
	if err := decodeBody(r, &q); err != nil {
		return err
	}
	return d.beginRun(w, r, r.PathValue("name"), q, byHand, http.StatusCreated)
}

// startRequest holds the input of a new run.
type startRequest struct {
	Input json.RawMessage `json:"input"`
	RunID string          `json:"run_id"`
	Key   string          `json:"idempotency_key"`
}

// newRunID returns the id of the run: the id in the request, an id derived from the key, or a
// random id.
func (q *startRequest) newRunID(flowID string) (string, error) {
	switch {
	case q.RunID != "" && q.Key != "":
		return "", flow.Errorf(flow.Invalid, "send either run_id or idempotency_key")
	case q.RunID != "":
		id, err := uuid.Parse(q.RunID)
		if err != nil {
			return "", flow.Errorf(flow.Invalid, "run_id %.60q is no UUID", q.RunID)
		}
		return id.String(), nil
	case q.Key != "":
		if err := flow.CheckNames("the idempotency key", q.Key); err != nil {
			return "", err
		}
		return newRunID(flowID + "\n" + q.Key), nil
	}
	return newRunID(""), nil
}

// startedRun is the answer to a start.
type startedRun struct {
	RunID  string `json:"run_id"`
	Status string `json:"status"`
}

func (d *dialect) beginRun(w http.ResponseWriter, r *http.Request, name string, q startRequest, by string, status int) error {
	if err := engine.CheckStore(d.Engine); err != nil {
		return err
	}
	f, err := d.findFlow(r.Context(), name)
	if err != nil {
		return err
	}
	v, err := d.Store.FindVersion(r.Context(), f.ID, 0)
	if err != nil {
		return err
	}
	id, err := q.newRunID(f.ID)
	if err != nil {
		return err
	}
	var input bytes.Buffer
	if len(q.Input) > 0 && string(q.Input) != "null" {
		if err := json.Compact(&input, q.Input); err != nil {
			return flow.Errorf(flow.Invalid, "input: %v", err)
		}
	}
	started, err := d.Engine.StartTask(r.Context(), engine.NewTask{VersionID: v.ID, Newest: true, ID: id, Params: input.Bytes(),
		Labels: map[string]string{triggerLabel: by}})
	if err != nil {
		return err
	}
	answer := startedRun{started.Task, pending}
	if !started.Created {
		view, err := d.loadView(r.Context(), started.Task)
		if err != nil {
			return err
		}
		answer.Status = statusIn(view.State)
	}
	api.WriteJSON(w, status, answer)
	return nil
}

func (d *dialect) loadView(ctx context.Context, run string) (*persistence.View, error) {
	v, err := d.Reader.View(ctx, run)
	return v, noRun(run, err)
}

func noRun(id string, err error) error {
	if api.Missing(err) {
		if err := checkRunID(id); err != nil {
			return err
		}
		return flow.Errorf(flow.NotFound, "there is no run %.140q", id)
	}
	return err
}

// parseFilter reads which runs are requested.
func parseFilter(r *http.Request) (f persistence.TaskFilter, err error) {
	q := r.URL.Query()
	f.FlowSlug = q.Get("workflow")
	yes, no := true, false
	switch word := q.Get("status"); word {
	case "":
	case paused:
		f.Statuses, f.Paused = api.Unfinished, &yes
	default:
		status := api.StateOf(word)
		switch status {
		case "":
			return f, flow.Errorf(flow.Invalid, "status %.40q is none: write pending, running, paused, success, failed or cancelled", word)
		case flow.TaskCanceled, flow.TaskCanceling:
			f.Statuses = []string{string(flow.TaskCanceled), string(flow.TaskCanceling)}
		case flow.TaskRunning, flow.TaskPending:
			f.Statuses, f.Paused = []string{string(status)}, &no
		default:
			f.Statuses = []string{string(status)}
		}
	}
	return f, nil
}

func (d *dialect) listRuns(w http.ResponseWriter, r *http.Request) error {
	limit, offset, err := parsePaging(r, 50)
	if err != nil {
		return err
	}
	f, err := parseFilter(r)
	if err != nil {
		return err
	}
	total, err := d.Store.CountTasks(r.Context(), f)
	if err != nil {
		return err
	}
	f.Limit, f.Offset = limit, offset
	rows, err := d.Store.ListTasks(r.Context(), f)
	if err != nil {
		return err
	}
	var items []runItem
	for i := range rows {
		one := runOf(&rows[i])
		one.StartedAt = d.startedAt(r.Context(), &rows[i], flow.TaskStatus(rows[i].Status))
		items = append(items, one)
	}
	api.WriteJSON(w, http.StatusOK, pageOf(items, total, limit, offset))
	return nil
}

func (d *dialect) getRun(w http.ResponseWriter, r *http.Request) error {
	id := d.runID(r)
	row, err := d.Store.Task(r.Context(), id)
	if err != nil {
		return noRun(id, err)
	}
	h, err := d.Reader.History(r.Context(), id)
	if err != nil {
		return noRun(id, err)
	}
	tasks := tasksOf(h)
	answer := struct {
		Run      runDetails      `json:"run"`
		Tasks    []runTask       `json:"tasks"`
		Workflow workflowDetails `json:"workflow"`
	}{runDetailsOf(row, h, tasks), tasks, d.shapeOf(row, h.State.Plan)}
	answer.Run.StartedAt = d.startedAt(r.Context(), row, h.State.Status)
	api.WriteJSON(w, http.StatusOK, answer)
	return nil
}

// shapeOf returns the workflow in the version that the run uses.
func (d *dialect) shapeOf(row *persistence.TaskRow, p *flow.Plan) workflowDetails {
	return workflowDetails{workflowItem: workflowItem{ID: trimID(row.FlowID), Name: row.FlowSlug,
		Executor: "dag", Project: here, Region: here},
		SnapshotID: trimID(row.VersionID), Version: row.VersionNumber, Tasks: tasksIn(p)}
}

// runDetailsOf returns the details of a run from its journal.
func runDetailsOf(row *persistence.TaskRow, h *flow.History, tasks []runTask) runDetails {
	s := h.State
	w := runDetails{runItem: runOf(row), Input: api.OrNull(s.Params), SnapshotID: trimID(row.VersionID)}
	w.Status, w.CreatedAt, w.FinishedAt = statusIn(s), timeOrNull(s.CreatedAt), timeOrNull(s.EndedAt)
	if w.Status == failed {
		w.Error = textOrNull(s.Error)
		if first := firstFailure(tasks); first != nil {
			w.Error = textOrNull(first.Name + ": " + *first.Error)
		}
	}
	return w
}

// firstFailure returns the task that finally failed first.
func firstFailure(tasks []runTask) (first *runTask) {
	for i := range tasks {
		t := &tasks[i]
		if t.Status == failed && t.Error != nil && (first == nil || t.ended < first.ended) {
			first = t
		}
	}
	return first
}

func (d *dialect) listTasks(w http.ResponseWriter, r *http.Request) error {
	id := d.runID(r)
	h, err := d.Reader.History(r.Context(), id)
	if err != nil {
		return noRun(id, err)
	}
	api.WriteJSON(w, http.StatusOK, map[string][]runTask{"items": tasksOf(h)})
	return nil
}
