package actors

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPolledServicesDoNotFillMemory(t *testing.T) {
	q := newQueue(nil)
	q.readyList("kept", jobFilter{}).refs = []*queuedJob{{service: "kept"}}
	for i := range 5 * maxReadyLists {
		q.readyList(fmt.Sprint(i), jobFilter{})
	}
	require.LessOrEqual(t, len(q.ready), maxReadyLists+1)
	require.Len(t, q.readyList("kept", jobFilter{}).refs, 1)
}

func TestGoneJobsLeaveUnusedLists(t *testing.T) {
	s := &readyList{}
	for i := range 10 * manyGone {
		r := &queuedJob{at: int64(i)}
		s.insertJob(r)
		r.gone = true
		s.noteRemoved()
	}
	require.LessOrEqual(t, len(s.refs), manyGone+1)
	require.Nil(t, s.firstJob())
	require.Zero(t, s.goneCount)
}
