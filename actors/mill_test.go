package actors

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAMillRunsEverythingOnceAndInOrder(t *testing.T) {
	m := newMill()
	m.most = 1
	const n = 1000
	var got []int
	var all sync.WaitGroup
	all.Add(n)
	for i := range n {
		m.Schedule(func() {
			got = append(got, i)
			all.Done()
		})
	}
	all.Wait()
	for i := range n {
		require.Equal(t, i, got[i])
	}
	m.close()
}

func TestAMillThatIsClosedStillRunsWhatComes(t *testing.T) {
	m := newMill()
	m.close()
	done := make(chan struct{})
	m.Schedule(func() { close(done) })
	select {
	case <-done:
	case <-time.After(time.Minute):
		require.Fail(t, "it did not run")
	}
}
