package attach_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe"
	"github.com/troupe-engine/troupe/worker"
)

func TestAWorkerThatLeavesFinishesWhatItHasAndGivesBackTheRest(t *testing.T) {
	s := open(t, troupe.Config{})
	var began [2]atomic.Int32
	at, leave := make(chan struct{}, 10), make(chan struct{})
	stop := s.attach(worker.Config{ID: "first", Concurrency: 2},
		map[string]worker.Handler{"double": func(ctx context.Context, job worker.Job) (any, error) {
			began[0].Add(1)
			at <- struct{}{}
			<-leave
			return double(ctx, job)
		}})
	s.listed(1)
	s.publish("many", many)
	task := s.start("many", map[string]any{"list": make([]int, 10)})
	<-at
	<-at
	s.attach(worker.Config{ID: "second"}, map[string]worker.Handler{"double": func(ctx context.Context, job worker.Job) (any, error) {
		if began[1].Add(1) == 1 {
			close(leave)
		}
		return double(ctx, job)
	}})
	stop()
	require.EqualValues(t, "completed", s.end(task).Status)
	require.Equal(t, []int32{2, 8}, []int32{began[0].Load(), began[1].Load()})
}

func TestAMemberThatLeavesLetsWorkersFinish(t *testing.T) {
	s := open(t, troupe.Config{})
	began, leave := make(chan string, 10), make(chan struct{})
	s.attach(worker.Config{}, map[string]worker.Handler{"double": func(ctx context.Context, job worker.Job) (any, error) {
		began <- job.ID
		<-leave
		return double(ctx, job)
	}})
	s.listed(1)
	s.publish("one", one)
	task := s.start("one", map[string]any{"n": 5})
	<-began
	time.AfterFunc(100*time.Millisecond, func() { close(leave) })
	s.leave()
	s.begin(s.url[len("http://"):])
	require.JSONEq(t, `{"out":10}`, string(s.end(task).Value))
	require.Empty(t, began, "it was finished before the member was gone")
	require.JSONEq(t, `{"out":12}`, string(s.end(s.start("one", map[string]any{"n": 6})).Value),
		"the worker is awaited, and comes back by itself")
}

func TestAWorkerGoesToAnotherMemberWhenItsOwnLeaves(t *testing.T) {
	first, second := open(t, troupe.Config{}), open(t, troupe.Config{})
	second.attach(worker.Config{Server: first.url + "," + second.url}, map[string]worker.Handler{"double": double})
	first.listed(1)
	first.leave()
	second.listed(1)
	second.publish("one", one)
	require.JSONEq(t, `{"out":2}`, string(second.end(second.start("one", map[string]any{"n": 1})).Value))
}

func TestAProgramMayServeAgain(t *testing.T) {
	s := open(t, troupe.Config{})
	s.publish("one", one)
	s.attach(worker.Config{}, map[string]worker.Handler{"double": double})
	s.listed(1)
	s.pause()
	task := s.start("one", map[string]any{"n": 1}) // waits until the worker has reconnected
	s.serve(s.url[len("http://"):])
	require.JSONEq(t, `{"out":2}`, string(s.end(task).Value))
}
