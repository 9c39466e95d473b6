package wire

// Overview is the state of the engine at one moment, for operators.
type Overview struct {
	StoreTime      Time           `json:"store_time" doc:"Time of the overview, by the store's clock."`
	States         []StateCount   `json:"states" doc:"Numbers of tasks by state; never null."`
	Recent         []RecentTasks  `json:"recent" doc:"Numbers of the last hour and of the last day; never null."`
	RecentFailures RecentFailures `json:"recent_failures" doc:"Recent failures of tasks."`
	SlowerFlows    []SlowerFlow   `json:"slower_flows" doc:"Flows with a p99 of at least 1.5 times that of the previous week, the largest increase first: at most 5, of the 500 newest flows. The list may be a minute old; never null."`
	Queues         []Queue        `json:"queues" doc:"Queues that are not empty, the one with the oldest job first; the first 50; never null."`
	QueueCount     int            `json:"queue_count" doc:"Number of queues that are not empty."`
	Workers        WorkerCounts   `json:"workers" doc:"Numbers of workers."`
	Members        *MemberCounts  `json:"members,omitempty" doc:"Numbers of members; absent without a cluster."`
}

// TaskQuery is the number of tasks in a list, and the query of that list.
type TaskQuery struct {
	Count int    `json:"count" doc:"Number of tasks, at most 10,000."`
	Exact bool   `json:"exact" doc:"False if there are more tasks."`
	Query string `json:"query" doc:"Query for GET /v1/tasks that lists them." example:"state=failed&ended_from=2026-01-02T12:00:00Z"`
}

// StateCount is the number of tasks in a state.
type StateCount struct {
	State string `json:"state" enum:"pending,running,canceling,paused,completed,failed,canceled" doc:"State of the tasks; paused tasks are also counted in their other state."`
	TaskQuery
}

// RecentTasks counts events since a point in time.
type RecentTasks struct {
	Window    string    `json:"window" enum:"1h,24h" doc:"Length of the time range."`
	Since     Time      `json:"since" doc:"Start of the time range."`
	Started   TaskQuery `json:"started" doc:"Started tasks."`
	Completed TaskQuery `json:"completed" doc:"Completed tasks."`
	Failed    TaskQuery `json:"failed" doc:"Failed tasks."`
}

// RecentFailures reports recent failures of tasks.
type RecentFailures struct {
	Since  Time           `json:"since" doc:"Start of the time range: one day, or less if more than 500 tasks failed, because only the newest 500 are counted."`
	Tasks  int            `json:"tasks" doc:"Number of failed tasks."`
	Groups []FailureGroup `json:"groups" doc:"Groups of similar failures, the largest first; the first 50. A task without an error is in none; never null."`
}

// FailureGroup is a group of failed tasks of one flow with similar errors.
type FailureGroup struct {
	Flow       string `json:"flow" doc:"Slug of the flow, or its ID if it has none."`
	Node       string `json:"node,omitempty" doc:"Path of the failed node; absent if the error names none."`
	Error      string `json:"error" doc:"First part of the error, with # instead of each number." example:"pay: card # refused"`
	Count      int    `json:"count" doc:"Number of tasks."`
	LatestTask string `json:"latest_task" doc:"ID of the task that failed last."`
	FailedAt   Time   `json:"failed_at" doc:"Time when that task failed."`
	Query      string `json:"query" doc:"Query for GET /v1/tasks that lists them."`
}

// SlowerFlow is a flow with tasks that take longer than before.
type SlowerFlow struct {
	Flow   string `json:"flow" doc:"Slug of the flow, or its ID if it has none."`
	P99    int64  `json:"p99_ms" doc:"p99 of the durations in the last 24 hours, in milliseconds."`
	Before int64  `json:"before_ms" doc:"p99 of the durations in the 7 days before, in milliseconds."`
}

// WorkerCounts counts workers by their state.
type WorkerCounts struct {
	Online  int `json:"online" doc:"Number of online workers."`
	Offline int `json:"offline" doc:"Number of offline workers."`
}

// MemberCounts counts the members of the cluster by their state, and the shards without an owner.
type MemberCounts struct {
	Alive    int `json:"alive" doc:"Number of members that are alive."`
	Draining int `json:"draining" doc:"Number of members that are draining."`
	Overdue  int `json:"overdue" doc:"Number of members that are overdue."`
	Unowned  int `json:"unowned" doc:"Number of shards without an owner."`
}
