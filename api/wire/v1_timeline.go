package wire

// Timeline shows when each visit of a scope was under way. All times are milliseconds after Base.
type Timeline struct {
	Task     string         `json:"task"`
	Scope    string         `json:"scope" doc:"empty = the task's root"`
	Seq      int64          `json:"seq" doc:"of the last row of the journal in this"`
	Base     int64          `json:"base" doc:"Unix milliseconds that times count from: when the task was created"`
	Begun    int64          `json:"begun" doc:"when the scope did"`
	Ended    int64          `json:"ended" doc:"-1 = it goes on"`
	From     int64          `json:"from" doc:"what is told begins here"`
	To       int64          `json:"to" doc:"and ends here; of what goes on now"`
	Lanes    []TimelineLane `json:"lanes" doc:"visits in the order in which they began; never null"`
	Critical []int          `json:"critical" doc:"indexes of lanes: those that the end waited for, in their order; never null"`
	Pauses   []TimelineWait `json:"pauses" doc:"in which the task was paused; never null"`
	LeftOut  int            `json:"left_out,omitempty" doc:"lanes that are in this time and not told: ask for less of it"`
}

// TimelineLane is a visit of a node.
type TimelineLane struct {
	Node        string            `json:"node"`
	Visit       int               `json:"visit"`
	Entered     int64             `json:"entered"`
	Ended       int64             `json:"ended" doc:"-1 = it goes on"`
	State       string            `json:"state" enum:"running,completed,failed,skipped,canceled"`
	Units       int               `json:"units,omitempty"`
	Failed      int               `json:"failed,omitempty" doc:"attempts"`
	Inside      bool              `json:"inside,omitempty" doc:"there is a scope inside of it, with a timeline of its own"`
	Waits       []TimelineWait    `json:"waits,omitempty" doc:"times in which nothing was done; of many the first 100"`
	Attempts    []TimelineAttempt `json:"attempts,omitempty" doc:"at most 200, and fewer when there are many lanes; of more there are bins"`
	BinMS       int64             `json:"bin_ms,omitempty" doc:"how long each bin is"`
	Bins        []TimelineBin     `json:"bins,omitempty" doc:"those in which there is something"`
	AttemptsCut int               `json:"attempts_cut,omitempty" doc:"attempts that are told nowhere, since the task has too many"`
}

// TimelineWait is a time in which a visit waited.
type TimelineWait struct {
	For   string `json:"for" enum:"approval,signal,timer,manual,worker,outside,retry,permit,delay,resume"`
	Start int64  `json:"start"`
	End   int64  `json:"end" doc:"-1 = it goes on"`
}

// TimelineAttempt is an attempt of a unit.
type TimelineAttempt struct {
	Unit    int    `json:"unit"`
	Attempt int    `json:"attempt"`
	Start   int64  `json:"start"`
	Begun   int64  `json:"begun,omitempty" doc:"when a worker claimed it, or began with it elsewhere"`
	End     int64  `json:"end" doc:"-1 = it goes on"`
	State   string `json:"state" enum:"running,ok,error,timeout,canceled"`
}

// TimelineBin is a section of the timeline.
type TimelineBin struct {
	T       int64 `json:"t" doc:"when it begins"`
	Running int   `json:"running" doc:"attempts that were under way in it"`
	Failed  int   `json:"failed,omitempty" doc:"attempts that failed in it"`
}
