package carry

import (
	"encoding/json"

	"github.com/google/uuid"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/expr"
	"github.com/troupe-engine/troupe/flow/ork"
)

// Input is that of the node, or where that is null, as it is of a graph's node without prep, its
// params.
func Input(job *flow.Job) json.RawMessage {
	if expr.KindOf(job.Input) != expr.KindNull || len(job.Params) == 0 {
		return job.Input
	}
	return job.Params
}

// NodeOf is the node of a job; nil when its plan is not known.
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

// Upstream is what a job's input has of its node's dependencies; nil when it can have none.
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

// UnitID is a UUID that tells the unit of a job from all others: the one by which clients of Ork
// know it, where they do.
func UnitID(job *flow.Job) string {
	if n := NodeOf(job); n != nil && n.Dag != nil && job.Scope == "" {
		return ork.TaskID(job.Task, n.Dag.Index, job.Unit)
	}
	unit := job.Address
	unit.Visit, unit.Attempt = 0, 0
	return uuid.NewSHA1(units, []byte(flow.JobID(job.Task, unit))).String()
}

// units is the name space of those that clients of Ork do not know.
var units = uuid.MustParse("6c0b6a52-7a0e-5d7b-8a43-0d5f0e1c2b7f")
