package wire

// Bulk gives one command to many tasks, or starts a task for each.
type Bulk struct {
	Action  string      `json:"action" enum:"retry,cancel,pause,resume,rerun,fork" doc:"rerun and fork start a new task for each: one that does all again, or one that goes on from its history"`
	Filter  *TaskFilter `json:"filter,omitempty" doc:"the tasks that a list with these parameters has, the newest first; without state those that the action is for"`
	IDs     []string    `json:"ids,omitempty" maxItems:"1000" doc:"in place of a filter, each once" nullable:"false"`
	Limit   int         `json:"limit,omitempty" minimum:"0" maximum:"1000" doc:"how many tasks of a filter at most; 0 = 1,000"`
	Cursor  string      `json:"cursor,omitempty" maxLength:"1000" doc:"next of the answer before"`
	DryRun  bool        `json:"dry_run,omitempty" doc:"answers how many tasks there are, and does nothing"`
	From    string      `json:"from,omitempty" maxLength:"200" doc:"fork: the node that is done again, with all that follows; absent = where the task failed"`
	Version int         `json:"version,omitempty" minimum:"0" doc:"rerun, fork: of the flow; 0 = that of each task"`
	Newest  bool        `json:"newest,omitempty" doc:"rerun, fork: the newest version"`
	Cancel
}

// TaskFilter picks tasks as the parameters of a list of tasks do, by the same names.
type TaskFilter struct {
	Flow        []string `json:"flow,omitempty" maxItems:"50" nullable:"false" doc:"slugs or ids; any of them"`
	Version     int      `json:"version,omitempty" minimum:"0" doc:"number of their version; 0 = any"`
	IDPrefix    string   `json:"id_prefix,omitempty" maxLength:"256" doc:"what the ids begin with"`
	Text        string   `json:"q,omitempty" maxLength:"256" doc:"what the ids begin with, or what a label says, or what is in the error"`
	State       []string `json:"state,omitempty" maxItems:"20" nullable:"false" doc:"any of them; paused alone"`
	Failure     string   `json:"error,omitempty" maxLength:"200" doc:"how they failed: the beginning of their error, 200 characters, with # in place of each number behind the name of the node"`
	Waits       []string `json:"waits,omitempty" maxItems:"20" nullable:"false" doc:"what they wait for: approval, event, timer or manual; any of them"`
	Queued      string   `json:"queued,omitempty" maxLength:"256" doc:"a service: only those with jobs in its queue"`
	Node        string   `json:"node,omitempty" maxLength:"1000" doc:"graph mode: where the cursor is"`
	Label       []string `json:"label,omitempty" maxItems:"20" nullable:"false" doc:"name:text; all of them"`
	CreatedFrom Time     `json:"created_from,omitzero"`
	CreatedTo   Time     `json:"created_to,omitzero"`
	EndedFrom   Time     `json:"ended_from,omitzero"`
	EndedTo     Time     `json:"ended_to,omitzero"`
	DurationMin int64    `json:"duration_min,omitempty" minimum:"0" doc:"milliseconds"`
	DurationMax int64    `json:"duration_max,omitempty" minimum:"0" doc:"milliseconds"`
}

// BulkDone answers a Bulk.
type BulkDone struct {
	Action    string        `json:"action"`
	Tasks     int           `json:"tasks" doc:"that the command was given to; after a dry run those that there are, of a filter at most 10,000"`
	Exact     bool          `json:"exact" doc:"false: there are more, or may be, where a dry run has not looked at all"`
	Changed   int           `json:"changed" doc:"that it had an effect on"`
	Unchanged int           `json:"unchanged" doc:"that stay as they were: they had ended, or had been given this request before"`
	Refused   int           `json:"refused" doc:"that refused it, or could not be asked"`
	Refusals  []BulkRefusal `json:"refusals" doc:"why, in the order of the tasks; never null"`
	Started   []BulkStarted `json:"started,omitempty" nullable:"false" doc:"the new tasks of rerun and fork, those too that this request has started before"`
	Next      string        `json:"next,omitempty" doc:"send it as cursor to go on; absent when there is no more"`
}

// BulkStarted is a task that was started for another one.
type BulkStarted struct {
	Task string `json:"task" doc:"the other one"`
	ID   string `json:"id"`
}

// BulkRefusal is a task that was not given a command, and why.
type BulkRefusal struct {
	Task string `json:"task"`
	Kind string `json:"kind" doc:"as that of a problem; busy: the same request may be sent again"`
	What string `json:"what"`
}
