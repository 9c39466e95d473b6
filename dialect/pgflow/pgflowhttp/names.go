package pgflowhttp

import (
	"context"
	"net/http"
	"slices"

	"github.com/google/uuid"

	"github.com/troupe-engine/troupe/flow"
)

// runID returns the id of the run in a request's path. Ids chosen by callers are stored in one
// spelling.
func runID(r *http.Request) string {
	text := r.PathValue("run")
	if id, err := uuid.Parse(text); err == nil {
		return id.String()
	}
	return text
}

// locateUnit resolves an address without a scope, in which the slug of a step identifies the step.
// Steps of a subflow are found in the run's history.
func (p *pgflow) locateUnit(ctx context.Context, run string, at flow.Address) (flow.Address, *flow.PlanNode, error) {
	row, err := p.store.Task(ctx, run)
	if err != nil {
		return at, nil, noRun(run, err)
	}
	plan, err := p.reader.Plan(ctx, row.VersionID)
	if err != nil {
		return at, nil, err
	}
	slug := at.Step()
	if n := plan.Root.Nodes[slug]; n != nil {
		return at, n, nil
	}
	h, err := p.reader.History(ctx, run)
	if err != nil {
		return at, nil, noRun(run, err)
	}
	for _, r := range slices.Backward(h.Runs) {
		if r.Kind == flow.RunAttempt && r.Scope != "" && r.Address.Step() == slug {
			return flow.Address{Scope: r.Scope, Node: r.Address.Node, Unit: at.Unit}, r.Node, nil
		}
	}
	return at, nil, flow.Errorf(flow.NotFound, "run %.140q has no step %.140q: GET /runs/%[1]s?view=states lists its steps", run, slug)
}

func noTask(at flow.Address) error {
	return flow.Errorf(flow.NotFound, "step %.140q has no task %d", at.Step(), at.Unit)
}
