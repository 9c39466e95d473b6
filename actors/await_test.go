package actors_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/actors"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// standstill is the store of a member that is suspended. The member receives the results about a
// task, that it does not exist or that its end is written, only after a caller waits for the task's
// end. The member never learns that it has lost its lease.
type standstill struct {
	*lagging
	stands, goesOn sync.Once
	still, on      chan struct{} // closed when it is suspended, and when it continues
	asked          atomic.Bool   // a caller is about to wait
}

func newStandstill(store persistence.Store) *standstill {
	return &standstill{lagging: &lagging{Store: store}, still: make(chan struct{}), on: make(chan struct{})}
}

func (s *standstill) stand() {
	s.stands.Do(func() {
		close(s.still)
		<-s.on
	})
}

func (s *standstill) Load(ctx context.Context, ids []string) ([]*persistence.Record, error) {
	records, err := s.Store.Load(ctx, ids)
	s.stand()
	return records, err
}

func (s *standstill) Commit(ctx context.Context, incarnation string, batch []persistence.Commit) ([]error, error) {
	answers, err := s.Store.Commit(ctx, incarnation, batch)
	if c := batch[0].Columns; c != nil && flow.TaskStatus(c.Status).Ended() {
		s.stand()
	}
	return answers, err
}

func (s *standstill) goOn() { s.goesOn.Do(func() { close(s.on) }) }

// start starts the member.
func (s *standstill) start(t *testing.T, cfg actors.Config) *harness {
	cfg.Store = s
	cfg.Host.Park = func(func() bool) {
		if s.asked.Load() {
			s.goOn()
		}
	}
	th := start(t, cfg)
	t.Cleanup(s.goOn) // otherwise the member could not be stopped
	s.armed.Store(true)
	return th
}

// await waits for the end of a task at the member, which continues then.
func (s *standstill) await(t *testing.T, th *harness, id string) (flow.TaskStatus, error) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	s.asked.Store(true)
	return th.Await(ctx, id)
}

func TestAwaitIgnoresAnEarlierMissingTask(t *testing.T) {
	store := newLeaping()
	s := newStandstill(store)
	old := s.start(t, actors.Config{})
	n := engine.NewTask{VersionID: old.publish(t, chainOfThree), Task: "task-1", Params: []byte(`{"n":1}`)}
	go func() { _ = old.Do(t.Context(), n.Task, flow.Pause{}, "") }()
	<-s.still

	cfg := withFunc(increment)
	cfg.Store = store
	next := start(t, cfg)
	_, _, err := next.StartTask(t.Context(), n)
	require.NoError(t, err)
	next.ended(t, n.Task)
	status, err := s.await(t, old, n.Task)
	require.NoError(t, err)
	require.Equal(t, flow.TaskCompleted, status)
}

func TestAwaitIgnoresAnEndThatWasUndone(t *testing.T) {
	store := newLeaping()
	s := newStandstill(store)
	clock := &ahead{}
	cfg := withFunc(func(context.Context, flow.Job) flow.Report { return flow.Report{Error: "no", Fatal: true} })
	cfg.Host.Clock = clock
	old := s.start(t, cfg)
	id := old.begin(t, old.publish(t, oneJob), `{}`)
	<-s.still

	cfg = withFunc(func(context.Context, flow.Job) flow.Report { return flow.Report{} })
	cfg.Store = store
	next := start(t, cfg)
	require.NoError(t, next.RetryTask(t.Context(), id, ""))
	require.Equal(t, flow.TaskCompleted, next.ended(t, id).State.Status)
	clock.by.Store(int64(2 * time.Hour))
	status, err := s.await(t, old, id)
	require.NoError(t, err)
	require.Equal(t, flow.TaskCompleted, status)
}
