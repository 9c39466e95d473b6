package cluster

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/persistence"
)

func TestPortionsOfAMoveAreOneMove(t *testing.T) {
	at := func(s int64) int64 { return 1_000_000 + s*1000 }
	moves := Moves([]persistence.Move{
		{At: at(0), To: "a", Shards: 1024},
		{At: at(60), From: "a", To: "b", Shards: 64}, {At: at(60), From: "a", To: "c", Shards: 10},
		{At: at(61), From: "a", To: "b", Shards: 64}, {At: at(64), From: "a", To: "b", Shards: 2},
		{At: at(65), From: "a", To: "b", Shards: 7},
		{At: at(66), From: "b", To: "a", Shards: 1},
	})
	want := func(s int64, from, to string, shards int) Move { return Move{time.UnixMilli(at(s)), from, to, shards} }
	require.Equal(t, []Move{want(0, "", "a", 1024), want(60, "a", "b", 130), want(60, "a", "c", 10),
		want(65, "a", "b", 7), want(66, "b", "a", 1)}, moves)
	require.Empty(t, Moves(nil))
}

func TestMovesHaveABound(t *testing.T) {
	var portions []persistence.Move
	for i := range 2 * mostMoves {
		portions = append(portions, persistence.Move{At: int64(i), To: fmt.Sprint("m", i), Shards: 1})
	}
	moves := Moves(portions)
	require.Len(t, moves, mostMoves)
	require.Equal(t, fmt.Sprint("m", 2*mostMoves-1), moves[mostMoves-1].To)
}

func TestTheMovesOfTheLastMinutesAreTold(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		told := func() []Move {
			portions, err := w.store.Moves(t.Context())
			require.NoError(t, err)
			return Moves(portions)
		}
		a := w.cluster("a")[0]
		moves := told()
		require.Equal(t, []Move{{moves[0].At, "", a.incarnation, persistence.Shards}}, moves)

		time.Sleep(time.Minute)
		b := w.cluster("b")[0]
		time.Sleep(time.Second)
		moves = told()
		require.Len(t, moves, 2)
		require.Equal(t, Move{moves[1].At, a.incarnation, b.incarnation, 512}, moves[1])
		require.LessOrEqual(t, time.Since(moves[1].At), 2*time.Second)

		b.kill()
		w.within(5*time.Second, "a owns all", w.settled)
		time.Sleep(time.Second)
		moves = told()
		require.Len(t, moves, 3)
		require.Equal(t, Move{moves[2].At, b.incarnation, a.incarnation, 512}, moves[2])

		time.Sleep(9*time.Minute + 30*time.Second)
		require.Len(t, told(), 2)
		time.Sleep(10 * time.Minute)
		require.Empty(t, told())
	})
}
