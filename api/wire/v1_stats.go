package wire

// FlowStats is how the tasks of a flow go that ended in some time.
type FlowStats struct {
	Flow     string       `json:"flow" doc:"slug of the flow, or its id when it has none"`
	Version  int          `json:"version,omitempty" doc:"number of the only version that is meant; absent = all"`
	Window   string       `json:"window" enum:"1h,24h,7d"`
	Since    Time         `json:"since"`
	States   []StateTasks `json:"states" doc:"those that ended since then, by how; never null"`
	Sampled  int          `json:"sampled" doc:"of so many tasks, those that ended last, the times and the nodes tell: at most 200, and as many as can be read in a second"`
	Of       int          `json:"of" doc:"how many ended since then; exact as the states are"`
	Duration Times        `json:"duration" doc:"of the sampled tasks, from creation to end"`
	Nodes    []NodeStats  `json:"nodes" doc:"that the sampled tasks came to, by scope and key; never null"`
}

// Times are quantiles of durations.
type Times struct {
	P50 int64 `json:"p50_ms" doc:"half took no longer"`
	P95 int64 `json:"p95_ms"`
	P99 int64 `json:"p99_ms"`
	Max int64 `json:"max_ms"`
}

// NodeStats is how a node goes.
type NodeStats struct {
	Scope      string `json:"scope,omitempty" doc:"as in the graph of the flow"`
	Key        string `json:"key"`
	Visits     int    `json:"visits" doc:"that began"`
	Failures   int    `json:"failures" doc:"visits that failed"`
	Retries    int    `json:"retries" doc:"attempts after the first one, and tries of the whole step"`
	Duration   Times  `json:"duration" doc:"of visits from beginning to end, waiting included"`
	LastFailed string `json:"last_failed,omitempty" doc:"id of the task that ended last of those in which it failed"`
}
