package actors_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/actors"
)

func TestOldDeparturesAreForgotten(t *testing.T) {
	store := newLeaping()
	c := newCircuit(store)
	th := c.join(t, actors.Config{Lease: time.Second})
	for i := range 100 {
		th.Gone(fmt.Sprint("long-ago-", i), true)
	}
	require.Equal(t, 100, th.Departed())
	leapt := th.Now().Add(2 * time.Minute)
	store.leap(3 * time.Minute)
	require.Eventually(t, func() bool { return th.Now().After(leapt) }, patience, time.Millisecond)
	th.Gone("just-now", false)
	require.Equal(t, 1, th.Departed())
}
