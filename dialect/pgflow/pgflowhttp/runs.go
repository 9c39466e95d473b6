package pgflowhttp

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/google/uuid"

	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// pgStates is a run with the states of its steps.
type pgStates struct {
	Run   pgRun    `json:"run"`
	Steps []pgStep `json:"steps"`
}

func statesOf(s *flow.State) pgStates { return pgStates{toRun(s), toSteps(s)} }

func (p *pgflow) startRun(w http.ResponseWriter, r *http.Request) error {
	var q struct {
		Input json.RawMessage `json:"input"`
		RunID string          `json:"run_id"`
	}
	if err := decodeBody(r, &q); err != nil {
		return err
	}
	if err := engine.CheckStore(p.engine); err != nil {
		return err
	}
	_, v, err := p.newestVersion(r.Context(), r.PathValue("slug"))
	if err != nil {
		return err
	}
	if q.RunID == "" {
		q.RunID = uuid.Must(uuid.NewV7()).String()
	}
	var input bytes.Buffer
	if len(q.Input) > 0 && string(q.Input) != "null" { // null counts as absent
		if err := json.Compact(&input, q.Input); err != nil {
			return flow.Errorf(flow.Invalid, "input: %v", err)
		}
	}
	started, err := p.engine.StartTask(r.Context(), engine.NewTask{VersionID: v.ID, Newest: true, ID: q.RunID, Params: input.Bytes()})
	if err != nil {
		return err
	}
	return p.writeStates(w, r, started.Task)
}

// newestVersion finds a flow and its newest published version.
func (p *pgflow) newestVersion(ctx context.Context, slug string) (*persistence.Flow, *persistence.Version, error) {
	f, err := p.store.FlowBySlug(ctx, slug)
	if api.Missing(err) {
		return nil, nil, flow.Errorf(flow.NotFound, "there is no flow %.140q", slug)
	}
	if err != nil {
		return nil, nil, err
	}
	v, err := p.store.FindVersion(ctx, f.ID, 0)
	if api.Missing(err) {
		return nil, nil, flow.Errorf(flow.NotFound, "flow %.140q has no published version", slug)
	}
	return f, v, err
}

func noRun(id string, err error) error {
	if api.Missing(err) {
		return flow.Errorf(flow.NotFound, "there is no run %.140q", id)
	}
	return err
}

func (p *pgflow) writeStates(w http.ResponseWriter, r *http.Request, run string) error {
	v, err := p.reader.View(r.Context(), run)
	if err != nil {
		return noRun(run, err)
	}
	api.WriteJSON(w, http.StatusOK, statesOf(v.State))
	return nil
}

// getRun answers with a run. It includes the tasks of each step only with ?tasks=true, because that
// reads the whole journal.
func (p *pgflow) getRun(w http.ResponseWriter, r *http.Request) error {
	run := runID(r)
	if tasks, _ := strconv.ParseBool(r.URL.Query().Get("tasks")); !tasks {
		return p.writeStates(w, r, run)
	}
	h, err := p.reader.History(r.Context(), run)
	if err != nil {
		return noRun(run, err)
	}
	answer := statesOf(h.State)
	for i, tasks := range tasksOf(h) {
		answer.Steps[i].Tasks = tasks
	}
	api.WriteJSON(w, http.StatusOK, answer)
	return nil
}

func (p *pgflow) pauseRun(w http.ResponseWriter, r *http.Request) error {
	return p.sendCommand(w, r, flow.Pause{}, func(s *flow.State) bool { return s.Paused() })
}

func (p *pgflow) resumeRun(w http.ResponseWriter, r *http.Request) error {
	return p.sendCommand(w, r, flow.Resume{}, func(s *flow.State) bool { return !s.Paused() })
}

// cancelRun cancels a run. Work in flight goes on.
func (p *pgflow) cancelRun(w http.ResponseWriter, r *http.Request) error {
	run := runID(r)
	out, err := p.engine.Do(r.Context(), engine.Order{Task: run, Command: flow.Cancel{Gently: true}})
	if err != nil {
		return noRun(run, err)
	}
	v, err := p.reader.View(r.Context(), run)
	if err != nil {
		return noRun(run, err)
	}
	if status := shownAs(v.State); out.Changed == 0 && status != pgCancelled {
		return flow.Errorf(flow.Conflict, "the run is %s: it cannot be cancelled", status)
	}
	api.WriteJSON(w, http.StatusOK, statesOf(v.State))
	return nil
}

// sendCommand sends a command to a run. It also succeeds if the run is already in the wanted state
// and has not ended.
func (p *pgflow) sendCommand(w http.ResponseWriter, r *http.Request, cmd flow.Command, is func(*flow.State) bool) error {
	run := runID(r)
	_, refused := p.engine.Do(r.Context(), engine.Order{Task: run, Command: cmd})
	if refused != nil && flow.ErrorKindOf(refused) != flow.Conflict {
		return noRun(run, refused)
	}
	v, err := p.reader.View(r.Context(), run)
	if err != nil {
		return noRun(run, err)
	}
	if status := shownAs(v.State); refused != nil && (v.State.Status.Ended() || status == pgCancelled || !is(v.State)) {
		return refused
	}
	api.WriteJSON(w, http.StatusOK, statesOf(v.State))
	return nil
}
