package wire

// TaskNews holds changes of the tasks that a filter selects, in their new state. They include tasks
// that the filter did not select before.
type TaskNews struct {
	Changed []TaskSummary `json:"changed" doc:"never null"`
	New     int           `json:"new" doc:"how many of them the filter did not pick before"`
	Left    []string      `json:"left,omitempty" doc:"ids of tasks that it picks no longer; of the first 500 of the list, and those that were told"`
}
