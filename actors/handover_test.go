package actors_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/testing/faulty"
	"github.com/troupe-engine/troupe/internal/testing/model"
	"github.com/troupe-engine/troupe/persistence"
)

// ofAllSorts has plain steps, a fan-out and a nested scope, one after another.
const ofAllSorts = `
start: each
nodes:
  each: {kind: foreach, exec_type: local_func, func: f, parallel_mode: concurrent, max_parallel: 3, prep: {input_key: $params.list}, post: {output_key: out}}
  plain: {exec_type: local_func, func: f}
  sub: {kind: subflow, subflow: {start: x, nodes: {
    x: {exec_type: local_func, func: f},
    y: {kind: subflow, subflow: {start: z, nodes: {z: {kind: parallel, exec_type: local_func, parallel_mode: concurrent, parallel_services: [a, b]}}}}},
    edges: [{from: x, action: default, to: y}]}}
edges:
  - {from: each, action: default, to: plain}
  - {from: plain, action: default, to: sub}
`

func TestAPlannedMoveRepeatsNoWork(t *testing.T) {
	c, l, a, b := newPair(t, nil)
	version := a.publish(t, ofAllSorts)
	ids := make([]string, 20)
	for i := range ids {
		ids[i] = a.begin(t, version, listOf(5))
	}
	for range 3 * len(ids) {
		<-l.begun
	}
	c.move(t, b, persistence.AllShards()...)
	require.Eventually(t, func() bool { return a.Stats().Actors["task"] == 0 }, patience, time.Millisecond)
	close(l.free)
	for _, id := range ids {
		require.Equal(t, flow.TaskCompleted, c.ended(t, id).State.Status)
	}
	require.Empty(t, l.repeated())
	require.Len(t, l.times, 9*len(ids))
}

// TestMovesBackAndForthRepeatNoWork moves everything repeatedly, at random, while jobs start and
// report.
func TestMovesBackAndForthRepeatNoWork(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 0))
			c, l := newCircuit(nil), newLedger()
			close(l.free)
			members := []*harness{c.join(t, withFunc(l.carrier("a"))),
				c.join(t, withFunc(l.carrier("b"))), c.join(t, withFunc(l.carrier("c")))}
			for shard := range persistence.Shards {
				c.give(members[rng.IntN(3)], shard)
			}
			version := members[0].publish(t, ofAllSorts)
			var ids []string
			for len(ids) < 60 {
				for _, th := range members {
					if id, _, err := th.StartTask(t.Context(), engine.NewTask{VersionID: version, Params: []byte(listOf(5))}); err == nil {
						ids = append(ids, id)
					}
				}
				if len(ids) > 0 {
					c.move(t, members[rng.IntN(3)], shardOf(ids[rng.IntN(len(ids))])...)
				}
			}
			for _, id := range ids {
				c.move(t, members[rng.IntN(3)], shardOf(id)...)
			}
			for _, id := range ids {
				require.Equal(t, flow.TaskCompleted, c.ended(t, id).State.Status)
			}
			require.Empty(t, l.repeated())
			require.Len(t, l.times, 9*len(ids))
		})
	}
}

func TestPendingCommitsAreStoredBeforeATaskHasMoved(t *testing.T) {
	committing, release := make(chan struct{}), make(chan struct{})
	var once atomic.Bool
	store := faulty.Wrap(model.New(model.Options{}), faulty.Hooks{Commit: func(_ string, batch []persistence.Commit) faulty.Fault {
		if batch[0].Seq == 2 && !once.Swap(true) { // the report
			close(committing)
			<-release
		}
		return faulty.Fault{}
	}})
	c, l, a, b := newPair(t, store)
	close(l.free)
	id := a.begin(t, a.publish(t,
		`{"start":"a","nodes":{"a":{"exec_type":"local_func","func":"f"},"b":{"kind":"approval","params":{"approval_key":"$shared.ok"}}},"edges":[{"from":"a","action":"default","to":"b"}]}`),
		`{}`)
	<-committing
	lost := make(chan error, 1)
	go func() { lost <- a.Lose(t.Context(), shardOf(id)) }()
	require.Eventually(t, func() bool {
		return flow.ErrorKindOf(a.Do(t.Context(), neighbor(id), flow.Pause{}, "")) == flow.Moved
	}, patience, time.Millisecond)
	refused := a.Do(t.Context(), id, flow.Signal{Key: "ok", Value: []byte(`true`)}, "")
	require.Equal(t, flow.Moved, flow.ErrorKindOf(refused), "%v", refused)
	require.Empty(t, lost)
	close(release)
	require.NoError(t, <-lost)
	c.give(b, shardOf(id)...)
	view, err := b.reader.View(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, "b", view.State.Root.Cursor, "the report was stored")
	require.NotContains(t, view.State.Root.Shared, "ok", "the signal changed nothing")
	require.NoError(t, b.Do(t.Context(), id, flow.Signal{Key: "ok", Value: []byte(`true`)}, ""))
	require.Equal(t, flow.TaskCompleted, c.ended(t, id).State.Status)
	require.Empty(t, l.repeated())
}

