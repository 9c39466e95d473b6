package cluster

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/persistence"
)

func TestASummaryShowsTheStatesOfMembers(t *testing.T) {
	c := newTable()
	c.join("a", "b", "c", "d")
	c.give("a", 1, 2, 3)
	c.give("b", 4)
	c.give("c", 5, 6)
	c.row("b").Draining = true
	c.row("c").Until = c.Now
	c.fence("d")
	c.row("d").Until = c.Now - 1
	s := Summarize(c.view())
	require.Equal(t, persistence.Shards-6, s.Unowned)
	require.Equal(t, c.Generation, s.Generation)
	type brief struct {
		name   string
		state  MemberState
		lease  time.Duration
		shards int
	}
	var got []brief
	for _, m := range s.Members {
		got = append(got, brief{m.Name, m.State, m.Lease, m.Shards})
	}
	require.Equal(t, []brief{{"a", Alive, ttl, 3}, {"b", Draining, ttl, 1}, {"c", Overdue, 0, 2}, {"d", Gone, 0, 0}}, got)
}
