package wire

// BulkRequest sends a command to many tasks, or starts a new task for each of them.
type BulkRequest struct {
	Action  string      `json:"action" enum:"retry,cancel,pause,resume,rerun,fork" doc:"Command for each task. rerun and fork start a new task for each: rerun from the beginning, fork from its history."`
	Filter  *TaskFilter `json:"filter,omitempty" doc:"Filter of the tasks, as for the list of tasks, newest first. Without state it selects the tasks to which the action applies."`
	IDs     []string    `json:"ids,omitempty" maxItems:"1000" doc:"IDs of the tasks, instead of a filter; each once." nullable:"false"`
	Limit   int         `json:"limit,omitempty" minimum:"0" maximum:"1000" doc:"Maximum number of tasks of a filter; 0 = 1,000."`
	Cursor  string      `json:"cursor,omitempty" maxLength:"1000" doc:"Value of next in the previous answer."`
	DryRun  bool        `json:"dry_run,omitempty" doc:"True to count the tasks and change nothing."`
	From    string      `json:"from,omitempty" maxLength:"200" doc:"For fork: the node from which steps run again; absent = the step where the task failed."`
	Version int         `json:"version,omitempty" minimum:"0" doc:"For rerun and fork: number of the flow's version; 0 = the version of each task."`
	Latest  bool        `json:"latest,omitempty" doc:"For rerun and fork: true to run the latest version."`
	CancelRequest
}

// TaskFilter selects tasks, with the same names as the parameters of the task list.
type TaskFilter struct {
	Flow        []string `json:"flow,omitempty" maxItems:"50" nullable:"false" doc:"Slugs or IDs of flows; tasks match any of them."`
	Version     int      `json:"version,omitempty" minimum:"0" doc:"Number of the version; 0 = any."`
	IDPrefix    string   `json:"id_prefix,omitempty" maxLength:"256" doc:"Prefix of the task ID."`
	Text        string   `json:"q,omitempty" maxLength:"256" doc:"Prefix of the task ID, value of a label, or part of the error."`
	State       []string `json:"state,omitempty" maxItems:"20" nullable:"false" doc:"States; tasks match any of them. paused may only be alone."`
	Failure     string   `json:"error,omitempty" maxLength:"200" doc:"Error of failed tasks: its first 200 characters, with # instead of each number after the name of the node."`
	WaitingFor  []string `json:"waiting_for,omitempty" maxItems:"20" nullable:"false" doc:"Kinds of waits: approval, signal, timer or manual; tasks match any of them."`
	Queued      string   `json:"queued,omitempty" maxLength:"256" doc:"Service: only tasks with jobs in its queue."`
	Node        string   `json:"node,omitempty" maxLength:"1000" doc:"Node of the cursor, in graph mode."`
	Label       []string `json:"label,omitempty" maxItems:"20" nullable:"false" doc:"Labels as NAME:VALUE; tasks match all of them."`
	CreatedFrom Time     `json:"created_from,omitzero" doc:"Earliest time of creation."`
	CreatedTo   Time     `json:"created_to,omitzero" doc:"Time before which the task was created."`
	EndedFrom   Time     `json:"ended_from,omitzero" doc:"Earliest time of the end."`
	EndedTo     Time     `json:"ended_to,omitzero" doc:"Time before which the task ended."`
	DurationMin int64    `json:"duration_min,omitempty" minimum:"0" doc:"Minimum duration in milliseconds."`
	DurationMax int64    `json:"duration_max,omitempty" minimum:"0" doc:"Duration in milliseconds that is not reached."`
}

// BulkResult is the answer to a BulkRequest.
type BulkResult struct {
	Action    string            `json:"action" doc:"Command of the request."`
	Tasks     int               `json:"tasks" doc:"Number of tasks that received the command. For a dry run: number of matching tasks, at most 10,000 for a filter."`
	Exact     bool              `json:"exact" doc:"False if there are or may be more tasks; always false for a dry run that did not search to the end."`
	Changed   int               `json:"changed" doc:"Number of tasks that the command changed."`
	Unchanged int               `json:"unchanged" doc:"Number of tasks that had ended, or had received this request before."`
	Failed    int               `json:"failed" doc:"Number of tasks that rejected the command or could not be reached."`
	Failures  []BulkFailure     `json:"failures" doc:"Failures in the order of the tasks; never null."`
	Started   []BulkStartedTask `json:"started,omitempty" nullable:"false" doc:"New tasks of rerun and fork, including tasks that this request had started before."`
	Next      string            `json:"next,omitempty" doc:"Cursor to continue with; absent if there are no more tasks."`
}

// BulkStartedTask is a new task that was started from another task.
type BulkStartedTask struct {
	Task string `json:"task" doc:"ID of the original task."`
	ID   string `json:"id" doc:"ID of the new task."`
}

// BulkFailure is a task for which the command failed, with the reason.
type BulkFailure struct {
	Task    string `json:"task" doc:"ID of the task."`
	Code    string `json:"code" doc:"Code as in a problem; after busy, the same request can be sent again."`
	Message string `json:"message" doc:"Description of the failure."`
}
