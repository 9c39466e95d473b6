package carriers

import (
	"encoding/json"

	"github.com/google/uuid"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/expr"
	"github.com/troupe-engine/troupe/flow/unitid"
)

// Input returns the input of a job. For null input, as in a graph node without prep, it returns the
// params.
func Input(job *flow.Job) json.RawMessage {
	if expr.KindOf(job.Input) != expr.KindNull || len(job.Params) == 0 {
		return job.Input
	}
	return job.Params
}

// NodeOf returns the node of a job; nil if its plan is unknown.
func NodeOf(job *flow.Job) *flow.PlanNode {
	if job.Plan == nil {
		return nil
	}
	scope := job.Plan.ScopeOf(job.Scope)
	if scope == nil {
		return nil
	}
	return scope.Nodes[job.Node]
}

// Upstream returns the outputs of the node's dependencies in a job's input; nil if the node has no
// dependencies.
func Upstream(job *flow.Job) json.RawMessage {
	n := NodeOf(job)
	if n == nil || n.Dag == nil {
		return nil
	}
	b := []byte{'{'}
	for _, seen := range n.Dag.Sees {
		if output, ok := expr.Field(job.Input, seen.Name); ok {
			if len(b) > 1 {
				b = append(b, ',')
			}
			b = append(append(expr.AppendQuote(b, seen.Name), ':'), output...)
		}
	}
	return append(b, '}')
}

// UnitID returns a UUID that identifies the unit of a job. For units that clients of Ork know, it
// is the id in Ork's API.
func UnitID(job *flow.Job) string {
	if n := NodeOf(job); n != nil && n.Dag != nil && job.Scope == "" {
		return unitid.TaskID(job.Task, n.Dag.Index, job.Unit)
	}
	unit := job.Address
	unit.Visit, unit.Attempt = 0, 0
	return uuid.NewSHA1(units, []byte(flow.JobID(job.Task, unit))).String()
}

// units is the UUID namespace for all other units.
var units = uuid.MustParse("6c0b6a52-7a0e-5d7b-8a43-0d5f0e1c2b7f")
