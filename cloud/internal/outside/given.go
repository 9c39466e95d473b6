package outside

import (
	"context"
	"encoding/json"

	"github.com/troupe-engine/troupe"
	"github.com/troupe-engine/troupe/carriers/programs"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/expr"
	"github.com/troupe-engine/troupe/internal/program"
)

const (
	// JobVariable is the variable with the id of our job.
	JobVariable  = "TROUPE_JOB"
	specVariable = "TASK_SPEC_PATH"
)

// Place describes a cloud service, as far as the variables of jobs depend on it.
type Place struct {
	Name  string // its name in messages
	Most  int    // largest size of a variable in bytes
	Tools troupe.ServiceTools
}

// Files identifies the files of an attempt for their tracker.
type Files struct {
	ID   string          `json:"id"`
	Data json.RawMessage `json:"data"`
}

// Of returns the external work of the files.
func (f *Files) Of(x flow.External) flow.External {
	x.Service, x.ID, x.Data, x.Memo = flow.ObjectStore, f.ID, f.Data, nil
	return x
}

// Variables returns the environment variables of a job. With an object store it also writes the
// specification of the job there, and returns its files. Without one, files is nil, and an input
// too large for a variable is an error. An error that has an ErrorKind is permanent, so retries do
// not help.
func (p *Place) Variables(ctx context.Context, job *flow.Job,
	env map[string]json.RawMessage) (vars map[string]string, files *Files, err error) {
	of := program.Job{Type: job.Exec.Type, Program: &flow.Program{}, Facts: programs.Facts(job)}
	input := program.Input(job.Input)
	vars = of.Variables(input, "")
	delete(vars, "ORK_INPUT_FILE") // there is no such file
	for _, name := range []string{"ORK_INPUT_JSON", "ORK_ITEM_JSON"} {
		if len(vars[name]) > p.Most {
			delete(vars, name)
		}
	}
	if err := p.addVariables(vars, env); err != nil {
		return nil, nil, err
	}
	vars[JobVariable] = job.ID()
	switch _, whole := vars["ORK_INPUT_JSON"]; {
	case p.Tools.Files.Given():
		address, x, err := p.Tools.Files.Dispatch(ctx, job)
		if err != nil {
			return nil, nil, err
		}
		vars[specVariable], files = address, &Files{x.ID, x.Data}
	case !whole:
		return nil, nil, flow.Errorf(flow.Limit,
			"the input has %d bytes, and a variable of %s at most %d: it needs an object store "+
				"(--object-store), where the job finds it", len(input), p.Name, p.Most)
	}
	return vars, files, nil
}

// addVariables adds the variables set by a node: strings, numbers and booleans.
func (p *Place) addVariables(vars map[string]string, env map[string]json.RawMessage) error {
	for name, v := range env {
		text, isText := expr.String(v)
		if !isText {
			text = string(v)
		}
		if len(text) > p.Most {
			return flow.Errorf(flow.Limit, "the variable %.100q has %d bytes, and one of %s at most %d", name, len(text), p.Name, p.Most)
		}
		vars[name] = text
	}
	return nil
}

// Seconds returns the timeout of a job; 0 if the node has none.
func Seconds(job *flow.Job) int64 {
	if isPatient(job) {
		return 0
	}
	return (job.TimeoutMS + 999) / 1000
}

// isPatient reports whether the timeout of a node stops while it waits.
func isPatient(job *flow.Job) bool {
	if job.Plan == nil {
		return false
	}
	scope := job.Plan.ScopeOf(job.Scope)
	return scope != nil && scope.Nodes[job.Node] != nil && scope.Nodes[job.Node].Patient
}
