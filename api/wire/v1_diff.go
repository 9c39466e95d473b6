package wire

// FlowDiff holds the differences of two versions of a flow.
type FlowDiff struct {
	Flow     string       `json:"flow"`
	From     int          `json:"from" doc:"number of the older version"`
	To       int          `json:"to"`
	Changes  []FlowChange `json:"changes" doc:"the flow first, then what it takes, its nodes, and what leads from one to another; never null"`
	UnderWay ListedTasks  `json:"under_way" doc:"tasks that go on with the older version"`
}

// FlowChange is one difference.
type FlowChange struct {
	What  string `json:"what" enum:"flow,input,node,edge"`
	How   string `json:"how" enum:"added,removed,changed"`
	Scope string `json:"scope,omitempty" doc:"the keys of the nodes that it is inside of; ~ is where a task undoes and cleans up"`
	Node  string `json:"node,omitempty" doc:"of an edge the one that it leads from, or the one that waits"`
	Field string `json:"field,omitempty" doc:"of an edge its action, or after; of an input its name; absent when the whole node is meant"`
	Old   string `json:"old,omitempty"`
	New   string `json:"new,omitempty"`
}
