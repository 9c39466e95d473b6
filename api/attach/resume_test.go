package attach_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe"
	"github.com/troupe-engine/troupe/worker"
)

func TestABrokenStreamIsResumedWithoutASecondRun(t *testing.T) {
	s := open(t, troupe.Config{ResumeGrace: time.Minute})
	c := newCable(t, s.url[len("http://"):])
	began, leave := make(chan string, 100), make(chan struct{})
	s.attach(worker.Config{Server: c.url()}, map[string]worker.Handler{"double": func(ctx context.Context, job worker.Job) (any, error) {
		began <- job.ID
		select {
		case <-leave:
		case <-ctx.Done():
		}
		return double(ctx, job)
	}})
	s.listed(1)
	s.publish("one", one)
	meanwhile, after := s.start("one", map[string]any{"n": 1}), ""
	<-began
	c.sever()
	close(leave) // one job ends while the connection is cut
	after = s.start("one", map[string]any{"n": 2})
	c.mend()
	require.JSONEq(t, `{"out":2}`, string(s.end(meanwhile).Value))
	require.JSONEq(t, `{"out":4}`, string(s.end(after).Value))
	require.Len(t, began, 1, "the second one alone has begun since")
}

func TestManyCutsLoseNothingAndRepeatNothing(t *testing.T) {
	s := open(t, troupe.Config{ResumeGrace: time.Minute})
	c := newCable(t, s.url[len("http://"):])
	var mu sync.Mutex
	began := map[string]int{}
	s.attach(worker.Config{Server: c.url(), Concurrency: 8},
		map[string]worker.Handler{"double": func(ctx context.Context, job worker.Job) (any, error) {
			mu.Lock()
			began[job.ID]++
			mu.Unlock()
			return double(ctx, job)
		}})
	s.listed(1)
	s.publish("many", many)
	task := s.start("many", map[string]any{"list": make([]int, 2000)})
	for cut := range 10 {
		require.Eventually(t, func() bool {
			mu.Lock()
			defer mu.Unlock()
			return len(began) >= 100*(cut+1)
		}, patience, time.Millisecond)
		c.sever()
		c.mend()
	}
	require.EqualValues(t, "completed", s.end(task).Status)
	require.Len(t, began, 2000)
	for job, n := range began {
		require.Equal(t, 1, n, job)
	}
}

func TestAfterTheGraceOthersGetTheJobs(t *testing.T) {
	s := open(t, troupe.Config{ResumeGrace: -1})
	c := newCable(t, s.url[len("http://"):])
	began := make(chan string, 10)
	s.attach(worker.Config{Server: c.url(), ID: "first", Grace: -1},
		map[string]worker.Handler{"double": func(ctx context.Context, _ worker.Job) (any, error) {
			began <- "first"
			<-ctx.Done()
			return nil, ctx.Err()
		}})
	s.listed(1)
	s.publish("one", one)
	task := s.start("one", map[string]any{"n": 4})
	require.Equal(t, "first", <-began)
	s.attach(worker.Config{ID: "second"}, map[string]worker.Handler{"double": func(ctx context.Context, job worker.Job) (any, error) {
		began <- "second"
		return double(ctx, job)
	}})
	s.listed(2)
	c.sever()
	require.JSONEq(t, `{"out":8}`, string(s.end(task).Value))
	require.Equal(t, "second", <-began)
	require.Empty(t, began)
}
