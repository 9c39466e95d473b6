package pocketflowhttp

import (
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/api/printer"
	"github.com/troupe-engine/troupe/flow"
)

type graphRun struct {
	ID         string       `json:"id"`
	TaskID     string       `json:"task_id"`
	NodeKey    string       `json:"node_key"`
	AttemptNo  int          `json:"attempt_no"`
	Status     string       `json:"status"`
	SubStatus  string       `json:"sub_status"`
	BranchID   string       `json:"branch_id"`
	Prep       printer.Text `json:"prep_json"`
	ExecInput  printer.Text `json:"exec_input_json"`
	ExecOutput printer.Text `json:"exec_output_json"`
	ErrorText  string       `json:"error_text"`
	Action     string       `json:"action"`
	StartedAt  int64        `json:"started_at"`
	FinishedAt int64        `json:"finished_at"`
	WorkerID   string       `json:"worker_id"`
	WorkerURL  string       `json:"worker_url"`
	LogPath    string       `json:"log_path"`
}

func (g *graph) listRuns(w http.ResponseWriter, r *http.Request) error {
	task := r.URL.Query().Get("task_id")
	v, err := g.Reader.View(r.Context(), task)
	if api.Missing(err) {
		api.WriteJSON(w, http.StatusOK, []graphRun{})
		return nil
	}
	if err != nil {
		return err
	}
	page, err := g.Reader.Runs(r.Context(), task, flow.Place{}, runsAtOnce, runsBytes)
	if err != nil && !api.Missing(err) {
		return err
	}
	err = nil
	list := api.ListWriter{To: w, Begin: "["}
	for page != nil && err == nil {
		for i := 0; i < len(page.Runs) && err == nil; i++ {
			err = list.Add(toGraphRun(task, controlParams(v.State), &page.Runs[i]))
		}
		if !page.More || err != nil {
			break
		}
		page, err = g.Reader.Runs(r.Context(), task, page.Next, runsAtOnce, runsBytes)
	}
	return list.End(r, err, "]")
}

// This dialect has no pages: all runs of a task are one answer, which is read in parts.
const (
	runsAtOnce = 2000
	runsBytes  = 4 << 20
)

// controlParams returns the params of a task that control the waits of its nodes. Only the
// pocketflow profile has such params.
func controlParams(s *flow.State) json.RawMessage {
	if s.Plan.Root.Pocketflow {
		return s.Params
	}
	return nil
}

func toGraphRun(task string, params json.RawMessage, n *flow.NodeRun) graphRun {
	id := api.RunPrefix + flow.JobID(task, n.Address)
	node, child := displayPlace(n.Address)
	r := graphRun{
		ID: id, TaskID: task, NodeKey: node, AttemptNo: n.Attempt, Status: runStatus(n), SubStatus: subStatus(n),
		BranchID: joinPath(child, n.Branch), Prep: printer.Text{Of: prepOf(n, params)},
		ExecInput:  printer.Text{Of: api.OrNull(n.Input)},
		ExecOutput: printer.Text{Of: api.OrNull(n.Output)}, ErrorText: plainError(n.Error), Action: n.Action,
		StartedAt: toSeconds(n.StartedAt), FinishedAt: toSeconds(n.EndedAt), WorkerID: n.Worker, WorkerURL: n.URL,
	}
	if n.Kind == flow.RunAttempt && child == "" {
		r.Action = "" // for an executor node, only the task shows the action
	}
	if n.Queue {
		r.WorkerID, r.WorkerURL = "queue", "queue"
	}
	if n.Log {
		r.LogPath = "tasks/" + task + "/" + id + ".log"
	}
	return r
}

// displayPlace returns the place at which this dialect shows an address: the node in the task's own
// graph, and the path of children below it.
func displayPlace(a flow.Address) (node, child string) {
	node = a.Node
	for parent, ok := flow.ParentOf(a.Scope); ok; parent, ok = flow.ParentOf(parent.Scope) {
		child = joinPath(node, child)
		node = parent.Node
	}
	return node, child
}

