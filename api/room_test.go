package api

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
)

func TestLargeTasksAreReadAsMemoryAllows(t *testing.T) {
	all := newLane(100)
	newRoom := func() *requestMemory { return &requestMemory{in: all, patience: 10 * time.Millisecond} }
	first, second, third := newRoom(), newRoom(), newRoom()
	require.NoError(t, first.Take(t.Context(), 50))
	require.NoError(t, first.Take(t.Context(), 25), "one after the other")
	require.NoError(t, second.Take(t.Context(), 50))
	require.Equal(t, flow.Busy, flow.ErrorKindOf(third.Take(t.Context(), 1)))
	first.Keep(60)
	first.Keep(49)
	require.NoError(t, third.Take(t.Context(), 1))
	first.releaseAll()
	require.NoError(t, third.Take(t.Context(), 50))
	second.releaseAll()
	third.releaseAll()
	third.releaseAll()

	alone := newRoom()
	require.NoError(t, alone.Take(t.Context(), 1000), "one that is larger than all of it is alone")
	require.Equal(t, flow.Busy, flow.ErrorKindOf(newRoom().Take(t.Context(), 1)))
	alone.Keep(1000)
	alone.releaseAll()
	require.NoError(t, alone.Take(t.Context(), 1), "it is over")
	require.True(t, all.free.TryAcquire(100))
}

func TestStreamsTakeNoMemoryFromReads(t *testing.T) {
	reads, followed := newLane(100), newLane(50)
	newRoom := func() *requestMemory { return &requestMemory{in: reads, patience: 10 * time.Millisecond} }
	waiting, late := newRoom(), newRoom()
	require.NoError(t, waiting.Take(t.Context(), 100))
	waiting.moveTo(followed)
	require.NoError(t, waiting.Take(t.Context(), 50))
	require.True(t, reads.free.TryAcquire(100))
	late.moveTo(followed)
	require.Equal(t, flow.Busy, flow.ErrorKindOf(late.Take(t.Context(), 1)), "what is followed is bounded, too")
	waiting.releaseAll()
	require.NoError(t, late.Take(t.Context(), 1))
}
