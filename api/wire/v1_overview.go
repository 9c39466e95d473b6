package wire

// Overview is the state of the engine at one moment, for operators.
type Overview struct {
	Now      Time          `json:"now" doc:"the store's time of that moment"`
	States   []StateTasks  `json:"states" doc:"all tasks by their state; never null"`
	Recent   []RecentTasks `json:"recent" doc:"of the last hour and of the last day; never null"`
	Failing  Failing       `json:"failing"`
	Slow     []SlowFlow    `json:"slow" doc:"flows of which 99 % of tasks took half as long again as the week before, or longer, the slowest in comparison first; at most 5, of the 500 newest flows; may be a minute old; never null"`
	Queues   []Queue       `json:"queues" doc:"those that are not empty, the one with the oldest job first; the first 50; never null"`
	Services int           `json:"services" doc:"how many queues there are that are not empty"`
	Workers  WorkerCount   `json:"workers"`
	Members  *MemberCount  `json:"members,omitempty" doc:"absent where there is no cluster to tell of"`
}

// ListedTasks is the number of tasks in a list, and the query of that list.
type ListedTasks struct {
	Count int    `json:"count" doc:"at most 10,000"`
	Exact bool   `json:"exact" doc:"false: there are more"`
	Query string `json:"query" doc:"GET /v1/tasks with this query lists them" example:"state=failed&ended_from=2026-01-02T12:00:00Z"`
}

// StateTasks is the number of tasks in a state.
type StateTasks struct {
	State string `json:"state" enum:"pending,running,canceling,paused,completed,failed,canceled" doc:"paused ones are in their other state, too"`
	ListedTasks
}

// RecentTasks counts events since a point in time.
type RecentTasks struct {
	Window    string      `json:"window" enum:"1h,24h"`
	Since     Time        `json:"since"`
	Started   ListedTasks `json:"started"`
	Completed ListedTasks `json:"completed"`
	Failed    ListedTasks `json:"failed"`
}

// Failing reports recent failures of tasks.
type Failing struct {
	Since  Time           `json:"since" doc:"tasks that have failed since then are in it: those of the last day, but the newest 500 at most"`
	Tasks  int            `json:"tasks" doc:"how many those are"`
	Groups []FailureGroup `json:"groups" doc:"the largest first; the first 50; a task without an error is in none; never null"`
}

// FailureGroup is a group of failed tasks of one flow with similar errors.
type FailureGroup struct {
	Flow   string `json:"flow" doc:"slug of the flow, or its id when it has none"`
	Node   string `json:"node,omitempty" doc:"that failed, by its path; absent when the error names none"`
	Error  string `json:"error" doc:"the beginning of their error, with # in place of each number" example:"pay: card # refused"`
	Count  int    `json:"count"`
	Newest string `json:"newest" doc:"id of the one that failed last"`
	At     Time   `json:"at" doc:"when that was"`
	Query  string `json:"query" doc:"GET /v1/tasks with this query lists them"`
}

// SlowFlow is a flow with tasks that take longer than before.
type SlowFlow struct {
	Flow   string `json:"flow" doc:"slug of the flow, or its id when it has none"`
	P99    int64  `json:"p99_ms" doc:"of tasks of the last 24 hours"`
	Before int64  `json:"before_ms" doc:"the same of the 7 days before"`
}

// WorkerCount counts workers by their state.
type WorkerCount struct {
	Online  int `json:"online"`
	Offline int `json:"offline"`
}

// MemberCount counts the members of the cluster by their state, and the shards without an owner.
type MemberCount struct {
	Living   int `json:"living"`
	Draining int `json:"draining"`
	Overdue  int `json:"overdue"`
	Unowned  int `json:"unowned" doc:"shards that nobody owns for the moment"`
}