func joinPath(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "/" + b
}

// runStatus returns an attempt's status in this dialect. The worker's own name for the state has
// priority.
func runStatus(n *flow.NodeRun) string {
	switch n.Status {
	case flow.AttemptTimeout:
		return "error"
	case flow.AttemptRunning:
		if n.Queue && n.Note != "" {
			return n.Note
		}
		if n.Queue {
			return "queued"
		}
	}
	return string(n.Status)
}

func subStatus(n *flow.NodeRun) string {
	if n.Kind != flow.RunAttempt || n.EndedAt == 0 || n.Node == nil {
		return ""
	}
	switch {
	case n.Node.Kind == flow.KindParallel:
		return "branch_complete"
	case n.Node.Kind == flow.KindForeach:
		return "item_complete"
	case n.Scope != "":
		return "sub_node_complete"
	}
	return ""
}

// prepOf returns the node's settings for its input or its wait.
func prepOf(n *flow.NodeRun, params json.RawMessage) json.RawMessage {
	prep := map[string]any{}
	if n.Node == nil || n.Kind == flow.RunCancel {
		return encodeValue(prep)
	}
	switch n.Node.Kind {
	case flow.KindTimer:
		prep["delay_ms"] = orZero(paramOf(n, params, "delay_ms"))
	case flow.KindWaitEvent:
		prep["signal_key"] = api.OrNull(paramOf(n, params, "signal_key"))
	case flow.KindApproval:
		prep["approval_key"] = api.OrNull(paramOf(n, params, "approval_key"))
	case flow.KindForeach:
		if n.Kind == flow.RunAttempt {
			prep["branch"] = json.RawMessage(strconv.Itoa(n.Unit))
			break
		}
		prep["input_key"] = n.Node.Prep.Key
	default:
		prep["input_key"] = n.Node.Prep.Key
		if n.Node.Kind == flow.KindParallel && n.Kind == flow.RunAttempt {
			prep["branch"] = n.Branch
		}
	}
	if n.Scope != "" {
		prep["sub"] = n.Address.Node
	}
	return encodeValue(prep)
}

// paramOf returns the parameter that the step used. At the root, a controlling param of the task
// has priority; in a subflow, the param of the node.
func paramOf(n *flow.NodeRun, task json.RawMessage, name string) json.RawMessage {
	first, second := task, n.Node.Params
	if n.Scope != "" {
		first, second = second, first
	}
	if v, ok := fieldOf(first, name); ok {
		return v
	}
	v, _ := fieldOf(second, name)
	return v
}

func fieldOf(object json.RawMessage, name string) (json.RawMessage, bool) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(object, &fields) != nil {
		return nil, false
	}
	v, ok := fields[name]
	return v, ok
}

func orZero(v json.RawMessage) json.RawMessage {
	if len(v) == 0 {
		return json.RawMessage("0")
	}
	return v
}

// getLog returns the stored log of an attempt. It never opens a file, even if a worker has named a
// file.
func (g *graph) getLog(w http.ResponseWriter, r *http.Request) error {
	id := r.URL.Query().Get("run_id")
	if id == "" {
		return badRequest("missing run_id")
	}
	run, err := g.findRun(r, id)
	if err != nil {
		return err
	}
	if !run.Log {
		return notFound("no log path")
	}
	job, task, _, err := api.JobOf(id, api.RunPrefix)
	if err != nil {
		return err
	}
	content, err := api.LogText(r.Context(), g.Store, task, job)
	if err != nil {
		return err
	}
	if content == "" {
		return notFound("log file not found")
	}
	api.WriteJSON(w, http.StatusOK, map[string]string{"content": content})
	return nil
}

func (g *graph) findRun(r *http.Request, id string) (*flow.NodeRun, error) {
	_, task, a, err := api.JobOf(id, api.RunPrefix)
	if err != nil {
		return nil, notFound("run not found")
	}
	run, err := g.Reader.Run(r.Context(), task, a)
	if api.Missing(err) {
		return nil, notFound("run not found")
	}
	return run, err
}
