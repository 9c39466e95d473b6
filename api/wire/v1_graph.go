package wire

// Graph is a version in a form for drawing: all nodes in one list, grouped by scope and in the
// order of digests.
type Graph struct {
	Flow    string       `json:"flow,omitempty" doc:"Slug of the flow, or its ID; absent for a definition that is not published."`
	Version int          `json:"version,omitempty" doc:"Number of the version."`
	Mode    string       `json:"mode" enum:"graph,dag,code" doc:"Mode of the flow."`
	Scopes  []GraphScope `json:"scopes" doc:"Scopes, starting with the task's root; never null."`
	Nodes   []GraphNode  `json:"nodes" doc:"Nodes of all scopes; never null."`
	Edges   []GraphEdge  `json:"edges" doc:"Edges of all scopes; never null."`
}

// GraphScope is a scope of a Graph.
type GraphScope struct {
	Scope     string `json:"scope" doc:"Path as in a task but without visits: order/ship; empty for the root, ~ for the scope of compensations and clean-up."`
	Mode      string `json:"mode" enum:"graph,dag,code" doc:"Mode of the scope."`
	Start     string `json:"start,omitempty" doc:"Key of the first node, in graph mode."`
	Node      *int   `json:"node,omitempty" doc:"Index of the node that contains the scope."`
	FirstNode int    `json:"first_node" doc:"Index of its first node."`
	NodeCount int    `json:"node_count" doc:"Number of its nodes."`
}

// GraphNode is a node of a Graph.
type GraphNode struct {
	Key          string   `json:"key" doc:"Key of the node."`
	Scope        string   `json:"scope,omitempty" doc:"Path of its scope; absent for the root."`
	Name         string   `json:"name,omitempty" doc:"Display name, if it differs from the key."`
	Kind         string   `json:"kind" example:"executor" doc:"Kind of the node."`
	Handler      string   `json:"handler,omitempty" doc:"Carrier of its jobs." example:"queue:paint"`
	Route        string   `json:"route,omitempty" enum:"push,queue,direct" doc:"Route of its jobs."`
	Service      string   `json:"service,omitempty" doc:"Service of its jobs."`
	GeneratedFor string   `json:"generated_for,omitempty" doc:"Key of the node for which the compiler generated it."`
	Generated    bool     `json:"generated,omitempty" doc:"True if the compiler generated it."`
	Each         string   `json:"each,omitempty" doc:"Expression with the items of a fanout."`
	Window       int      `json:"concurrency,omitempty" doc:"Maximum number of units in flight, if limited."`
	Retry        string   `json:"retry,omitempty" example:"3 attempts, 1s apart" doc:"Retry policy as text."`
	TimeoutMS    int64    `json:"timeout_ms,omitempty" doc:"Time limit of an attempt in milliseconds."`
	When         string   `json:"when,omitempty" doc:"Condition of the node."`
	Compensate   string   `json:"compensate,omitempty" doc:"Key of the node that compensates it."`
	Keys         []string `json:"keys,omitempty" doc:"Keys of the permits that its attempts need before they start."`
	InnerScope   string   `json:"inner_scope,omitempty" doc:"Path of the scope inside it."`
	Line         int      `json:"line,omitempty" doc:"Line in the text of the definition, from 1."`
	Column       int      `json:"column,omitempty" doc:"Column in the text of the definition, from 1."`
}

// GraphEdge is an edge from one node to another.
type GraphEdge struct {
	From   int    `json:"from" doc:"Index of the node where it starts."`
	To     int    `json:"to" doc:"Index of the node where it ends; -1 = the scope ends."`
	Kind   string `json:"kind,omitempty" enum:"dependency,compensation" doc:"Kind of the edge. absent: graph mode, it follows an action. dependency: dag mode, to depends on from. compensation: to compensates from."`
	Action string `json:"action,omitempty" doc:"Action that it follows."`
	When   string `json:"when,omitempty" doc:"Condition of a choice."`
	Always bool   `json:"always,omitempty" doc:"In dag mode: true if to runs however from ends."`
}
