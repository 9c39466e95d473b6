package actors

// The methods of a member are grouped by purpose. A group is a wrapper of the member pointer, so it
// costs nothing to create. Calls between groups name the group, as in m.carryPart().
type (
	// memberWiring creates the parts of a member.
	memberWiring struct{ *Member }
	// memberRequests admits requests, passes them to tasks, and returns the answers to callers.
	memberRequests struct{ *Member }
	// taskStarting prepares the start of a task.
	taskStarting struct{ *Member }
	// jobCarrying carries out jobs and exchanges messages about jobs with their tasks.
	jobCarrying struct{ *Member }
	// memberEnding ends the work of a member, and logs how tasks have ended.
	memberEnding struct{ *Member }
	// taskLeftovers finds all rows of the store that must end together with an unreadable task.
	taskLeftovers struct{ *Member }
)

func (m *Member) wirePart() memberWiring      { return memberWiring{m} }
func (m *Member) requestPart() memberRequests { return memberRequests{m} }
func (m *Member) startPart() taskStarting     { return taskStarting{m} }
func (m *Member) endPart() memberEnding       { return memberEnding{m} }
func (m *Member) carryPart() jobCarrying      { return jobCarrying{m} }
func (m *Member) leftoverPart() taskLeftovers { return taskLeftovers{m} }
