package wire

// FlowStats holds statistics of the tasks of a flow in a time range. Members count stored changes,
// and add the counts to the store every five seconds.
type FlowStats struct {
	Flow    string      `json:"flow" doc:"slug of the flow, or its id when it has none"`
	Version int         `json:"version,omitempty" doc:"number of the only version that is meant; absent = all"`
	Since   Time        `json:"since" doc:"the beginning of a minute, or of an hour where only hours are kept"`
	Until   Time        `json:"until"`
	Tasks   TaskStats   `json:"tasks"`
	Nodes   []NodeStats `json:"nodes" doc:"that tasks came to, by scope and key; never null"`
}

// TaskStats counts tasks by their outcome.
type TaskStats struct {
	Started    int64  `json:"started"`
	Completed  int64  `json:"completed"`
	Failed     int64  `json:"failed"`
	Canceled   int64  `json:"canceled"`
	Duration   Times  `json:"duration" doc:"of those that ended, from creation to end"`
	LastFailed string `json:"last_failed,omitempty" doc:"id of the task that failed last"`
}

// Times holds quantiles of durations. They are within 9 % of the measured values; the longest
// duration is exact.
type Times struct {
	P50 int64 `json:"p50_ms" doc:"half took no longer"`
	P95 int64 `json:"p95_ms"`
	P99 int64 `json:"p99_ms"`
	Max int64 `json:"max_ms"`
}

// NodeStats holds statistics of a node.
type NodeStats struct {
	Scope      string  `json:"scope,omitempty" doc:"as in the graph of the flow"`
	Key        string  `json:"key" doc:"(other): nodes beyond those that are told apart"`
	Count      int64   `json:"count" doc:"visits that ended, those that were skipped among them"`
	Failed     int64   `json:"failed" doc:"visits that failed"`
	Retried    int64   `json:"retried" doc:"attempts after the first one, and tries of the whole step"`
	Skipped    int64   `json:"skipped"`
	Units      int64   `json:"units" doc:"of those visits"`
	Duration   Times   `json:"duration" doc:"of visits from beginning to end, waiting included"`
	Wait       *Times  `json:"wait,omitempty" doc:"of attempts until somebody claimed them; absent where nobody has to"`
	Trend      []int64 `json:"trend" doc:"p95 in milliseconds of each of 12 equal parts of the time, the oldest first; 0 = nothing ended; never null"`
	LastFailed string  `json:"last_failed,omitempty" doc:"id of the last task in which it failed"`
}

// StatsSeries holds statistics of tasks, or of a node, over time.
type StatsSeries struct {
	Flow   string       `json:"flow,omitempty" doc:"slug of the flow, or its id; absent = all flows"`
	Scope  string       `json:"scope,omitempty"`
	Node   string       `json:"node,omitempty" doc:"absent = the tasks themselves"`
	Since  Time         `json:"since"`
	Until  Time         `json:"until"`
	StepMS int64        `json:"step_ms" doc:"how long each point is"`
	Points []StatsPoint `json:"points" doc:"one after the other without a gap, the oldest first; never null"`
}

// StatsPoint holds the counts of one time step.
type StatsPoint struct {
	At        Time  `json:"at"`
	Started   int64 `json:"started" doc:"tasks; 0 of a node"`
	Completed int64 `json:"completed"`
	Failed    int64 `json:"failed"`
	Canceled  int64 `json:"canceled" doc:"tasks; 0 of a node"`
	Skipped   int64 `json:"skipped" doc:"visits of a node; 0 of tasks"`
	Retried   int64 `json:"retried" doc:"of a node; 0 of tasks"`
	Duration  Times `json:"duration"`
	Wait      Times `json:"wait"`
}
