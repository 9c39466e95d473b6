package wire

// TaskNews is what has become of the tasks that a filter picks: as they are now, those that it has
// begun to pick among them.
type TaskNews struct {
	Changed []TaskSummary `json:"changed" doc:"never null"`
	New     int           `json:"new" doc:"how many of them the filter did not pick before"`
	Left    []string      `json:"left,omitempty" doc:"ids of tasks that it picks no longer; of the first 500 of the list, and those that were told"`
}
