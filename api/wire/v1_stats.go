package wire

// FlowStats holds statistics of the tasks of a flow in a time range. Members count stored changes,
// and write the counts to the store every five seconds.
type FlowStats struct {
	Flow    string      `json:"flow" doc:"Slug of the flow, or its ID if it has none."`
	Version int         `json:"version,omitempty" doc:"Number of the version; absent = all versions."`
	Since   Time        `json:"since" doc:"Start of the time range: the beginning of a minute, or of an hour if only hours are stored."`
	Until   Time        `json:"until" doc:"End of the time range."`
	Tasks   TaskStats   `json:"tasks" doc:"Statistics of the tasks."`
	Nodes   []NodeStats `json:"nodes" doc:"Statistics of the visited nodes, by scope and key; never null."`
}

// TaskStats counts tasks by their outcome.
type TaskStats struct {
	Started    int64       `json:"started" doc:"Number of started tasks."`
	Completed  int64       `json:"completed" doc:"Number of completed tasks."`
	Failed     int64       `json:"failed" doc:"Number of failed tasks."`
	Canceled   int64       `json:"canceled" doc:"Number of canceled tasks."`
	Duration   Percentiles `json:"duration" doc:"Durations of ended tasks, from creation to end."`
	LastFailed string      `json:"last_failed,omitempty" doc:"ID of the task that failed last."`
}

// Percentiles holds quantiles of durations. They are within 9 % of the measured values; the longest
// duration is exact.
type Percentiles struct {
	P50 int64 `json:"p50_ms" doc:"p50 in milliseconds."`
	P95 int64 `json:"p95_ms" doc:"p95 in milliseconds."`
	P99 int64 `json:"p99_ms" doc:"p99 in milliseconds."`
	Max int64 `json:"max_ms" doc:"Maximum in milliseconds."`
}

// NodeStats holds statistics of a node.
type NodeStats struct {
	Scope      string       `json:"scope,omitempty" doc:"Path of the scope as in the graph of the flow."`
	Key        string       `json:"key" doc:"Key of the node; (other) combines the nodes above the limit."`
	Count      int64        `json:"count" doc:"Number of ended visits, including skipped ones."`
	Failed     int64        `json:"failed" doc:"Number of failed visits."`
	Retried    int64        `json:"retried" doc:"Number of attempts after the first one, and of retries of the whole step."`
	Skipped    int64        `json:"skipped" doc:"Number of skipped visits."`
	Units      int64        `json:"units" doc:"Number of units of the visits."`
	Duration   Percentiles  `json:"duration" doc:"Durations of visits, including waits."`
	Wait       *Percentiles `json:"wait,omitempty" doc:"Waits of attempts until a worker claimed them; absent if no worker claims them."`
	P95Trend   []int64      `json:"p95_trend_ms" doc:"p95 in milliseconds for each of 12 equal parts of the time range, oldest first; 0 = nothing ended; never null."`
	LastFailed string       `json:"last_failed,omitempty" doc:"ID of the last task in which it failed."`
}

// StatsSeries holds statistics of tasks, or of a node, over time.
type StatsSeries struct {
	Flow   string       `json:"flow,omitempty" doc:"Slug of the flow, or its ID; absent = all flows."`
	Scope  string       `json:"scope,omitempty" doc:"Path of the node's scope."`
	Node   string       `json:"node,omitempty" doc:"Key of the node; absent for statistics of tasks."`
	Since  Time         `json:"since" doc:"Start of the time range."`
	Until  Time         `json:"until" doc:"End of the time range."`
	StepMS int64        `json:"step_ms" doc:"Length of each point in milliseconds."`
	Points []StatsPoint `json:"points" doc:"Points without gaps, oldest first; never null."`
}

// StatsPoint holds the counts of one time step.
type StatsPoint struct {
	At        Time        `json:"at" doc:"Start of the point."`
	Started   int64       `json:"started" doc:"Number of started tasks; 0 for a node."`
	Completed int64       `json:"completed" doc:"Number of completed tasks or visits."`
	Failed    int64       `json:"failed" doc:"Number of failed tasks or visits."`
	Canceled  int64       `json:"canceled" doc:"Number of canceled tasks; 0 for a node."`
	Skipped   int64       `json:"skipped" doc:"Number of skipped visits of a node; 0 for tasks."`
	Retried   int64       `json:"retried" doc:"Number of retries of a node; 0 for tasks."`
	Duration  Percentiles `json:"duration" doc:"Durations."`
	Wait      Percentiles `json:"wait" doc:"Waits until a worker claimed the attempt."`
}
