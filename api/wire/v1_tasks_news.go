package wire

// TaskNews lists changed tasks that a filter selects, in their new state. They include tasks that
// the filter did not select before.
type TaskNews struct {
	Changed []TaskSummary `json:"changed" doc:"Changed tasks; never null."`
	New     int           `json:"new" doc:"Number of changed tasks that the filter did not select before."`
	Left    []string      `json:"left,omitempty" doc:"IDs of tasks that the filter no longer selects, among the first 500 of the list and those sent since."`
}
