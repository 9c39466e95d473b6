package actors

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestServicesThatAreOnlyAskedForDoNotFillMemory(t *testing.T) {
	q := newQueue(nil)
	q.shelf("kept").refs = []*ref{{service: "kept"}}
	for i := range 5 * maxShelves {
		q.shelf(fmt.Sprint(i))
	}
	require.LessOrEqual(t, len(q.ready), maxShelves+1)
	require.Len(t, q.shelf("kept").refs, 1)
}
