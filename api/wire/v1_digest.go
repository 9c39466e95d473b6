package wire

// Digest is a compact report of a task: the progress of each node in some scopes, without values.
// Its size depends only on the flow.
type Digest struct {
	Task      string        `json:"task" doc:"ID of the task."`
	Flow      string        `json:"flow" doc:"Slug of the flow, or its ID if it has none."`
	Version   int           `json:"version" doc:"Number of the version."`
	VersionID string        `json:"version_id" doc:"ID of the version."`
	Mode      string        `json:"mode" enum:"graph,dag,code" doc:"Mode of the flow."`
	BaseMS    int64         `json:"base_ms" doc:"Time when the task was created, in Unix milliseconds; entered_ms and ended_ms count from it."`
	CreatedAt Time          `json:"created_at" doc:"Time when the task was created."`
	Scopes    []ScopeDigest `json:"scopes" doc:"Scopes of the task; never null."`
	DigestHead
}

// DigestHead is the part of a digest that concerns the whole task.
type DigestHead struct {
	Seq       int64        `json:"seq" doc:"Number of the last journal row in this digest; follow the channel digest:ID from here with after."`
	State     string       `json:"state" enum:"pending,running,completed,failed,canceling,canceled" doc:"State of the task."`
	Paused    bool         `json:"paused" doc:"True if the task is paused."`
	Error     string       `json:"error,omitempty" doc:"Error of the task."`
	UpdatedAt Time         `json:"updated_at" doc:"Time of the last change."`
	EndedAt   Time         `json:"ended_at,omitzero" doc:"Time of the end."`
	Waits     []WaitReason `json:"waits" doc:"Reasons why the task waits, the first of many; never null."`
}

// ScopeDigest reports the nodes of a scope, in the order of the version's graph.
type ScopeDigest struct {
	Scope string   `json:"scope" doc:"Path of the scope; empty for the task's root; ~ is the scope of compensations and clean-up."`
	Mode  string   `json:"mode" enum:"graph,dag,code" doc:"Mode of the scope."`
	Nodes []string `json:"nodes" doc:"Keys of the nodes; never null."`
	DigestColumns
}

// DigestColumns has columns with one entry per node, for the newest visit of the node. A column
// with only zeros is absent.
type DigestColumns struct {
	State    []int `json:"state" doc:"States: 0 created, 1 started, 2 completed, 3 failed, 4 skipped; never null."`
	Visit    []int `json:"visit" doc:"Numbers of the visits; 0 = not started; never null."`
	Total    []int `json:"total,omitempty" doc:"Numbers of units."`
	Done     []int `json:"done,omitempty" doc:"Numbers of units that have ended, including failed ones."`
	Failed   []int `json:"failed,omitempty" doc:"Numbers of failed units."`
	InFlight []int `json:"in_flight,omitempty" doc:"Numbers of units in flight."`
	Retrying []int `json:"retrying,omitempty" doc:"Numbers of units that wait for a retry."`

	EnteredMS []int64 `json:"entered_ms" doc:"Start times in milliseconds after base_ms, -1 = not started; never null."`
	EndedMS   []int64 `json:"ended_ms" doc:"End times in milliseconds after base_ms, -1 = not ended; never null."`

	Reason map[int]string `json:"reason,omitempty" doc:"Reasons of failures and skips in one word, by index of the node in the scope."`
	Error  map[int]string `json:"error,omitempty" doc:"First parts of errors by index of the node in the scope, for the first 100 nodes with an error."`
	Held   []int          `json:"held,omitempty" doc:"Indexes of held nodes."`
}

// DigestChanges holds the changed nodes of a digest in their new state.
type DigestChanges struct {
	DigestHead
	Scopes []ScopeChanges `json:"scopes" doc:"Scopes with changes; never null."`
}

// ScopeChanges holds the columns of the nodes that have changed.
type ScopeChanges struct {
	Scope   string `json:"scope" doc:"Path of the scope."`
	Indexes []int  `json:"indexes" doc:"Indexes of the changed nodes in the scope; never null."`
	DigestColumns
}
