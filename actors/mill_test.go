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

func TestWhatStandsAsideHoldsUpNobodyAndLeavesNoFurtherGoroutinesAtWork(t *testing.T) {
	m := newMill()
	m.most = 1
	defer m.close()
	release, ran := make(chan struct{}), make(chan struct{})
	var aside sync.WaitGroup
	for range 5 {
		aside.Add(1)
		m.Schedule(func() {
			defer aside.Done()
			m.aside(func() { <-release })
		})
	}
	m.Schedule(func() { close(ran) })
	<-ran
	close(release)
	aside.Wait()
	var all sync.WaitGroup
	for range 1000 {
		all.Add(1)
		m.Schedule(all.Done)
	}
	all.Wait()
	require.Eventually(t, func() bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		return m.most == 1 && m.working-m.idle <= 1
	}, time.Minute, time.Millisecond)
}
