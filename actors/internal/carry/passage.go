package carry

import "github.com/troupe-engine/troupe/flow"

// Passage is a job on its way through somebody who hands it on to others.
type Passage interface {
	// Job is what is to be carried out. It is asked for before the passage lands.
	Job() flow.Job
	// Of says which task's the job is, and which attempt, also when the passage has landed.
	Of() (task string, at flow.Address)
	// Begin is asked when somebody is about to get the job. When it is false nobody is to get it:
	// it is not wanted any longer, or it will be sent anew.
	Begin() bool
	// Foreign says that the job is of another member's task: who has nobody for it gives it back,
	// Lost and Unbegun.
	Foreign() bool
	// Over says that nobody waits for the job any longer.
	Over() bool
	// Land reports on the job, once. A report that is Lost has it carried out again, by the member
	// that it is To.
	Land(flow.Report)
	// Part lands a job whose worker goes on with it elsewhere: that is where it is reported.
	Part()
}
