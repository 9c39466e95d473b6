package wire

// Timeline shows when each visit of a scope was active. All times are milliseconds after Base.
type Timeline struct {
	Task      string         `json:"task" doc:"ID of the task."`
	Scope     string         `json:"scope" doc:"Path of the scope; empty for the task's root."`
	Seq       int64          `json:"seq" doc:"Number of the last journal row in this answer."`
	BaseMS    int64          `json:"base_ms" doc:"Time when the task was created, in Unix milliseconds; the other times count from it."`
	StartedMS int64          `json:"started_ms" doc:"Time when the scope started."`
	EndedMS   int64          `json:"ended_ms" doc:"Time when the scope ended; -1 = it is running."`
	FromMS    int64          `json:"from_ms" doc:"Start of the shown time."`
	ToMS      int64          `json:"to_ms" doc:"End of the shown time; now if the scope is running."`
	Lanes     []TimelineLane `json:"lanes" doc:"Visits in the order of their start; never null."`
	Critical  []int          `json:"critical" doc:"Indexes of the lanes on the critical path, in order; never null."`
	Pauses    []TimelineWait `json:"pauses" doc:"Times in which the task was paused; never null."`
	Omitted   int            `json:"omitted,omitempty" doc:"Number of lanes in this time that are not shown; request a shorter time."`
}

// TimelineLane is a visit of a node.
type TimelineLane struct {
	Node            string            `json:"node" doc:"Key of the node."`
	Visit           int               `json:"visit" doc:"Number of the visit."`
	EnteredMS       int64             `json:"entered_ms" doc:"Time of the start."`
	EndedMS         int64             `json:"ended_ms" doc:"Time of the end; -1 = it is running."`
	State           string            `json:"state" enum:"running,completed,failed,skipped,canceled" doc:"State of the visit."`
	Units           int               `json:"units,omitempty" doc:"Number of units."`
	Failed          int               `json:"failed,omitempty" doc:"Number of failed attempts."`
	HasInnerScope   bool              `json:"has_inner_scope,omitempty" doc:"True if it has an inner scope with a timeline of its own."`
	Waits           []TimelineWait    `json:"waits,omitempty" doc:"Times without work, the first 100 of many."`
	Attempts        []TimelineAttempt `json:"attempts,omitempty" doc:"Attempts: at most 200, and fewer with many lanes. If there are more, bins replace them."`
	BinMS           int64             `json:"bin_ms,omitempty" doc:"Length of each bin in milliseconds."`
	Bins            []TimelineBin     `json:"bins,omitempty" doc:"Bins that are not empty."`
	OmittedAttempts int               `json:"omitted_attempts,omitempty" doc:"Number of attempts that are in no list and no bin, because the task has too many."`
}

// TimelineWait is a period in which a visit waited.
type TimelineWait struct {
	Kind      string `json:"kind" enum:"approval,signal,timer,manual,worker,external,retry,permit,delay,resume" doc:"Kind of the wait."`
	StartedMS int64  `json:"started_ms" doc:"Time of the start."`
	EndedMS   int64  `json:"ended_ms" doc:"Time of the end; -1 = it is waiting."`
}

// TimelineAttempt is an attempt of a unit.
type TimelineAttempt struct {
	Unit      int    `json:"unit" doc:"Index of the unit."`
	Attempt   int    `json:"attempt" doc:"Number of the attempt."`
	StartedMS int64  `json:"started_ms" doc:"Time of the start."`
	ClaimedMS int64  `json:"claimed_ms,omitempty" doc:"Time when a worker claimed it, or started it elsewhere."`
	EndedMS   int64  `json:"ended_ms" doc:"Time of the end; -1 = it is running."`
	State     string `json:"state" enum:"running,ok,error,timeout,canceled" doc:"State of the attempt."`
}

// TimelineBin is a section of the timeline.
type TimelineBin struct {
	AtMS    int64 `json:"at_ms" doc:"Start of the bin."`
	Running int   `json:"running" doc:"Number of attempts that were running in it."`
	Failed  int   `json:"failed,omitempty" doc:"Number of attempts that failed in it."`
}
