package wire

// Graph is a version in the form for drawing: all nodes in one list, grouped by scope and in the
// order of digests.
type Graph struct {
	Flow    string       `json:"flow,omitempty" doc:"slug of the flow, or its id; absent for what was not published"`
	Version int          `json:"version,omitempty"`
	Mode    string       `json:"mode" enum:"graph,dag"`
	Scopes  []GraphScope `json:"scopes" doc:"the first one is the task's root; never null"`
	Nodes   []GraphNode  `json:"nodes" doc:"never null"`
	Edges   []GraphEdge  `json:"edges" doc:"never null"`
}

// GraphScope is a scope of a Graph.
type GraphScope struct {
	Scope string `json:"scope" doc:"path as that of a task's scope, without the visits: order/ship; empty = the root, ~ is where a task undoes and cleans up"`
	Mode  string `json:"mode" enum:"graph,dag"`
	Start string `json:"start,omitempty" doc:"graph mode: key of its first node"`
	Node  *int   `json:"node,omitempty" doc:"index of the node that it is inside of"`
	First int    `json:"first" doc:"index of its first node"`
	Nodes int    `json:"nodes" doc:"how many it has"`
}

// GraphNode is a node of a Graph.
type GraphNode struct {
	Key        string   `json:"key"`
	Scope      string   `json:"scope,omitempty" doc:"path of its scope; absent = the root"`
	Name       string   `json:"name,omitempty" doc:"what people call it, when that is not its key"`
	Kind       string   `json:"kind" example:"executor"`
	Handler    string   `json:"handler,omitempty" doc:"who carries out its jobs" example:"queue:paint"`
	Route      string   `json:"route,omitempty" enum:"push,queue,direct"`
	Service    string   `json:"service,omitempty"`
	For        string   `json:"for,omitempty" doc:"key of the node that the compiler made it for"`
	Ghost      bool     `json:"ghost,omitempty" doc:"the compiler made it"`
	Each       string   `json:"each,omitempty" doc:"of a fanout: what its units are made of"`
	Window     int      `json:"concurrency,omitempty" doc:"units in flight at once, where that is bounded"`
	Retry      string   `json:"retry,omitempty" example:"3 attempts, 1s apart"`
	TimeoutMS  int64    `json:"timeout_ms,omitempty"`
	When       string   `json:"when,omitempty" doc:"its condition"`
	Compensate string   `json:"compensate,omitempty" doc:"key of the node that undoes it"`
	Keys       []string `json:"keys,omitempty" doc:"what its attempts have to be given before they begin"`
	Inside     string   `json:"inside,omitempty" doc:"path of the scope inside of it"`
	Line       int      `json:"line,omitempty" doc:"from 1, where it is in the text of the definition"`
	Column     int      `json:"column,omitempty" doc:"from 1"`
}

// GraphEdge is an edge from one node to another.
type GraphEdge struct {
	From   int    `json:"from" doc:"index of a node"`
	To     int    `json:"to" doc:"index of a node; -1 = the scope ends"`
	Kind   string `json:"kind,omitempty" enum:"after,undo" doc:"absent: graph mode, after an action; after: dag mode, to depends on from; undo: to compensates from"`
	Action string `json:"action,omitempty"`
	When   string `json:"when,omitempty" doc:"of a choice: the condition on which it is taken"`
	Always bool   `json:"always,omitempty" doc:"dag mode: to runs however from ends"`
}
