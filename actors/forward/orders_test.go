package forward

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
)

// noShards owns no task.
type noShards struct{}

func (noShards) OwnsAll() bool        { return false }
func (noShards) OwnsTask(string) bool { return false }

func TestReportOfAFunctionIsAboutItsDeliveryAlone(t *testing.T) {
	job := engine.JobKey{Task: "t", At: flow.Address{Node: flow.CodeMain, Visit: 1, Attempt: 1}}
	for name, tt := range map[string]struct {
		report   flow.Report
		function bool
		want     []bool // for the deliveries 1 and 2
	}{
		"a job that ended":         {flow.Report{}, false, []bool{true, true}},
		"a job that was lost":      {flow.Report{Lost: true, Given: 1}, false, []bool{true, false}},
		"a function that returned": {flow.Report{Given: 1}, true, []bool{true, false}},
		"a function that waits":    {flow.Report{Given: 1, GivenUp: &flow.GivenUp{}}, true, []bool{true, false}},
	} {
		f := NewOrders(Config{Shards: noShards{}, Now: func() int64 { return 1 << 40 }})
		tt.report.Address = job.At
		f.rememberReport(engine.Order{Task: "t", Command: tt.report})
		require.Equal(t, tt.want, []bool{f.HasReported(job, 1, tt.function), f.HasReported(job, 2, tt.function)}, name)
	}
}
