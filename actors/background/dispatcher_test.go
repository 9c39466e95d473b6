package background

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestADispatcherRunsEverythingOnceAndInOrder(t *testing.T) {
	d := NewDispatcher()
	d.maxWorkers = 1
	const n = 1000
	var got []int
	var all sync.WaitGroup
	all.Add(n)
	for i := range n {
		d.Schedule(func() {
			got = append(got, i)
			all.Done()
		})
	}
	all.Wait()
	for i := range n {
		require.Equal(t, i, got[i])
	}
	d.Close()
}

func TestAClosedDispatcherStillRunsNewMailboxes(t *testing.T) {
	d := NewDispatcher()
	d.Close()
	done := make(chan struct{})
	d.Schedule(func() { close(done) })
	select {
	case <-done:
	case <-time.After(time.Minute):
		require.Fail(t, "it did not run")
	}
}

func TestRunAsideBlocksNoMailboxAndLeavesNoExtraGoroutines(t *testing.T) {
	d := NewDispatcher()
	d.maxWorkers = 1
	defer d.Close()
	release, ran := make(chan struct{}), make(chan struct{})
	var aside sync.WaitGroup
	for range 5 {
		aside.Add(1)
		d.Schedule(func() {
			defer aside.Done()
			d.RunAside(func() { <-release })
		})
	}
	d.Schedule(func() { close(ran) })
	<-ran
	close(release)
	aside.Wait()
	var all sync.WaitGroup
	for range 1000 {
		all.Add(1)
		d.Schedule(all.Done)
	}
	all.Wait()
	require.Eventually(t, func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		return d.maxWorkers == 1 && d.workers-d.idleWorkers <= 1
	}, time.Minute, time.Millisecond)
}
