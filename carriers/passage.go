package carriers

import "github.com/troupe-engine/troupe/flow"

// Passage is a job that is handed to a relay.
type Passage interface {
	// Job returns the job to carry out. It must be called before the passage lands.
	Job() flow.Job
	// Of returns the task and the address of the job, also after the passage has landed.
	Of() (task string, at flow.Address)
	// FunctionHost returns the connection of a function flow to its task. It must be called before
	// the passage lands.
	FunctionHost() FunctionHost
	// Begin is called before a worker gets the job. If it returns false, no worker may get the job,
	// because the job was withdrawn or will be sent again.
	Begin() bool
	// Foreign reports whether another member owns the job's task. Without a matching worker, the
	// relay then returns the job as Lost and Unbegun.
	Foreign() bool
	// Over reports whether the job is no longer needed.
	Over() bool
	// Land reports the result of the job, once. A report with Lost makes the job run again, at the
	// member in To.
	Land(flow.Report)
	// Part lands a job without a result, because its worker takes the job to another member.
	Part()
}
