package wire

// FlowDiff holds the differences of two versions of a flow.
type FlowDiff struct {
	Flow         string       `json:"flow" doc:"Slug of the flow, or its ID if it has none."`
	From         int          `json:"from" doc:"Number of the older version."`
	To           int          `json:"to" doc:"Number of the newer version."`
	Changes      []FlowChange `json:"changes" doc:"Changes in the order: flow, inputs, nodes, edges; never null."`
	RunningTasks TaskQuery    `json:"running_tasks" doc:"Running tasks of the older version."`
}

// FlowChange is one difference.
type FlowChange struct {
	Kind   string `json:"kind" enum:"flow,input,node,edge" doc:"Kind of the changed element."`
	Change string `json:"change" enum:"added,removed,changed" doc:"Kind of the change."`
	Scope  string `json:"scope,omitempty" doc:"Keys of the nodes that contain the element; ~ is the scope of compensations and clean-up."`
	Node   string `json:"node,omitempty" doc:"Key of the node. For an edge: the node where it starts, or the node that waits."`
	Field  string `json:"field,omitempty" doc:"Name of the field. For an edge: its action, or after. For an input: its name. Absent for a whole node."`
	Old    string `json:"old,omitempty" doc:"Old value."`
	New    string `json:"new,omitempty" doc:"New value."`
}
