package wire

// Comparison is a comparison of the courses of two tasks.
type Comparison struct {
	A         TaskSummary `json:"a"`
	B         TaskSummary `json:"b"`
	Visits    []VisitPair `json:"visits" doc:"in the order of a, with what only b has behind what came before it there; never null"`
	Same      int         `json:"same" doc:"how many did the same"`
	Different int         `json:"different"`
	OnlyA     int         `json:"only_a"`
	OnlyB     int         `json:"only_b"`
	First     int         `json:"first" doc:"index of the first one that is not the same; -1 = there is none"`
	Cut       bool        `json:"cut,omitempty" doc:"only the first 5,000 visits of each task are compared"`
}

// VisitPair is a visit of a node in two tasks.
type VisitPair struct {
	Scope   string     `json:"scope,omitempty" doc:"absent = the task's root"`
	Node    string     `json:"node"`
	Visit   int        `json:"visit"`
	A       *VisitTold `json:"a,omitempty" doc:"absent: only b was there"`
	B       *VisitTold `json:"b,omitempty" doc:"absent: only a was there"`
	Differs []string   `json:"differs" doc:"state, action, error, attempts, units, output: what is not the same where both were; never null"`
}

// VisitTold is the outcome of a visit of a node.
type VisitTold struct {
	State       string `json:"state" enum:"started,completed,failed,skipped"`
	Action      string `json:"action,omitempty"`
	Reason      string `json:"reason,omitempty"`
	Error       string `json:"error,omitempty" doc:"its beginning"`
	Attempts    int    `json:"attempts" doc:"of all units"`
	Units       int    `json:"units"`
	DurationMS  int64  `json:"duration_ms" doc:"0 of one that has not ended or never begun"`
	Output      string `json:"output,omitempty" doc:"JSON, or the beginning of it"`
	OutputBytes int    `json:"output_bytes"`
}
