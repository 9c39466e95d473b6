package wire

// Digest is a compact report of a task: the progress of each node in some of its scopes, without
// values. Its size depends on the flow only, not on how long the task has run.
type Digest struct {
	Task      string        `json:"task"`
	Flow      string        `json:"flow" doc:"slug of the flow, or its id when it has none"`
	Version   int           `json:"version" doc:"number of the version it runs"`
	VersionID string        `json:"version_id"`
	Mode      string        `json:"mode" enum:"graph,dag"`
	Base      int64         `json:"base" doc:"Unix milliseconds that entered and ended count from: when the task was created"`
	CreatedAt Time          `json:"created_at"`
	Scopes    []ScopeDigest `json:"scopes" doc:"never null"`
	DigestHead
}

// DigestHead is the part of a digest that concerns the whole task.
type DigestHead struct {
	Seq       int64  `json:"seq" doc:"of the last row of the journal in this; follow the channel digest:ID from here on with after"`
	State     string `json:"state" enum:"pending,running,completed,failed,canceling,canceled"`
	Paused    bool   `json:"paused"`
	Error     string `json:"error,omitempty"`
	UpdatedAt Time   `json:"updated_at"`
	EndedAt   Time   `json:"ended_at,omitzero"`
	Waits     []Wait `json:"waits" doc:"what it waits for; of many the first ones; never null"`
}

// ScopeDigest reports the nodes of a scope, in the order of the version's graph.
type ScopeDigest struct {
	Scope string   `json:"scope" doc:"empty = the task's root; ~ is where a task undoes and cleans up"`
	Mode  string   `json:"mode" enum:"graph,dag"`
	Nodes []string `json:"nodes" doc:"keys; never null"`
	DigestColumns
}

// DigestColumns has one entry per node in each column, for the newest visit of the node. A column
// of counts that are all 0 is absent.
type DigestColumns struct {
	State    []int `json:"state" doc:"0 created, 1 started, 2 completed, 3 failed, 4 skipped; never null"`
	Visit    []int `json:"visit" doc:"0 = it has not begun; never null"`
	Total    []int `json:"total,omitempty" doc:"units"`
	Done     []int `json:"done,omitempty" doc:"units that have ended, the failed ones included"`
	Failed   []int `json:"failed,omitempty"`
	InFlight []int `json:"in_flight,omitempty"`
	Retrying []int `json:"retrying,omitempty"`

	Entered []int64 `json:"entered" doc:"milliseconds after base, -1 = not; never null"`
	Ended   []int64 `json:"ended" doc:"milliseconds after base, -1 = not; never null"`

	Reason map[int]string `json:"reason,omitempty" doc:"by index among the scope's nodes: why it failed or was skipped, in one word"`
	Error  map[int]string `json:"error,omitempty" doc:"by index among the scope's nodes: the beginning of an error; of the first 100 that have one"`
	Held   []int          `json:"held,omitempty" doc:"indexes of nodes that somebody does not let begin"`
}

// DigestChanges holds the changes of a digest: the nodes that have changed, in their new state.
type DigestChanges struct {
	DigestHead
	Scopes []ScopeChanges `json:"scopes" doc:"those in which something has changed; never null"`
}

// ScopeChanges holds the columns of the nodes that have changed.
type ScopeChanges struct {
	Scope string `json:"scope"`
	At    []int  `json:"at" doc:"their indexes among the scope's nodes; never null"`
	DigestColumns
}
