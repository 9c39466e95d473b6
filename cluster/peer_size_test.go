package cluster

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
)

func TestALargeValueGetsThere(t *testing.T) {
	s := newStage(t, "a", "b")
	large := signal(s.taskOf("b"))
	large.Command = flow.Signal{Key: "k", Value: []byte(`"` + strings.Repeat("x", 10<<20) + `"`)}
	_, err := s.members["a"].router.Do(soon(t), large)
	require.NoError(t, err)
	require.Equal(t, large.Command, s.members["b"].effects[0].Command)
}

// overMax is the error of a connection that carried too much. On a busy machine the connection may
// also be lost because it is silent.
const overMax = "larger than configured max"

// huge is a value that is too large for one message.
func huge() []byte { return []byte(`"` + strings.Repeat("x", mostRead) + `"`) }

func TestARequestTooLargeForAConnectionIsRefusedAlone(t *testing.T) {
	s := newStage(t, "a", "b")
	a, b := s.members["a"].router, s.members["b"]
	waits, task := make(chan struct{}), s.taskOf("b")
	b.before = func(context.Context) { <-waits }
	beside := make(chan error)
	go func() {
		_, err := a.Do(soon(t), signal(task))
		beside <- err
	}()
	eventually(t, func() bool { b.mu.Lock(); defer b.mu.Unlock(); return len(b.effects) == 1 })

	large := engine.Order{Task: task, Command: flow.Signal{Key: "k", Value: huge()}}
	_, err := a.Do(soon(t), large)
	require.Equal(t, flow.Limit, flow.ErrorKindOf(err))
	require.ErrorContains(t, err, "67108") // bytes
	outcomes, err := a.DoAll(soon(t), engine.Orders{large})
	require.NoError(t, err)
	require.Equal(t, flow.Limit, flow.ErrorKindOf(outcomes[0].Err))
	close(waits)
	require.NoError(t, <-beside, "the line is the same")
	require.Zero(t, s.log.count(overMax), "the line was not lost for it")
}

func TestAnAnswerTooLargeForAConnectionIsRefusedAlone(t *testing.T) {
	s := newStage(t, "a", "b")
	a, task := s.members["a"].router, s.taskOf("b")
	job := func(size int) *engine.Claimed {
		return &engine.Claimed{Token: "t", Job: engine.Job{Input: []byte(`"` + strings.Repeat("x", size) + `"`)}}
	}
	orders := engine.Orders{signal(task), signal(task), signal(task), signal(task)}
	for i := range orders {
		orders[i].Request = fmt.Sprint(i)
	}
	s.members["b"].with(func() {
		for i, size := range []int{1, mostRead, mostRead * 2 / 3, mostRead / 2} {
			s.members["b"].done[fmt.Sprint(i)] = engine.Outcome{Job: job(size)}
		}
	})
	outcomes, err := a.DoAll(soon(t), orders)
	require.NoError(t, err)
	require.NoError(t, outcomes[0].Err)
	require.Equal(t, flow.Limit, flow.ErrorKindOf(outcomes[1].Err), "by itself it is too large")
	require.NoError(t, outcomes[2].Err)
	require.Equal(t, flow.Busy, flow.ErrorKindOf(outcomes[3].Err), "with the others it is: asked for again it is answered")
	again, err := a.DoAll(soon(t), orders[3:])
	require.NoError(t, err)
	require.Len(t, again[0].Job.Job.Input, mostRead/2+2)
	require.Zero(t, s.log.count(overMax), "the line was not lost for it")
}

func TestAnOutboxIsBounded(t *testing.T) {
	o := newOutbox()
	for range mostItems {
		require.True(t, o.tryAdd(frameItem{number: 1}))
	}
	require.False(t, o.tryAdd(frameItem{number: 2}))
	waiting, cancel := context.WithCancel(t.Context())
	cancel()
	require.False(t, o.waitForRoom(waiting))
	f, ok := o.nextFrame(t.Context())
	require.True(t, ok)
	require.True(t, o.waitForRoom(waiting))
	require.True(t, o.tryAdd(frameItem{number: 3}))
	sent := len(f)
	for sent < mostItems+1 {
		f, ok = o.nextFrame(t.Context())
		require.True(t, ok)
		sent += len(f)
	}
	require.Equal(t, int64(3), f[len(f)-1].number)

	o = newOutbox()
	big := make([]byte, mostBytes/2)
	require.True(t, o.tryAdd(frameItem{bytes: big}))
	require.True(t, o.tryAdd(frameItem{bytes: big}))
	require.False(t, o.tryAdd(frameItem{}))
	f, _ = o.nextFrame(t.Context())
	require.Len(t, f, 1, "what is large goes alone")
}
