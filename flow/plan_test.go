package flow

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow/expr"
)

// planOf compiles a definition written as YAML or JSON.
func planOf(t require.TestingT, text string) *Plan {
	if h, ok := t.(*testing.T); ok {
		h.Helper()
	}
	raw, err := yaml.YAMLToJSON([]byte(text))
	require.NoError(t, err)
	var d Definition
	require.NoError(t, json.Unmarshal(raw, &d))
	return &Plan{Root: graphOf(d.Start, d.Nodes, d.Edges, false, d.OnError), TimeoutMS: d.TimeoutMS, Result: d.Result}
}

func graphOf(start string, nodes map[string]*Node, edges []Edge, flat bool, onError string) *Graph {
	g := &Graph{Start: start, Nodes: map[string]*PlanNode{}, Flat: flat}
	for key, n := range nodes {
		g.Nodes[key] = nodeOf(key, n, onError)
		g.Nodes[key].Edges = map[string]string{}
	}
	for _, e := range edges {
		if e.To != "" {
			g.Nodes[e.From].Edges[e.Action] = e.To
		}
	}
	return g
}

func nodeOf(key string, n *Node, onError string) *PlanNode {
	p := &PlanNode{Key: key, Kind: Kind(n.Kind), Params: n.Params, Post: n.Post, TimeoutMS: n.TimeoutMS,
		EndOnFail: n.OnError == "fail" || onError == "fail", Strategy: Strategy(n.FailureStrategy), Default: n.DefaultAction,
		Exec:  execOf(Exec{Type: ExecHTTP}, ExecSpec{Service: n.Service, ExecType: n.ExecType, Func: n.Func}),
		Retry: Retry{Max: n.MaxRetries, WaitMS: n.WaitMS}}
	if p.Kind == "" {
		p.Kind = KindExecutor
	}
	p.Prep.Key = n.Prep.InputKey
	p.Prep.HasMap = n.Prep.InputMap != nil
	for k, v := range n.Prep.InputMap {
		p.Prep.Map = append(p.Prep.Map, PrepEntry{k, v, expr.ParseRef(v)})
	}
	slices.SortFunc(p.Prep.Map, func(a, b PrepEntry) int {
		if a.Key < b.Key {
			return -1
		}
		return 1
	})
	for _, c := range n.ChoiceCases {
		cond, _ := expr.ParseCond(c.Expr)
		p.Cases = append(p.Cases, PlanCase{c.Action, cond})
	}
	switch p.Kind {
	case KindSubflow:
		if p.Strategy == StrategyRetry {
			p.Retry.Max = max(n.MaxRetries-1, 0)
		}
		if n.Subflow.Start != "" {
			p.Sub = graphOf(n.Subflow.Start, n.Subflow.Nodes, n.Subflow.Edges, true, "")
		}
	case KindParallel, KindForeach:
		p.Each = eachOf(p, n)
	}
	return p
}

func eachOf(p *PlanNode, n *Node) *Each {
	e := &Each{Window: 1, Items: map[int]Exec{}}
	if n.ParallelMode == "concurrent" {
		e.Window = n.MaxParallel
	}
	for _, s := range n.ParallelServices {
		e.Branches = append(e.Branches, Branch{s, execOf(p.Exec, ExecSpec{Service: s})})
	}
	for i, s := range n.ParallelExecs {
		if i == 0 {
			e.Branches = nil
		}
		e.Branches = append(e.Branches, Branch{s.Service, execOf(p.Exec, s)})
	}
	for _, s := range n.ForeachExecs {
		s.Service = ""
		e.Items[s.Index] = execOf(p.Exec, s)
	}
	return e
}

func execOf(x Exec, s ExecSpec) Exec {
	if s.Service != "" {
		x.Service = s.Service
	}
	if s.ExecType != "" {
		x.Type = ExecType(s.ExecType)
	}
	if s.Func != "" {
		x.Func = s.Func
	}
	if s.Params != nil {
		x.Params = s.Params
	}
	return x
}
