package orkhttp

import (
	"context"
	"net/http"
	"slices"

	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/unitid"
)

func (d *dialect) pauseRun(w http.ResponseWriter, r *http.Request) error {
	return d.sendCommand(w, r, flow.Pause{}, paused)
}

func (d *dialect) resumeRun(w http.ResponseWriter, r *http.Request) error {
	return d.sendCommand(w, r, flow.Resume{}, "")
}

// sendCommand sends a command to a run. It succeeds if the run is in the wanted state already.
func (d *dialect) sendCommand(w http.ResponseWriter, r *http.Request, cmd flow.Command, wanted string) error {
	id := d.runID(r)
	_, refused := d.Engine.Do(r.Context(), engine.Order{Task: id, Command: cmd})
	if refused != nil && flow.ErrorKindOf(refused) != flow.Conflict {
		return noRun(id, refused)
	}
	v, err := d.loadView(r.Context(), id)
	if err != nil {
		return err
	}
	if refused != nil && statusIn(v.State) != wanted {
		return refused
	}
	api.WriteJSON(w, http.StatusOK, startedRun{publicRunID(id), statusIn(v.State)})
	return nil
}

// cancelRun cancels a run. Work in flight goes on, unless force is set, which also ends that work.
func (d *dialect) cancelRun(w http.ResponseWriter, r *http.Request) error {
	var q struct {
		Force bool `json:"force"`
	}
	if err := decodeBody(r, &q); err != nil {
		return err
	}
	id := d.runID(r)
	out, err := d.Engine.Do(r.Context(), engine.Order{Task: id, Command: flow.Cancel{Gently: !q.Force}})
	if err != nil {
		return noRun(id, err)
	}
	v, err := d.loadView(r.Context(), id)
	if err != nil {
		return err
	}
	if status := statusIn(v.State); out.Changed == 0 && status != cancelled {
		return flow.Errorf(flow.Conflict, "the run is %s: it cannot be cancelled", status)
	}
	api.WriteJSON(w, http.StatusOK, startedRun{publicRunID(id), statusIn(v.State)})
	return nil
}

// retryRun makes a run continue where it failed. It retries all failed tasks, or a single one with
// the tasks that depend on it.
func (d *dialect) retryRun(w http.ResponseWriter, r *http.Request) error {
	var q struct {
		Task string `json:"task"`
	}
	if err := decodeBody(r, &q); err != nil {
		return err
	}
	id := d.runID(r)
	before, err := d.Reader.History(r.Context(), id)
	if err != nil {
		return noRun(id, err)
	}
	cmd, err := retryOf(before.State, q.Task)
	if err != nil {
		return err
	}
	if _, err := d.Engine.Do(r.Context(), engine.Order{Task: id, Command: cmd}); err != nil {
		return noRun(id, err)
	}
	v, err := d.loadView(r.Context(), id)
	if err != nil {
		return err
	}
	api.WriteJSON(w, http.StatusOK, map[string]any{"run_id": publicRunID(id), "reset": resetSince(before.State, v.State)})
	return nil
}

// resetSince returns the tasks with a changed state. Tasks that a cancel interrupted were shown as
// canceled.
func resetSince(before, after *flow.State) []string {
	reset := []string{}
	for i, n := range after.Root.Plan.Dag.List {
		was, is := &before.Root.Nodes[i], &after.Root.Nodes[i]
		cut := before.Status == flow.TaskCanceled && was.EndedAt == 0
		if cut || was.Status() != is.Status() || was.EndedAt != is.EndedAt {
			reset = append(reset, n.Called())
		}
	}
	return reset
}

func retryOf(s *flow.State, name string) (flow.RetryTask, error) {
	switch {
	case s.Root.Plan.Dag == nil:
		return flow.RetryTask{}, flow.Errorf(flow.Conflict,
			"the run is one of a flow in graph mode: POST /v1/tasks/%s/retry retries it", s.Task)
	case name == "":
		return flow.RetryTask{}, nil
	}
	for _, n := range s.Root.Plan.Dag.List {
		if n.Called() == name {
			return flow.RetryTask{Node: n.Key}, nil
		}
	}
	return flow.RetryTask{}, flow.Errorf(flow.NotFound, "the run has no task %.140q", name)
}

func (d *dialect) pauseTask(w http.ResponseWriter, r *http.Request) error {
	return d.holdTask(w, r, func(a flow.Address) flow.Command { return flow.HoldStep{Address: a} })
}

func (d *dialect) resumeTask(w http.ResponseWriter, r *http.Request) error {
	return d.holdTask(w, r, func(a flow.Address) flow.Command { return flow.ReleaseStep{Address: a} })
}

// holdTask prevents a pending task from starting, or allows the start again.
func (d *dialect) holdTask(w http.ResponseWriter, r *http.Request, command func(flow.Address) flow.Command) error {
	id := r.PathValue("task")
	run, node, unit, err := unitid.ParseTaskID(id)
	if err != nil {
		return err
	}
	run = d.storedRunID(r.Context(), run)
	t, err := d.findTask(r.Context(), id, run, node, unit)
	if err != nil {
		return err
	}
	if _, err := d.Engine.Do(r.Context(), engine.Order{Task: run, Command: command(flow.Address{Node: t.key})}); err != nil {
		return err
	}
	if t, err = d.findTask(r.Context(), id, run, node, unit); err != nil {
		return err
	}
	api.WriteJSON(w, http.StatusOK, map[string]string{"id": t.ID, "run_id": publicRunID(run), "status": t.Status})
	return nil
}

// findTask returns the task of a run with the given id.
func (d *dialect) findTask(ctx context.Context, id, run string, node, unit int) (*runTask, error) {
	none := flow.Errorf(flow.NotFound, "there is no task %.140q: GET /runs/RUN/tasks lists the ids of those of a run", id)
	h, err := d.Reader.History(ctx, run)
	if api.Missing(err) {
		return nil, none
	} else if err != nil {
		return nil, err
	}
	all := tasksOf(h)
	i := slices.IndexFunc(all, func(t runTask) bool { return t.node == node && t.unit == unit })
	if i < 0 {
		return nil, none
	}
	return &all[i], nil
}
