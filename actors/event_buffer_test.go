package actors

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
)

func TestAnEventBufferStaysAsLargeAsADecisionHasMadeIt(t *testing.T) {
	b := &eventBuffer{all: make([]flow.Event, 8), back: smallBuffers}
	b.clear(append(b.events(), flow.Event{Type: flow.StepEntered}))
	require.Len(t, b.all, 8)
	require.Same(t, smallBuffers, b.back)

	events := b.events()
	for range 100 {
		events = append(events, flow.Event{Type: flow.StepEntered})
	}
	b.clear(events)
	require.GreaterOrEqual(t, cap(b.events()), 100)
	require.Same(t, largeBuffers, b.back, "whoever decides about one thing needs no large one")
	for _, e := range b.all {
		require.Zero(t, e, "nothing of it is left to the next one")
	}
}
