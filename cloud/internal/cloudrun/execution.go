package cloudrun

import (
	"cmp"
	"slices"
	"time"

	run "google.golang.org/api/run/v2"

	"github.com/troupe-engine/troupe/cloud/internal/outside"
	"github.com/troupe-engine/troupe/flow"
)

// runExecution is the used part of an execution.
type runExecution struct {
	name, job, logs string // job is the id of our job; "" if it is not ours
	created         time.Time
	status          flow.ExternalStatus
}

func executionOf(e *run.GoogleCloudRunV2Execution) *runExecution {
	x := &runExecution{name: e.Name, logs: e.LogUri, status: statusOf(e)}
	x.created, _ = time.Parse(time.RFC3339Nano, e.CreateTime) // without a time it counts as old
	if e.Template == nil {
		return x
	}
	for _, c := range e.Template.Containers {
		for _, v := range c.Env {
			if v.Name == outside.JobVariable {
				x.job = v.Value
			}
		}
	}
	return x
}

// statusOf returns the status of an execution by its condition Completed. The other conditions
// describe intermediate states.
func statusOf(e *run.GoogleCloudRunV2Execution) flow.ExternalStatus {
	status := flow.ExternalStatus{BeganAt: beganAt(e)}
	if c := conditionOf(e, "Completed"); c != nil {
		switch c.State {
		case "CONDITION_SUCCEEDED":
			status.Ended = true
		case "CONDITION_FAILED":
			status.Ended, status.Error = true, "Cloud Run execution failed: "+cmp.Or(c.Message, "Execution failed")
		}
	}
	return status
}

func conditionOf(e *run.GoogleCloudRunV2Execution, kind string) *run.GoogleCloudRunV2Condition {
	i := slices.IndexFunc(e.Conditions, func(c *run.GoogleCloudRunV2Condition) bool { return c.Type == kind })
	if i < 0 {
		return nil
	}
	return e.Conditions[i]
}

// beganAt returns the start time of an execution; 0 if it is pending. It may be pending as long as
// there is no capacity.
func beganAt(e *run.GoogleCloudRunV2Execution) int64 {
	if at, err := time.Parse(time.RFC3339Nano, e.StartTime); err == nil && at.UnixMilli() > 0 {
		return at.UnixMilli()
	}
	if c := conditionOf(e, "Started"); e.RunningCount > 0 || c != nil && c.State == "CONDITION_SUCCEEDED" {
		return time.Now().UnixMilli()
	}
	return 0
}
