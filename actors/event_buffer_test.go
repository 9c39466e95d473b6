package actors

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
)

func TestAnEventBufferKeepsItsSize(t *testing.T) {
	b := &eventBuffer{all: make([]flow.Event, 8), pool: smallBuffers}
	b.clearEvents(append(b.emptyEvents(), flow.Event{Type: flow.StepEntered}))
	require.Len(t, b.all, 8)
	require.Same(t, smallBuffers, b.pool)

	events := b.emptyEvents()
	for range 100 {
		events = append(events, flow.Event{Type: flow.StepEntered})
	}
	b.clearEvents(events)
	require.GreaterOrEqual(t, cap(b.emptyEvents()), 100)
	require.Same(t, largeBuffers, b.pool, "whoever decides about one thing needs no large one")
	for _, e := range b.all {
		require.Zero(t, e, "nothing of it is left to the next one")
	}
}