const aJobAndATimer = `{"start":"a","nodes":{"a":{"exec_type":"local_func","func":"f"},"b":{"kind":"timer","params":{"delay_ms":1}}},
	"edges":[{"from":"a","action":"default","to":"b"}]}`

// holdingUp is a store that delays the second commit of a task until it is released.
func holdingUp() (store persistence.Store, committing, release chan struct{}) {
	committing, release = make(chan struct{}), make(chan struct{})
	var once atomic.Bool
	store = faulty.Wrap(model.New(model.Options{}), faulty.Hooks{Commit: func(_ string, batch []persistence.Commit) faulty.Fault {
		if batch[0].Seq == 2 && !once.Swap(true) {
			close(committing)
			<-release
		}
		return faulty.Fault{}
	}})
	return store, committing, release
}

// loseInVain makes a member start to hand over a task's shard, and returns the shard before that is
// done.
func (c *circuit) loseInVain(t *testing.T, a *harness, id string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	lost := make(chan error, 1)
	go func() { lost <- a.Lose(ctx, shardOf(id)) }()
	require.Eventually(t, func() bool {
		return flow.ErrorKindOf(a.Do(t.Context(), neighbor(id), flow.Pause{}, "")) == flow.Moved
	}, patience, time.Millisecond)
	cancel()
	require.ErrorIs(t, <-lost, context.Canceled)
	c.give(a, shardOf(id)...)
}

func TestATaskReturnedWhileItRestsContinues(t *testing.T) {
	store, committing, release := holdingUp()
	c := newCircuit(store)
	a := c.join(t, withFunc(newLedger().freed().carrier("a")))
	c.give(a, persistence.AllShards()...)
	id := a.begin(t, a.publish(t, aJobAndATimer), `{}`)
	<-committing
	c.loseInVain(t, a, id)
	close(release)
	require.Equal(t, flow.TaskCompleted, c.ended(t, id).State.Status)
}

const aJobAndAnother = `{"start":"a","nodes":{"a":{"exec_type":"local_func","func":"f"},"b":{"exec_type":"local_func","func":"f"}},
	"edges":[{"from":"a","action":"default","to":"b"}]}`

// TestAnInFlightReportOfAReturnedTaskIsExpectedOnce delivers the report before the
// task is resumed, and after that. A pause keeps the second job from starting, so the task cannot
// end earlier.
func TestAnInFlightReportOfAReturnedTaskIsExpectedOnce(t *testing.T) {
	for _, first := range []string{"the report", "the resume"} {
		t.Run(first+" comes first", func(t *testing.T) {
			c, l, a, b := newPair(t, nil)
			bringing, release := make(chan struct{}), make(chan struct{})
			bring := sync.OnceFunc(func() { close(bringing) })
			c.lines[a].hold = func(engine.Order) {
				bring()
				<-release
			}
			id := a.begin(t, a.publish(t, aJobAndAnother), `{}`)
			<-l.begun
			c.move(t, b, shardOf(id)...)
			close(l.free)
			<-bringing
			a.Settle(t.Context()) // otherwise the finished job reports to the task that is back
			c.move(t, a, shardOf(id)...)
			require.Eventually(t, func() bool { return a.Stats().Actors["task"] == 1 }, patience, time.Millisecond)
			require.NoError(t, a.Do(t.Context(), id, flow.Pause{}, ""), "it is there, with what it is owed")
			resume := func() { require.NoError(t, a.Do(t.Context(), id, flow.Resume{}, "")) }
			if first == "the resume" {
				resume()
				close(release)
			} else {
				close(release)
				require.Eventually(t, func() bool {
					view, err := a.reader.View(t.Context(), id)
					return err == nil && view.State.Root.Cursor == "b"
				}, patience, time.Millisecond)
				resume()
			}
			require.Equal(t, flow.TaskCompleted, c.ended(t, id).State.Status)
			require.Empty(t, l.repeated())
			require.Len(t, l.times, 2)
		})
	}
}

