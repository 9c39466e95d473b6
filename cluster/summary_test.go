package cluster

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/persistence"
)

func TestASummarySaysHowMembersAre(t *testing.T) {
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
	require.Equal(t, []brief{{"a", Living, ttl, 3}, {"b", Draining, ttl, 1}, {"c", Overdue, 0, 2}, {"d", Gone, 0, 0}}, got)
}

func TestTheMovesOfTheLastMinutesAreTold(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a := w.cluster("a")[0]
		moves := a.keeper.Moves()
		require.Len(t, moves, 1)
		require.Equal(t, Move{moves[0].At, "", a.incarnation, persistence.Shards}, moves[0])

		time.Sleep(time.Minute)
		b := w.cluster("b")[0]
		time.Sleep(time.Second)
		moves = a.keeper.Moves()
		require.Len(t, moves, 2, "what moved in portions is one move")
		require.Equal(t, Move{moves[1].At, a.incarnation, b.incarnation, 512}, moves[1])
		require.LessOrEqual(t, time.Since(moves[1].At), 2*time.Second)
		require.LessOrEqual(t, len(b.keeper.Moves()), 1)

		b.kill()
		w.within(5*time.Second, "a owns all", w.settled)
		time.Sleep(time.Second)
		moves = a.keeper.Moves()
		require.Len(t, moves, 3)
		require.Equal(t, Move{moves[2].At, b.incarnation, a.incarnation, 512}, moves[2])

		time.Sleep(9*time.Minute + 30*time.Second)
		require.Len(t, a.keeper.Moves(), 2)
		time.Sleep(10 * time.Minute)
		require.Empty(t, a.keeper.Moves())
	})
}

func TestMovesHaveABound(t *testing.T) {
	c := newTable()
	var m moves
	m.add(c.view(), true)
	for i := range 2 * mostMoves {
		c.give(fmt.Sprint("m", i), i%persistence.Shards)
		c.Now += oneMovesIn.Milliseconds() / 10
		m.add(c.view(), false)
		require.LessOrEqual(t, len(m.list()), mostMoves)
	}
	require.Len(t, m.list(), mostMoves)
}
