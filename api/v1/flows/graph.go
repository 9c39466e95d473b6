package flows

import (
	"context"

	"github.com/troupe-engine/troupe/api/v1/catalog"
	"github.com/troupe-engine/troupe/api/v1/route"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/definition"
	"github.com/troupe-engine/troupe/definition/show"
	"github.com/troupe-engine/troupe/flow"
)

func (h *Handler) getGraph(ctx context.Context, in *versionInput) (*route.Response[wire.Graph], error) {
	f, v, err := in.findVersion(ctx, h.Catalog)
	if err != nil {
		return nil, err
	}
	plan, err := h.Reader.Plan(ctx, v.ID)
	if err != nil {
		return nil, err
	}
	graph := toGraph(plan, nil) // without the stored definition, which is not the author's text
	graph.Flow, graph.Version = catalog.NameOf(f), v.Number
	return &route.Response[wire.Graph]{Body: *graph}, nil
}

func toGraph(p *flow.Plan, spots map[string]definition.Spot) *wire.Graph {
	drawn := show.GraphOf(p)
	g := &wire.Graph{Mode: string(drawn.Mode), Scopes: make([]wire.GraphScope, len(drawn.Scopes)),
		Nodes: make([]wire.GraphNode, len(drawn.Nodes)), Edges: make([]wire.GraphEdge, len(drawn.Edges))}
	for i, sc := range drawn.Scopes {
		g.Scopes[i] = wire.GraphScope{Scope: sc.Path, Mode: string(sc.Mode), Start: sc.Start, FirstNode: sc.First, NodeCount: sc.Nodes}
		if sc.Node >= 0 {
			g.Scopes[i].Node = &sc.Node
		}
	}
	for i := range drawn.Nodes {
		g.Nodes[i] = toGraphNode(&drawn.Nodes[i], spots)
	}
	for i, e := range drawn.Edges {
		g.Edges[i] = wire.GraphEdge{From: e.From, To: e.To, Kind: e.Kind, Action: e.Action, When: e.When, Always: e.Always}
	}
	return g
}

func toGraphNode(n *show.GraphNode, spots map[string]definition.Spot) wire.GraphNode {
	at := spots[n.Origin()]
	return wire.GraphNode{Key: n.Key, Scope: n.Scope, Name: n.Name, Kind: string(n.Kind),
		Handler: n.Handler, Route: n.Route, Service: n.Service, GeneratedFor: n.For, Generated: n.Ghost(),
		Each: n.Items, Window: n.Window, Retry: n.Tries, TimeoutMS: n.TimeoutMS, When: n.When,
		Compensate: n.Compensate, Keys: n.Keys, InnerScope: n.Inside,
		Line: at.Line, Column: at.Column}
}