func TestWaitingCallersAreNotifiedOfAMove(t *testing.T) {
	c, l := newCircuit(nil), newLedger()
	a := c.join(t, withFunc(l.carrier("a")))
	c.give(a, persistence.AllShards()...)
	id := a.begin(t, a.publish(t, oneJob), `{}`)
	<-l.begun
	waiting := make(chan error, 1)
	go func() {
		_, err := a.Await(t.Context(), id)
		waiting <- err
	}()
	require.NoError(t, a.Lose(t.Context(), shardOf(id)))
	require.Equal(t, flow.Moved, flow.ErrorKindOf(<-waiting))
}

// handedOver makes a member lose everything, and fails if that does not end.
func handedOver(t *testing.T, c *circuit, from, to *harness) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	require.NoError(t, from.Lose(ctx, persistence.AllShards()))
	c.give(to, persistence.AllShards()...)
}

const jobsDeepInside = `{"start":"sub","nodes":{"sub":{"kind":"subflow","subflow":{"start":"each","nodes":{
	"each":{"kind":"foreach","exec_type":"local_func","func":"f","parallel_mode":"concurrent","prep":{"input_key":"$params.list"}}}}}}}`

func TestACrashingStepActorDoesNotDelayAMove(t *testing.T) {
	for name, depth := range map[string]int{"a step of the task": 1, "a step inside another one": 2} {
		t.Run(name, func(t *testing.T) {
			clock := quick{time.Now()}
			c, l := newCircuit(model.New(model.Options{Now: clock.Now})), newLedger()
			cfg := withFunc(l.carrier("a"))
			seen := map[any]int{}
			var mu sync.Mutex
			cfg.Host.Clock, cfg.Host.Probe = clock, func(_ string, message any) {
				mu.Lock()
				defer mu.Unlock()
				if fmt.Sprintf("%T", message) != "*actors.stepFlush" {
					return
				}
				if seen[message]++; seen[message] == depth {
					panic("a planted crash")
				}
			}
			a := c.join(t, cfg)
			c.give(a, persistence.AllShards()...)
			b := c.join(t, withFunc(l.carrier("b")))
			id := a.insist(t, engine.NewTask{VersionID: a.publish(t, jobsDeepInside),
				Params: json.RawMessage(listOf(3)), Key: "k"})
			for range 3 {
				<-l.begun
			}
			handedOver(t, c, a, b)
			view := c.ended(t, id)
			require.Equal(t, flow.TaskFailed, view.State.Status)
			require.Contains(t, view.State.Error, "keeps crashing")
		})
	}
}

func TestACrashedTaskDoesNotDelayAMove(t *testing.T) {
	p := newPoison("Key:k")
	c, l := newCircuit(nil), newLedger()
	cfg := withFunc(l.carrier("a"))
	cfg.Host.Probe, cfg.Host.Clock = p.probe, pauseless{}
	a := c.join(t, cfg)
	c.give(a, persistence.AllShards()...)
	b := c.join(t, withFunc(l.carrier("b")))
	id := a.begin(t, a.publish(t, oneJob), `{}`)
	<-l.begun
	p.task.Store(id)
	require.Equal(t, flow.Busy, flow.ErrorKindOf(a.Do(t.Context(), id, flow.Signal{Key: "k", Value: []byte(`1`)}, "")))
	handedOver(t, c, a, b)
	require.EqualValues(t, 1, p.crashes.Load())
	close(l.free)
	require.Equal(t, flow.TaskCompleted, c.ended(t, id).State.Status)
	require.Empty(t, l.repeated())
}

func TestAPermanentlyCrashingTaskDoesNotDelayAMove(t *testing.T) {
	c, l := newCircuit(nil), newLedger()
	cfg := withFunc(l.carrier("a"))
	var crashing atomic.Bool
	var crashes atomic.Int64
	cfg.Host.Clock, cfg.Host.Probe = pauseless{}, func(kind string, _ any) {
		if kind == "task" && crashing.Load() {
			crashes.Add(1)
			panic("a planted crash")
		}
	}
	a := c.join(t, cfg)
	c.give(a, persistence.AllShards()...)
	b := c.join(t, withFunc(l.carrier("b")))
	id := a.begin(t, a.publish(t, oneJob), `{}`)
	<-l.begun
	crashing.Store(true)
	handedOver(t, c, a, b)
	require.EqualValues(t, 1, crashes.Load())
	close(l.free)
	require.Equal(t, flow.TaskCompleted, c.ended(t, id).State.Status)
	require.Empty(t, l.repeated())
}

