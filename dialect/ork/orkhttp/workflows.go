package orkhttp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/dialect/ork"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/expr"
	"github.com/troupe-engine/troupe/persistence"
)

// workflowItem is an entry of the list of workflows.
type workflowItem struct {
	ID          string  `json:"id"`
	Name        string  `json:"name"`
	Description *string `json:"description"`
	Executor    string  `json:"executor"`
	Project     string  `json:"project"`
	Region      string  `json:"region"`
	workflowSchedule
}

// workflowDetails is a workflow with its tasks.
type workflowDetails struct {
	workflowItem
	SnapshotID string   `json:"snapshot_id"`
	Version    int      `json:"version"`
	Tasks      []taskOf `json:"tasks"`
}

// taskOf is a task of a workflow.
type taskOf struct {
	Name      string   `json:"name"`
	DependsOn []string `json:"depends_on"`
	Executor  string   `json:"executor"`
}

// here is the value for project and region, which servers of Troupe do not have.
const here = "local"

func (d *dialect) listWorkflows(w http.ResponseWriter, r *http.Request) error {
	limit, offset, err := parsePaging(r, 100)
	if err != nil {
		return err
	}
	all, _, err := d.Store.ListFlows(r.Context(), 0, 0)
	if err != nil {
		return err
	}
	search := strings.ToLower(r.URL.Query().Get("search"))
	all = slices.DeleteFunc(all, func(f persistence.Flow) bool {
		return f.Slug == "" || !strings.Contains(strings.ToLower(f.Slug), search)
	})
	slices.SortFunc(all, func(a, b persistence.Flow) int { return strings.Compare(a.Slug, b.Slug) })
	total := len(all)
	all = all[min(offset, total):]
	all = all[:min(limit, len(all))]
	items := []workflowItem{}
	for i := range all {
		item, _, err := d.describeWorkflow(r.Context(), &all[i])
		if err != nil && !api.Missing(err) { // a workflow without a version has no details
			return err
		}
		items = append(items, item.workflowItem)
	}
	api.WriteJSON(w, http.StatusOK, pageOf(items, total, limit, offset))
	return nil
}

// describeWorkflow returns the details of a flow's newest version.
func (d *dialect) describeWorkflow(ctx context.Context, f *persistence.Flow) (*workflowDetails, *persistence.Version, error) {
	s := &workflowDetails{workflowItem: workflowItem{ID: trimID(f.ID), Name: f.Slug, Description: textOrNull(f.Description),
		Executor: "dag", Project: here, Region: here}, Tasks: []taskOf{}}
	fires, err := d.scheduleOf(ctx, f)
	if err != nil {
		return s, nil, err
	}
	s.workflowSchedule = timedBy(fires)
	v, err := d.Store.FindVersion(ctx, f.ID, 0)
	if err != nil {
		return s, nil, err
	}
	plan, err := d.Reader.Plan(ctx, v.ID)
	if err != nil {
		return s, nil, err
	}
	s.SnapshotID, s.Version, s.Tasks = trimID(v.ID), v.Number, tasksIn(plan)
	if n := replicatedNode(plan); n != nil {
		s.Executor = executorOf(n)
	}
	return s, v, nil
}

// replicatedNode returns the only node of a replicated workflow. It returns nil for other
// workflows.
func replicatedNode(p *flow.Plan) *flow.PlanNode {
	if p.Profile != flow.ProfileOrk || p.Root.Dag == nil || len(p.Root.Dag.List) != 1 {
		return nil
	}
	n := p.Root.Dag.List[0]
	if n.Key == ork.Replicated && n.Kind == flow.KindFanout && n.Dag.Repeats > 0 && n.TimeoutMS == 0 && jobOf(n) != "" {
		return n
	}
	return nil
}

// jobOf returns the job name of a replicated workflow. Its tasks have the job name as an
// environment variable.
func jobOf(n *flow.PlanNode) string {
	if p := n.Exec.Program; p != nil {
		return p.Env["job_name"]
	}
	exec, _ := expr.Field(n.Params, flow.ProgramParam)
	env, _ := expr.Field(exec, "env")
	raw, _ := expr.Field(env, "job_name")
	job, _ := expr.String(raw)
	return job
}

// tasksIn returns the tasks of a plan. Tasks of a plan in graph mode have no meaningful order, so
// they are omitted.
func tasksIn(p *flow.Plan) []taskOf {
	list := []taskOf{}
	if p.Root.Dag == nil {
		return list
	}
	if n := replicatedNode(p); n != nil {
		for i := range n.Dag.Repeats {
			list = append(list, taskOf{n.Key + "_" + strconv.Itoa(i), []string{}, executorOf(n)})
		}
		return list
	}
	for _, n := range p.Root.Dag.List {
		if n.Dag.For < 0 {
			list = append(list, taskOf{n.Called(), dependsOn(p.Root, n), executorOf(n)})
		}
	}
	return list
}

