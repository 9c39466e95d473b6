package external_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/carriers/external"
	"github.com/troupe-engine/troupe/flow"
)

// told records the calls of a starter.
type told struct{ lost []bool }

func (s *told) Start(_ context.Context, _ flow.Job, lost bool) flow.Report {
	s.lost = append(s.lost, lost)
	return flow.Report{}
}

func TestARepeatedDeliveryIsMarkedLostWithoutAnEvent(t *testing.T) {
	s := &told{}
	c := external.Starters{"s": s}.Carrier()
	job := flow.Job{Task: "t", Address: flow.Address{Node: "a", Visit: 1, Attempt: 1}, Exec: &flow.Exec{Service: "s"}}
	next := job
	next.Attempt = 2
	for _, j := range []flow.Job{job, next, job} {
		c.Carry(t.Context(), j)
	}
	next.Attempt, next.Given = 3, 1
	c.Carry(t.Context(), next)
	require.Equal(t, []bool{false, false, true, true}, s.lost)
}
