package background

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/internal/host"
)

func TestClosedWorkStartsNothing(t *testing.T) {
	w := New(t.Context(), host.Host{Clock: RealClock{}})
	ran := make(chan struct{})
	w.Run(func() { close(ran) })
	<-ran
	require.True(t, w.Close())
	require.False(t, w.Close(), "it was closed before")
	w.Run(func() { t.Error("it ran") })
	require.Zero(t, w.AwaitEnd(time.Minute))
}

func TestWorkThatDoesNotEndIsCounted(t *testing.T) {
	w := New(t.Context(), host.Host{Clock: RealClock{}})
	release := make(chan struct{})
	for range 2 {
		w.Run(func() { <-release })
	}
	w.Close()
	w.Cancel()
	require.True(t, w.HasEnded())
	require.EqualValues(t, 2, w.AwaitEnd(time.Millisecond))
	close(release)
	require.Zero(t, w.AwaitEnd(time.Minute))
}

func TestContextsEndInTime(t *testing.T) {
	clock := &waits{}
	parked := 0
	w := New(t.Context(), host.Host{Clock: clock, Park: func(over func() bool) {
		parked++
		clock.ring()
		require.True(t, over())
	}})
	ctx, cancel := w.WithTimeout(time.Hour)
	defer cancel()
	require.NoError(t, ctx.Err())
	clock.ring()
	require.ErrorIs(t, ctx.Err(), context.Canceled)

	require.True(t, w.Sleep(time.Hour))
	require.Equal(t, 1, parked)

	ctx, cancel = w.WithTimeout(time.Hour)
	defer cancel()
	detached, cancel := w.DetachedContext(t.Context(), time.Hour)
	defer cancel()
	w.Cancel()
	require.Error(t, ctx.Err())
	require.NoError(t, detached.Err(), "it does not depend on the member")
	require.False(t, w.Sleep(time.Hour))
}
