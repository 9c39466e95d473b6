package api

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/semaphore"

	"github.com/troupe-engine/troupe/flow"
)

func TestLargeTasksAreReadAsMemoryAllows(t *testing.T) {
	all := semaphore.NewWeighted(answerMemory)
	newRoom := func() *room { return &room{in: all, patience: 10 * time.Millisecond} }
	first, second := newRoom(), newRoom()
	require.NoError(t, first.take(t.Context(), answerMemory/2))
	require.NoError(t, first.take(t.Context(), answerMemory/4), "one after the other")
	require.NoError(t, second.take(t.Context(), answerMemory/2))
	third := newRoom()
	require.Equal(t, flow.Busy, flow.KindOf(third.take(t.Context(), 1)))
	first.leave()
	require.NoError(t, third.take(t.Context(), answerMemory/2))
	second.leave()
	third.leave()
	third.leave()

	alone := newRoom()
	require.NoError(t, alone.take(t.Context(), 10*answerMemory), "one that is larger than all of it is alone")
	alone.leave()
	require.NoError(t, alone.take(t.Context(), 1), "what goes on as a stream only takes its turn")
	require.True(t, all.TryAcquire(answerMemory))
}
