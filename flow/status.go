package flow

// TaskStatus is the status of a task. A pause is not a status, but a separate time.
type TaskStatus string

// Values of TaskStatus.
const (
	TaskPending   TaskStatus = "pending"
	TaskRunning   TaskStatus = "running"
	TaskCompleted TaskStatus = "completed"
	TaskFailed    TaskStatus = "failed"
	TaskCanceling TaskStatus = "canceling"
	TaskCanceled  TaskStatus = "canceled"
)

// Ended reports whether a task with this status has ended.
func (s TaskStatus) Ended() bool {
	return s == TaskCompleted || s == TaskFailed || s == TaskCanceled
}

// StepStatus is the status of a step.
type StepStatus string

// Values of StepStatus.
const (
	StepCreated   StepStatus = "created"
	StepStarted   StepStatus = "started"
	StepCompleted StepStatus = "completed"
	StepFailed    StepStatus = "failed"
	StepSkipped   StepStatus = "skipped"
)

// UnitStatus is the status of a unit. It is one byte because a step may have 100,000 units.
type UnitStatus uint8

// Values of UnitStatus. Pending units wait for a place in the window or for their retry.
const (
	UnitPending UnitStatus = iota
	UnitDispatched
	UnitRunning
	UnitCompleted
	UnitFailed
	UnitCanceled
)

var unitStatusNames = [...]string{"pending", "dispatched", "running", "completed", "failed", "canceled"}

func (s UnitStatus) String() string { return unitStatusNames[s] }

// Ended reports whether a unit with this status has ended.
func (s UnitStatus) Ended() bool { return s >= UnitCompleted }

// AttemptStatus is the status of an attempt.
type AttemptStatus string

// Values of AttemptStatus.
const (
	AttemptRunning  AttemptStatus = "running"
	AttemptOK       AttemptStatus = "ok"
	AttemptError    AttemptStatus = "error"
	AttemptTimeout  AttemptStatus = "timeout"
	AttemptCanceled AttemptStatus = "canceled"
	AttemptSkipped  AttemptStatus = "skipped" // the node was skipped, so there was no attempt
)

// Reasons why a step failed or was skipped.
const (
	ReasonTaskError        = "task_error"
	ReasonTaskTimeout      = "task_timeout"
	ReasonCondition        = "condition_error"
	ReasonPreprocessing    = "preprocessing_error"
	ReasonSkipped          = "skipped"
	ReasonUnmet            = "condition_unmet"
	ReasonDependency       = "dependency_skipped"
	ReasonDependencyFailed = "dependency_failed"
	ReasonHandlerFailed    = "handler_failed"
	// ReasonIgnored means in graph mode that the step failed and the task continued as after a
	// success, because of on_error.
	ReasonIgnored = "ignored"
	// ReasonWithdrawn means that the step was active when its task or scope ended. The journal has
	// no event for its end.
	ReasonWithdrawn = "withdrawn"
	// ReasonUndo means in code mode that the function is called to undo its work.
	ReasonUndo = "undo"
	// ReasonWaited means in code mode that the function continues after a wait.
	ReasonWaited = "waited"
)
