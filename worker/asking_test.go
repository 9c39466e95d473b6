package worker

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPollsAskForNoMoreThanAreFree(t *testing.T) {
	w := New(Config{Concurrency: 20})
	poll := func() int { // for the first job
		require.True(t, w.takeSlot(t.Context()))
		return w.reserveJobs()
	}
	require.Equal(t, 10, poll())
	second := poll()
	require.Equal(t, 10, second)

	w.releaseJobs(second) // it has brought four jobs
	for range 3 {
		require.True(t, w.takeSlot(t.Context()))
	}
	require.Equal(t, 6, poll(), "four are at work, and the first poll may bring ten")
	require.Equal(t, 1, poll(), "nothing else is free")
}

func TestAWorkerWithFewSlotsHasOnePollUnderWay(t *testing.T) {
	require.Equal(t, 1, New(Config{Concurrency: 1}).pollLoops())
	require.Equal(t, 1, New(Config{Concurrency: manySlots - 1}).pollLoops())
	require.Equal(t, 2, New(Config{Concurrency: manySlots}).pollLoops())
}
