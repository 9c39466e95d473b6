package actors

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
)

func TestARoomStaysAsLargeAsADecisionHasMadeIt(t *testing.T) {
	r := &room{all: make([]flow.Event, 8), back: smallRooms}
	r.clear(append(r.events(), flow.Event{Type: flow.StepEntered}))
	require.Len(t, r.all, 8)
	require.Same(t, smallRooms, r.back)

	events := r.events()
	for range 100 {
		events = append(events, flow.Event{Type: flow.StepEntered})
	}
	r.clear(events)
	require.GreaterOrEqual(t, cap(r.events()), 100)
	require.Same(t, largeRooms, r.back, "whoever decides about one thing needs no large one")
	for _, e := range r.all {
		require.Zero(t, e, "nothing of it is left to the next one")
	}
}
