package compile

import (
	"cmp"

	"github.com/troupe-engine/troupe/definition"
	"github.com/troupe-engine/troupe/flow"
)

// lowerCode returns the scope of a function. The only node of the scope calls the function.
func lowerCode(d *definition.Definition) *flow.PlanScope {
	main := &flow.PlanNode{Key: flow.CodeMain, Kind: flow.KindExecutor, Single: true,
		Exec: flow.Exec{Type: flow.ExecCode, Service: flow.FunctionService(d.Code), Func: d.Code},
		Post: flow.Post{OutputKey: flow.CodeResult}}
	return &flow.PlanScope{Code: true, Start: main.Key, Result: flow.CodeResult,
		Nodes: map[string]*flow.PlanNode{main.Key: main}}
}

// checkCode checks a flow of code mode.
func checkCode(c *checker, d *definition.Definition, at *definition.Place) {
	if d.Code == "" {
		c.Errorf(at.Key("code"), "is missing: write the name of the function that is the flow")
	} else if err := flow.CheckName("the name of the function", d.Code); err != nil {
		c.Errorf(at.Key("code"), "%v", err)
	}
	if len(d.Nodes) > 0 {
		c.Errorf(at.Key("nodes"), "a flow of code mode has no nodes: its steps are those that its function asks for")
	}
	if p := cmp.Or(d.Profile, definition.ProfileTroupe); p != definition.ProfileTroupe {
		c.Errorf(at.Key("profile"), "%s is no profile of a function: leave it out", p)
	}
}
