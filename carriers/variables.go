package carriers

import (
	"strconv"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/trace"
)

// Variables returns the environment variables that describe a job to its program.
func Variables(job *flow.Job) map[string]string {
	own := map[string]string{
		"TROUPE_JOB": job.ID(), "TROUPE_KEY": job.Key(), "TROUPE_TASK": job.Task,
		"TROUPE_NODE": job.Step(), "TROUPE_ATTEMPT": strconv.Itoa(job.Attempt),
		"TROUPE_UNIT": strconv.Itoa(job.Unit), "TROUPE_UNITS": strconv.Itoa(max(job.Units, 1)),
		"TRACEPARENT": trace.Parent(job.Task, job.Traced, job.Address),
	}
	if state := trace.State(job.Traced); state != "" {
		own["TRACESTATE"] = state
	}
	if job.Plan != nil {
		own["TROUPE_FLOW"] = job.Plan.FlowSlug
	}
	return own
}