// dependsOn returns the tasks that a node waits for.
func dependsOn(sc *flow.PlanScope, n *flow.PlanNode) []string {
	names := []string{}
	for _, dep := range n.Dag.Deps {
		names = append(names, sc.Dag.List[dep].Called())
	}
	return names
}

// executorOf returns Ork's name for the executor of a node.
func executorOf(n *flow.PlanNode) string {
	switch n.Exec.Type {
	case flow.ExecProcess, flow.ExecPython, flow.ExecLibrary, flow.ExecWorker, flow.ExecContainer:
		return string(n.Exec.Type)
	case "":
		return string(n.Kind)
	}
	return cmp.Or(n.Exec.Service, n.Exec.Func, string(n.Exec.Type))
}

func (d *dialect) getWorkflow(w http.ResponseWriter, r *http.Request) error {
	f, err := d.findFlow(r.Context(), r.PathValue("name"))
	if err != nil {
		return err
	}
	s, _, err := d.describeWorkflow(r.Context(), f)
	if err != nil {
		return err
	}
	api.WriteJSON(w, http.StatusOK, s)
	return nil
}

func (d *dialect) findFlow(ctx context.Context, name string) (*persistence.Flow, error) {
	f, err := d.Store.FlowBySlug(ctx, name)
	if api.Missing(err) {
		return nil, flow.Errorf(flow.NotFound, "there is no workflow %.140q", name)
	}
	return f, err
}

// deleteWorkflow deletes a workflow with its runs. It refuses if a run is running, unless the
// caller forces the deletion.
func (d *dialect) deleteWorkflow(w http.ResponseWriter, r *http.Request) error {
	f, err := d.findFlow(r.Context(), r.PathValue("name"))
	if err != nil {
		return err
	}
	if force, _ := strconv.ParseBool(r.URL.Query().Get("force")); !force {
		active, err := d.Store.CountTasks(r.Context(), persistence.TaskFilter{FlowID: f.ID, Statuses: api.Unfinished})
		if err != nil {
			return err
		}
		if active > 0 {
			return flow.Errorf(flow.Conflict, "%d runs of the workflow are active: wait for "+
				"them, cancel them, or delete it with ?force=true", active)
		}
	}
	if _, err := api.DeleteFlow(r.Context(), d.Engine, d.Store, f.ID); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// registration is a request to register a workflow: {yaml, root, replace, strict}, or the workflow
// itself.
type registration struct {
	YAML    string `json:"yaml"`
	Project string `json:"project"`
	Region  string `json:"region"`
	Root    string `json:"root"`
	Replace *bool  `json:"replace"`
	// Strict rejects a workflow that has warnings: true or false.
	Strict json.RawMessage `json:"strict"`
	text   []byte
}

func readPublication(r *http.Request) (*registration, error) {
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	p := &registration{text: text}
	if !bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")) {
		return p, nil
	}
	var fields map[string]json.RawMessage
	if err := decodeText(text, &fields); err != nil {
		return nil, err
	}
	if err := decodeText(text, p); err != nil {
		return nil, err
	}
	p.text = []byte(p.YAML)
	if fields["yaml"] == nil {
		p.text = withoutFields(text, "root", "replace", "strict")
	}
	return p, nil
}

// withoutFields returns a JSON object without some of its fields.
func withoutFields(text []byte, fields ...string) []byte {
	members, _ := expr.Members(text)
	b := []byte{'{'}
	for _, m := range members {
		if slices.Contains(fields, m.Key) {
			continue
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(append(append(b, expr.Quote(m.Key)...), ':'), m.Value...)
	}
	return append(b, '}')
}

// registerResult is the result of registering a workflow.
type registerResult struct {
	Name       string                   `json:"name"`
	ID         string                   `json:"id"`
	SnapshotID string                   `json:"snapshot_id"`
	Version    int                      `json:"version"`
	Outcome    string                   `json:"outcome"` // created, replaced or unchanged
	Warnings   []wire.DefinitionProblem `json:"warnings,omitempty"`
}

func (d *dialect) createWorkflow(w http.ResponseWriter, r *http.Request) error {
	p, err := readPublication(r)
	if err != nil {
		return err
	}
	strict, err := api.IsStrict(r, p.Strict)
	if err != nil {
		return err
	}
	root, err := d.rootOf(p.Root)
	if err != nil {
		return err
	}
	answer, err := d.registerWorkflow(r.Context(), p, root, strict)
	if err != nil {
		return err
	}
	api.WriteJSON(w, http.StatusOK, answer)
	return nil
}
