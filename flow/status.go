package flow

// TaskStatus is the state of a task. Paused is a time beside it, not a status.
type TaskStatus string

// The states of a task.
const (
	TaskPending   TaskStatus = "pending"
	TaskRunning   TaskStatus = "running"
	TaskCompleted TaskStatus = "completed"
	TaskFailed    TaskStatus = "failed"
	TaskCanceling TaskStatus = "canceling"
	TaskCanceled  TaskStatus = "canceled"
)

// Ended reports whether a task in this status is over for good.
func (s TaskStatus) Ended() bool {
	return s == TaskCompleted || s == TaskFailed || s == TaskCanceled
}

// StepStatus is the state of a step.
type StepStatus string

// The states of a step.
const (
	StepCreated   StepStatus = "created"
	StepStarted   StepStatus = "started"
	StepCompleted StepStatus = "completed"
	StepFailed    StepStatus = "failed"
	StepSkipped   StepStatus = "skipped"
)

// UnitStatus is the state of a unit. It is one byte because a step may have 100,000 of them.
type UnitStatus uint8

// The states of a unit. Pending units wait for a place in the window or for their retry.
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

// Ended reports whether a unit in this status is over for good.
func (s UnitStatus) Ended() bool { return s >= UnitCompleted }

// AttemptStatus is the state of an attempt.
type AttemptStatus string

// The states of an attempt.
const (
	AttemptRunning  AttemptStatus = "running"
	AttemptOK       AttemptStatus = "ok"
	AttemptError    AttemptStatus = "error"
	AttemptTimeout  AttemptStatus = "timeout"
	AttemptCanceled AttemptStatus = "canceled"
	AttemptSkipped  AttemptStatus = "skipped" // there was none, because its node was skipped
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
	ReasonFollowed         = "followed"  // in graph mode: it failed, and on_error has its task go on as after a success
	ReasonWithdrawn        = "withdrawn" // it had begun when its task or scope was over: nobody has ended it, and the journal tells of no end
)
