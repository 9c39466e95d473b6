package pocketflowhttp

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/api/printer"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

type graphTask struct {
	ID             string       `json:"id"`
	FlowVersionID  string       `json:"flow_version_id"`
	FlowID         string       `json:"flow_id,omitempty"`
	FlowName       string       `json:"flow_name,omitempty"`
	FlowVersion    int          `json:"flow_version,omitempty"`
	Status         string       `json:"status"`
	Params         printer.Text `json:"params_json"`
	Shared         printer.Text `json:"shared_json"`
	CurrentNodeKey string       `json:"current_node_key"`
	LastAction     string       `json:"last_action"`
	StepCount      int          `json:"step_count"`
	RetryState     string       `json:"retry_state_json"`
	LeaseOwner     string       `json:"lease_owner"`
	LeaseExpiry    int64        `json:"lease_expiry"`
	RequestID      string       `json:"request_id"`
	CreatedAt      int64        `json:"created_at"`
	UpdatedAt      int64        `json:"updated_at"`
}

// graphTaskDetail contains two fields a second time, in the spelling that the command-line client
// reads.
type graphTaskDetail struct {
	graphTask
	SharedAgain printer.Text `json:"SharedJSON"`
	NodeAgain   string       `json:"CurrentNodeKey"`
}

func toGraphTask(v *persistence.View) graphTask {
	t, s := &v.TaskRow, v.State
	shared := printer.Text{Of: sharedOf(s.Root)}
	if !v.Readable() {
		shared = printer.Text{Of: map[string]string{"error": v.Unreadable.Error()}}
	}
	return graphTask{
		ID: t.ID, FlowVersionID: t.VersionID, FlowID: t.FlowID, FlowName: t.FlowName, FlowVersion: t.VersionNumber,
		Status: statusText(s), Params: printer.Text{Of: api.OrObject(t.Params)}, Shared: shared,
		CurrentNodeKey: s.Root.Cursor, LastAction: s.Root.LastAction, StepCount: s.Steps, RetryState: "{}",
		CreatedAt: toSeconds(t.CreatedAt), UpdatedAt: toSeconds(s.UpdatedAt),
	}
}

func (g *graph) createTask(w http.ResponseWriter, r *http.Request) error {
	b, err := api.ReadBody(r)
	if err != nil {
		return err
	}
	params := b.Document("ParamsJSON")
	if params == "" {
		params = "{}"
	}
	if !isObject(params) {
		return badRequest("params_json must be the text of a JSON object")
	}
	if err := engine.CheckStore(g.Engine); err != nil {
		return err
	}
	version, err := g.versionFor(r.Context(), b)
	if err != nil {
		return err
	}
	started, err := g.Engine.StartTask(r.Context(), engine.NewTask{VersionID: version, Params: json.RawMessage(params)})
	if err != nil {
		return err
	}
	return writeID(w, started.Task)
}

func isObject(text string) bool {
	var fields map[string]json.RawMessage
	return json.Unmarshal([]byte(text), &fields) == nil && fields != nil
}

// versionFor returns the version to run: a flow's version by its number, or its newest published
// version. The id of a version is ignored if a flow is named, because the first clients send both.
func (g *graph) versionFor(ctx context.Context, b *api.Body) (string, error) {
	flowID, versionID := b.Text("FlowID"), b.Text("FlowVersionID")
	if flowID == "" && versionID != "" {
		return versionID, nil
	}
	number := b.Number("Version")
	if number < 0 {
		return "", badRequest("version must be 1 or more, or absent for the newest one")
	}
	v, err := g.Store.FindVersion(ctx, flowID, min(number, persistence.MaxVersion))
	if api.Missing(err) {
		return "", notFound("no such flow, or no such published version of it")
	}
	if err != nil {
		return "", err
	}
	return v.ID, nil
}

func (g *graph) getTask(w http.ResponseWriter, r *http.Request) error {
	v, err := g.Reader.View(r.Context(), r.URL.Query().Get("id"))
	if api.Missing(err) {
		return notFound("not found")
	}
	if err != nil {
		return err
	}
	t := toGraphTask(v)
	api.WriteJSON(w, http.StatusOK, graphTaskDetail{t, t.Shared, t.CurrentNodeKey})
	return nil
}

func (g *graph) listTasks(w http.ResponseWriter, r *http.Request) error {
	page, size := parsePaging(r)
	q := r.URL.Query()
	rows, total, err := g.pageOfTasks(r.Context(), q.Get("status"), q.Get("flow_version_id"), (page-1)*size, size)
	if err != nil {
		return err
	}
	list := api.ListWriter{To: w, Begin: `{"data":[`}
	err = g.Reader.Each(r.Context(), idsOf(rows), func(v *persistence.View) error { return list.Add(toGraphTask(v)) })
	return list.End(r, err, fmt.Sprintf(`],"total":%d,"page":%d,"size":%d}`, total, page, size))
}

func idsOf(rows []persistence.TaskRow) []string {
	ids := make([]string, len(rows))
	for i := range rows {
		ids[i] = rows[i].ID
	}
	return ids
}

func (g *graph) sendCommand(r *http.Request, task string, cmd flow.Command) error {
	_, err := g.Engine.Do(r.Context(), engine.Order{Task: task, Command: cmd})
	return err
}

func (g *graph) cancelTask(w http.ResponseWriter, r *http.Request) error {
	if err := g.sendCommand(r, r.URL.Query().Get("id"), flow.Cancel{}); api.Missing(err) {
		return notFound("not found")
	} else if err != nil {
		return err
	}
	return writeOK(w)
}

func (g *graph) signalTask(w http.ResponseWriter, r *http.Request) error {
	b, err := api.ReadBody(r)
	if err != nil {
		return err
	}
	task, key, by := b.Text("task_id"), b.Text("key"), b.Text("by")
	if b.Bad || task == "" || key == "" {
		return badRequest("bad request")
	}
	err = g.sendCommand(r, task, flow.Signal{Key: key, Value: api.OrNull(b.Raw("value")), By: api.Signer(r.Context(), by)})
	if api.Missing(err) {
		return notFound("not found")
	}
	if err != nil {
		return err
	}
	return writeOK(w)
}

// runOnce exists for compatibility of its answers: a task here continues by itself as soon as it
// can.
func (g *graph) runOnce(w http.ResponseWriter, r *http.Request) error {
	v, err := g.Reader.View(r.Context(), r.URL.Query().Get("id"))
	if api.Missing(err) {
		return notFound("not found")
	}
	if err != nil {
		return err
	}
	if v.State.Status.Ended() {
		return &api.Refusal{Status: http.StatusConflict, Kind: flow.Conflict, Text: "the task has ended"}
	}
	return writeOK(w)
}
