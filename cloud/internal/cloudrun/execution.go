package cloudrun

import (
	"cmp"
	"slices"
	"time"

	run "google.golang.org/api/run/v2"

	"github.com/troupe-engine/troupe/cloud/internal/outside"
	"github.com/troupe-engine/troupe/flow"
)

// execution is what we have to know of one.
type execution struct {
	name, job, logs string // job = the id of ours; "" = it is nobody's
	created         time.Time
	status          flow.ExternalStatus
}

func executionOf(e *run.GoogleCloudRunV2Execution) *execution {
	x := &execution{name: e.Name, logs: e.LogUri, status: statusOf(e)}
	x.created, _ = time.Parse(time.RFC3339Nano, e.CreateTime) // without it it counts as old
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

// statusOf tells how an execution is: its condition Completed says it, the others are about the way there.
func statusOf(e *run.GoogleCloudRunV2Execution) flow.ExternalStatus {
	i := slices.IndexFunc(e.Conditions, func(c *run.GoogleCloudRunV2Condition) bool { return c.Type == "Completed" })
	if i < 0 {
		return flow.ExternalStatus{}
	}
	switch c := e.Conditions[i]; c.State {
	case "CONDITION_SUCCEEDED":
		return flow.ExternalStatus{Ended: true}
	case "CONDITION_FAILED":
		return flow.ExternalStatus{Ended: true, Error: "Cloud Run execution failed: " + cmp.Or(c.Message, "Execution failed")}
	}
	return flow.ExternalStatus{}
}
