package actors_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/actors"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// queueOf returns a flow with one job for pollers of a service.
func queueOf(service string) string {
	return fmt.Sprintf(`{"start":"a","nodes":{"a":{"exec_type":"queue","service":%q}}}`, service)
}

const queueOverAList = `
start: each
nodes:
  each: {kind: foreach, exec_type: queue, service: x, parallel_mode: concurrent, prep: {input_key: $params.list}, post: {output_key: out}}
`

func (th *harness) poll(t *testing.T, wait time.Duration, limit int, services ...string) []engine.Claimed {
	t.Helper()
	got, err := th.Poll(t.Context(), engine.Poll{Worker: "w", Services: services, Max: limit, Wait: wait})
	require.NoError(t, err)
	return got
}

// slowPages is a store whose pages of the queue are returned only when they are released.
type slowPages struct {
	persistence.Store
	read    chan struct{}
	release chan struct{}
}

func (s *slowPages) QueueFor(ctx context.Context, f persistence.QueueFilter, at int64, job string,
	limit int) ([]persistence.QueueRow, error) {
	rows, err := s.Store.QueueFor(ctx, f, at, job, limit)
	s.hold(ctx)
	return rows, err
}

func (s *slowPages) QueueServices(ctx context.Context) ([]string, error) {
	services, err := s.Store.QueueServices(ctx)
	s.hold(ctx)
	return services, err
}

func (s *slowPages) hold(ctx context.Context) {
	select {
	case s.read <- struct{}{}:
	default:
	}
	select {
	case <-s.release:
	case <-ctx.Done():
	}
}

func TestAJobOfferedToFullMemoryDuringAReadIsNotLost(t *testing.T) {
	store := openStore(t, filepath.Join(t.TempDir(), "troupe.db"))
	t.Cleanup(func() { store.Close() })
	slow := &slowPages{Store: store, read: make(chan struct{}, 1), release: make(chan struct{})}
	th := start(t, actors.Config{Store: slow, MaxReady: 1})
	th.begin(t, th.publish(t, queueOf("other")), `{}`)
	require.Eventually(t, func() bool { return th.Stats().Ready == 1 }, patience, time.Millisecond)
	first := make(chan []engine.Claimed, 1)
	go func() {
		got, _ := th.Poll(t.Context(), engine.Poll{Worker: "w", Services: []string{"x"}})
		first <- got
	}()
	<-slow.read
	id := th.begin(t, th.publish(t, queueOf("x")), `{}`)
	close(slow.release)
	got := <-first
	require.Eventually(t, func() bool {
		got = append(got, th.poll(t, 0, 1, "x")...)
		return len(got) == 1
	}, patience, time.Millisecond)
	require.Equal(t, id, got[0].Job.Task)
}

func TestAWaitingPollerGetsItsJobWhenMemoryIsFull(t *testing.T) {
	const wait = patience + time.Millisecond // no other timer has this duration
	clock := newNoting(wait)
	th := start(t, actors.Config{MaxReady: 1, Host: actors.Host{Clock: clock}})
	th.begin(t, th.publish(t, queueOf("other")), `{}`)
	require.Eventually(t, func() bool { return th.Stats().Ready == 1 }, patience, time.Millisecond)
	got := make(chan []engine.Claimed, 1)
	require.Empty(t, th.poll(t, 0, 1, "x"))
	go func() {
		claimed, _ := th.Poll(t.Context(), engine.Poll{Worker: "w", Services: []string{"x"}, Wait: wait})
		got <- claimed
	}()
	<-clock.begun // the poll was sent before, so the sessions actor handles it before the job
	th.begin(t, th.publish(t, queueOf("x")), `{}`)
	select {
	case claimed := <-got:
		require.Len(t, claimed, 1)
	case <-time.After(patience):
		require.Fail(t, "the poller was not told")
	}
}

func TestAWaitingPollersJobIsClaimedInTheRowThatStartsIt(t *testing.T) {
	const wait = patience + time.Millisecond // no other timer has this duration
	clock := newNoting(wait)
	th := start(t, actors.Config{Host: actors.Host{Clock: clock}})
	version := th.publish(t, queueOf("x"))
	got := make(chan []engine.Claimed, 1)
	go func() {
		claimed, _ := th.Poll(t.Context(), engine.Poll{Worker: "w", Services: []string{"x"}, Max: 1, Wait: wait})
		got <- claimed
	}()
	<-clock.begun
	require.Empty(t, th.poll(t, 0, 1, "y")) // so the sessions actor has handled the first poll
	first, second := th.begin(t, version, `{}`), th.begin(t, version, `{}`)
	claimed := <-got
	require.Len(t, claimed, 1, "no more than it has room for")
	require.Equal(t, first, claimed[0].Job.Task)
	require.Equal(t, 1, th.events(t, first, flow.AttemptClaimed))
	require.Equal(t, 1, th.rows(t, first))
	require.Equal(t, second, th.poll(t, patience, 1, "x")[0].Job.Task)
	require.Equal(t, 2, th.rows(t, second), "nobody waited for it")
	for _, id := range []string{first, second} {
		require.NoError(t, th.Complete(t.Context(), flow.JobID(id, flow.Address{Node: "a", Visit: 1, Attempt: 1}), flow.Report{}))
		th.ended(t, id)
	}
	jobs, err := th.store.QueueFor(t.Context(), persistence.QueueFilter{Service: "x"}, 0, "", 10)
	require.NoError(t, err)
	require.Empty(t, jobs)
}

