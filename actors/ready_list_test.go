package actors

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestServicesThatAreOnlyAskedForDoNotFillMemory(t *testing.T) {
	q := newQueue(nil)
	q.readyList("kept", kind{}).refs = []*ref{{service: "kept"}}
	for i := range 5 * maxReadyLists {
		q.readyList(fmt.Sprint(i), kind{})
	}
	require.LessOrEqual(t, len(q.ready), maxReadyLists+1)
	require.Len(t, q.readyList("kept", kind{}).refs, 1)
}

func TestJobsThatAreGoneLeaveListsNobodyLooksAt(t *testing.T) {
	s := &readyList{}
	for i := range 10 * manyDead {
		r := &ref{at: int64(i)}
		s.put(r)
		r.gone = true
		s.dropped()
	}
	require.LessOrEqual(t, len(s.refs), manyDead+1)
	require.Nil(t, s.first())
	require.Zero(t, s.dead)
}