func TestATaskThatCannotBeLoadedDoesNotDelayAMove(t *testing.T) {
	var away atomic.Bool
	store := faulty.Wrap(model.New(model.Options{}), faulty.Hooks{Call: func(_ context.Context, name string) error {
		if name == "Load" && away.Load() {
			return faulty.ErrFailed
		}
		return nil
	}})
	c, _, a, b := newPair(t, store)
	id := a.begin(t, a.publish(t, untilApproved), `{}`)
	c.move(t, b, shardOf(id)...)
	away.Store(true)
	c.move(t, a, shardOf(id)...)
	refused := make(chan error, 1)
	go func() { refused <- a.Do(t.Context(), id, flow.Signal{Key: "ok", Value: []byte(`true`)}, "") }()
	require.Eventually(t, func() bool { return a.Stats().Actors["task"] == 1 }, patience, time.Millisecond)
	handedOver(t, c, a, b)
	require.Equal(t, flow.Moved, flow.ErrorKindOf(<-refused))
	away.Store(false)
	require.NoError(t, b.Do(t.Context(), id, flow.Signal{Key: "ok", Value: []byte(`true`)}, ""))
	require.Equal(t, flow.TaskCompleted, c.ended(t, id).State.Status)
}

func TestAJobReportsToTheNextOwnerIfItsTaskCannotBeReloaded(t *testing.T) {
	var away atomic.Bool
	loads := make(chan struct{}, 1000)
	store := faulty.Wrap(model.New(model.Options{}), faulty.Hooks{
		Commit: func(string, []persistence.Commit) faulty.Fault {
			if away.Load() {
				return faulty.Fault{Before: func(context.Context) error { return persistence.ErrRefused }}
			}
			return faulty.Fault{}
		},
		Call: func(_ context.Context, name string) error {
			if name == "Load" && away.Load() {
				loads <- struct{}{}
				return faulty.ErrFailed
			}
			return nil
		},
	})
	c, l, a, b := newPair(t, store)
	id := a.begin(t, a.publish(t, oneJob), `{}`)
	<-l.begun
	away.Store(true)
	answered := make(chan error, 1)
	go func() { answered <- a.Do(t.Context(), id, flow.Signal{Key: "k", Value: []byte(`1`)}, "") }()
	<-loads
	handedOver(t, c, a, b)
	require.Error(t, <-answered)
	away.Store(false)
	close(l.free)
	require.Equal(t, flow.TaskCompleted, c.ended(t, id).State.Status)
	require.Empty(t, l.repeated())
}

func TestADelayedMoveLogsItsTasks(t *testing.T) {
	store, committing, release := holdingUp()
	var said lines
	c, l := newCircuit(store), newLedger().freed()
	cfg := withFunc(l.carrier("a"))
	cfg.Logger, cfg.Host.Clock = slog.New(slog.NewTextHandler(&said, nil)), quick{time.Now()}
	a := c.join(t, cfg)
	c.give(a, persistence.AllShards()...)
	id := a.insist(t, engine.NewTask{VersionID: a.publish(t, aJobAndATimer), Params: json.RawMessage(`{}`), Key: "k"})
	<-committing
	lost := make(chan error, 1)
	go func() { lost <- a.Lose(t.Context(), shardOf(id)) }()
	require.Eventually(t, func() bool { return strings.Contains(said.String(), id) }, patience, time.Millisecond)
	close(release)
	require.NoError(t, <-lost)
}

func TestAnAbandonedMoveIsNotLogged(t *testing.T) {
	store, committing, release := holdingUp()
	var said lines
	goOn := sync.OnceFunc(func() { close(release) })
	clock := newCatching(5 * time.Second)
	c, l := newCircuit(store), newLedger().freed()
	cfg := withFunc(l.carrier("a"))
	cfg.Logger, cfg.Host.Clock = slog.New(slog.NewTextHandler(&said, nil)), clock
	a := c.join(t, cfg)
	t.Cleanup(goOn) // before the member is stopped, which waits for its commits
	c.give(a, persistence.AllShards()...)
	id := a.begin(t, a.publish(t, aJobAndATimer), `{}`)
	<-committing
	c.loseInVain(t, a, id)
	for range len(clock.caught) { // one of them logs what delays the handover
		clock.next(t)()
	}
	// This passes the mailbox of all tasks after it: when it is answered, that has been processed.
	require.Equal(t, flow.NotFound, flow.ErrorKindOf(a.Do(t.Context(), neighbor(id), flow.Pause{}, "")))
	require.NotContains(t, said.String(), "handover of shards is waiting")
	goOn()
	require.Equal(t, flow.TaskCompleted, c.ended(t, id).State.Status)
}

// lines collects log output.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