// again stops a member and starts another one on the same store.
func (th *harness) again(t *testing.T, cfg actors.Config) *harness {
	t.Helper()
	require.NoError(t, th.Stop(t.Context()))
	cfg.Store = th.store
	return start(t, cfg)
}

func TestALongPollReadsPastHeldJobs(t *testing.T) {
	cfg := actors.Config{IdleAfter: 20 * time.Millisecond}
	th := start(t, cfg)
	th.begin(t, th.publish(t, queueOverAList), `{"list":[`+strings.Repeat("1,", 509)+`1]}`)
	for held := 0; held < 510; {
		held += len(th.poll(t, patience, 100, "x"))
	}
	last := th.begin(t, th.publish(t, queueOf("x")), `{}`)
	th.eventuallyEmpty(t)
	th = th.again(t, actors.Config{Host: actors.Host{Clock: lazy{}}})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	got, err := th.Poll(ctx, engine.Poll{Worker: "w", Services: []string{"x"}, Wait: patience})
	require.NoError(t, err)
	require.Len(t, got, 1)
	require.Equal(t, last, got[0].Job.Task)
}

func TestNewJobsDoNotKeepOldOnesInTheStore(t *testing.T) {
	cfg := actors.Config{IdleAfter: 20 * time.Millisecond}
	th := start(t, cfg)
	version := th.publish(t, queueOf("x"))
	old := th.begin(t, version, `{}`)
	th.eventuallyEmpty(t)
	th = th.again(t, actors.Config{})
	th.begin(t, version, `{}`)
	for end := time.Now().Add(patience); time.Now().Before(end); {
		th.begin(t, version, `{}`)
		for _, got := range th.poll(t, 0, 1, "x") {
			if got.Job.Task == old {
				return
			}
		}
	}
	require.Fail(t, "the oldest job was never handed out")
}

func TestWaitingPollerJobsDoNotBlockNewTasks(t *testing.T) {
	release := make(chan struct{})
	cfg := withFunc(func(ctx context.Context, _ flow.Job) flow.Report {
		select {
		case <-release:
		case <-ctx.Done():
		}
		return flow.Report{Output: json.RawMessage(`1`)}
	})
	cfg.MaxReady, cfg.Concurrency = 2, map[flow.ExecType]int{flow.ExecFunc: 1}
	th := start(t, cfg)
	for range 3 {
		th.begin(t, th.publish(t, queueOf("x")), `{}`)
	}
	version := th.publish(t, `{"start":"a","nodes":{"a":{"exec_type":"local_func","func":"f"}}}`)
	ids := []string{th.begin(t, version, `{}`), th.begin(t, version, `{}`)}
	require.Eventually(t, func() bool { return th.Stats().Ready == 3 }, patience, time.Millisecond)
	ids = append(ids, th.begin(t, version, `{}`))
	close(release)
	for _, id := range ids {
		require.Equal(t, flow.TaskCompleted, th.ended(t, id).State.Status)
	}
}

// lateFirst is a store whose pages of services with a z are late: they come after a poll that is
// answered without them, if there is one.
type lateFirst struct {
	persistence.Store
	answered chan struct{}
}

func (s *lateFirst) QueueFor(ctx context.Context, f persistence.QueueFilter, at int64, turn string,
	limit int) ([]persistence.QueueRow, error) {
	rows, err := s.Store.QueueFor(ctx, f, at, turn, limit)
	if strings.HasPrefix(f.Service, "z") {
		select {
		case <-s.answered:
		case <-time.After(100 * time.Millisecond):
		}
	}
	return rows, err
}

func TestTheFirstPollGetsJobsInDefinitionOrder(t *testing.T) {
	file := openStore(t, filepath.Join(t.TempDir(), "troupe.db"))
	t.Cleanup(func() { file.Close() })
	store := &lateFirst{file, make(chan struct{})}
	th := start(t, actors.Config{Store: store})
	order := []string{"z", "m", "a", "k"}
	for i := range 5 {
		var nodes, services []string
		for _, node := range order {
			services = append(services, fmt.Sprint(node, i))
			nodes = append(nodes, fmt.Sprintf(`%q:{"exec_type":"queue","service":"%s%d"}`, node, node, i))
		}
		v := th.publish(t, fmt.Sprintf(`{"mode":"dag","nodes":{%s}}`, strings.Join(nodes, ",")))
		th.begin(t, v, `{}`)
		if i%2 == 1 { // a member that has just started knows the jobs only from the store
			th = th.again(t, actors.Config{Store: store})
		}
		var got []string
		for len(got) < len(order) {
			jobs, err := th.Poll(t.Context(), engine.Poll{Worker: "w", Services: services,
				FlowID: strings.TrimPrefix(v, "ver-"), Max: 10, Wait: patience})
			require.NoError(t, err)
			select {
			case store.answered <- struct{}{}:
			default:
			}
			for _, job := range jobs {
				got = append(got, job.Job.Node)
			}
		}
		require.Equal(t, order, got)
	}
}

func TestAPollWithInvalidTextIsRefused(t *testing.T) {
	th := start(t, actors.Config{})
	for _, p := range []engine.Poll{
		{Worker: "w\x00", Services: []string{"x"}},
		{Worker: "w", Services: []string{"x", "y\x00"}},
		{Worker: "w", Services: []string{"x"}, Labels: []string{"\xff"}},
	} {
		_, err := th.Poll(t.Context(), p)
		require.Equal(t, flow.Invalid, flow.ErrorKindOf(err))
		require.ErrorContains(t, err, "U+0000")
	}
}
