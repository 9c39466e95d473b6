package api

import "github.com/troupe-engine/troupe/flow"

// states maps the names of task states in all dialects to flow.TaskStatus.
var states = map[string]flow.TaskStatus{
	"pending": flow.TaskPending, "created": flow.TaskPending, "queued": flow.TaskPending,
	"running": flow.TaskRunning, "started": flow.TaskRunning, "waiting_queue": flow.TaskRunning,
	"completed": flow.TaskCompleted, "success": flow.TaskCompleted, "succeeded": flow.TaskCompleted,
	"failed": flow.TaskFailed, "failure": flow.TaskFailed, "error": flow.TaskFailed,
	"canceling": flow.TaskCanceling, "cancelling": flow.TaskCanceling,
	"canceled": flow.TaskCanceled, "cancelled": flow.TaskCanceled,
}

// StateOf returns the state for a name of any dialect; "" for an unknown name.
func StateOf(word string) flow.TaskStatus { return states[word] }
