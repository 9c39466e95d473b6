package api

import "github.com/troupe-engine/troupe/flow"

// states are the words for a task's state: ours, and those of the other families.
var states = map[string]flow.TaskStatus{
	"pending": flow.TaskPending, "created": flow.TaskPending, "queued": flow.TaskPending,
	"running": flow.TaskRunning, "started": flow.TaskRunning, "waiting_queue": flow.TaskRunning,
	"completed": flow.TaskCompleted, "success": flow.TaskCompleted, "succeeded": flow.TaskCompleted,
	"failed": flow.TaskFailed, "failure": flow.TaskFailed, "error": flow.TaskFailed,
	"canceling": flow.TaskCanceling, "cancelling": flow.TaskCanceling,
	"canceled": flow.TaskCanceled, "cancelled": flow.TaskCanceled,
}

// StateOf is the state that a word of any dialect means; "" when nobody uses the word.
func StateOf(word string) flow.TaskStatus { return states[word] }
