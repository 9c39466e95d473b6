package wire

// Comparison is a comparison of the courses of two tasks.
type Comparison struct {
	Task            TaskSummary       `json:"task" doc:"The task."`
	Other           TaskSummary       `json:"other" doc:"The task with which it is compared."`
	Visits          []VisitComparison `json:"visits" doc:"Visits in the order of the task; visits of only the other task follow their predecessor; never null."`
	Same            int               `json:"same" doc:"Number of visits that are equal in both tasks."`
	Different       int               `json:"different" doc:"Number of visits that differ."`
	OnlyInTask      int               `json:"only_in_task" doc:"Number of visits that only the task has."`
	OnlyInOther     int               `json:"only_in_other" doc:"Number of visits that only the other task has."`
	FirstDifference int               `json:"first_difference" doc:"Index of the first visit that is not equal; -1 = none."`
	Truncated       bool              `json:"truncated,omitempty" doc:"True if only the first 5,000 visits of each task are compared."`
}

// VisitComparison is a visit of a node in two tasks.
type VisitComparison struct {
	Scope       string        `json:"scope,omitempty" doc:"Path of the scope; absent for the task's root."`
	Node        string        `json:"node" doc:"Key of the node."`
	Visit       int           `json:"visit" doc:"Number of the visit."`
	Task        *VisitSummary `json:"task,omitempty" doc:"Visit in the task; absent if only the other task has it."`
	Other       *VisitSummary `json:"other,omitempty" doc:"Visit in the other task; absent if only the task has it."`
	Differences []string      `json:"differences" doc:"Properties that differ: state, action, error, attempts, units, output; never null."`
}

// VisitSummary is the outcome of a visit of a node.
type VisitSummary struct {
	State       string `json:"state" enum:"started,completed,failed,skipped" doc:"State of the visit."`
	Action      string `json:"action,omitempty" doc:"Action with which it ended."`
	Reason      string `json:"reason,omitempty" doc:"Reason of a failure or skip, in one word."`
	Error       string `json:"error,omitempty" doc:"First part of the error."`
	Attempts    int    `json:"attempts" doc:"Number of attempts of all units."`
	Units       int    `json:"units" doc:"Number of units."`
	DurationMS  int64  `json:"duration_ms" doc:"Duration in milliseconds; 0 if it has not started or not ended."`
	Output      string `json:"output,omitempty" doc:"JSON of the output, or its first part."`
	OutputBytes int    `json:"output_bytes" doc:"Size of the output in bytes."`
}
