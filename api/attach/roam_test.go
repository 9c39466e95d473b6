package attach_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe"
	"github.com/troupe-engine/troupe/internal/testing/pgtest"
	"github.com/troupe-engine/troupe/worker"
)

// slow is a service with jobs that run until the test frees them.
type slow struct {
	begun chan string
	free  chan struct{}
	times sync.Map // *atomic.Int64 by id of the job
}

func newSlow() *slow { return &slow{begun: make(chan string, 1000), free: make(chan struct{})} }

func (s *slow) double(ctx context.Context, job worker.Job) (any, error) {
	n, _ := s.times.LoadOrStore(job.ID, &atomic.Int64{})
	n.(*atomic.Int64).Add(1)
	s.begun <- job.ID
	select {
	case <-s.free:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return double(ctx, job)
}

func (s *slow) onceEach(t *testing.T) {
	s.times.Range(func(id, n any) bool {
		require.EqualValues(t, 1, n.(*atomic.Int64).Load(), "times that job %s was begun", id)
		return true
	})
}

func TestAWorkersJobsGoOnAtAnotherMemberWhenItsOwnLeaves(t *testing.T) {
	dsn := pgtest.DSN(t)
	a, b := open(t, troupe.Config{Store: dsn, Name: "a"}), open(t, troupe.Config{Store: dsn, Name: "b"})
	jobs := newSlow()
	a.attach(worker.Config{Server: a.url + "," + b.url}, map[string]worker.Handler{"double": jobs.double})
	a.listed(1)
	b.listed(1)
	b.publish("one", one)
	var tasks []string
	for range 20 {
		tasks = append(tasks, b.start("one", map[string]any{"n": 21}))
	}
	for range tasks {
		<-jobs.begun
	}
	a.leave()
	close(jobs.free)
	for _, task := range tasks {
		r := b.end(task)
		require.EqualValues(t, "completed", r.Status, r.Error)
		require.JSONEq(t, `{"out":42}`, string(r.Value))
	}
	jobs.onceEach(t)
}

func TestAWorkersJobsGoOnWhenItsMemberIsBack(t *testing.T) {
	s := open(t, troupe.Config{})
	c := newCable(t, s.url[len("http://"):])
	jobs := newSlow()
	s.attach(worker.Config{Server: c.url()}, map[string]worker.Handler{"double": jobs.double})
	s.listed(1)
	s.publish("one", one)
	task := s.start("one", map[string]any{"n": 21})
	<-jobs.begun
	c.sever() // the member does not wait for a worker that has moved to another member
	address := s.url[len("http://"):]
	s.leave()
	s.begin(address)
	c.mend()
	close(jobs.free)
	r := s.end(task)
	require.EqualValues(t, "completed", r.Status, r.Error)
	jobs.onceEach(t)
}
