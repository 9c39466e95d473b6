package actors_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/actors"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
	"github.com/troupe-engine/troupe/persistence/faulty"
	"github.com/troupe-engine/troupe/persistence/model"
)

// ofAllSorts has plain steps, a fan-out and a scope inside a scope, one after the other.
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

func TestAMemberOfAClusterOwnsNothingUntilItGainsIt(t *testing.T) {
	c := newCircuit(nil)
	a := c.join(t, withFunc(increment))
	version := a.publish(t, chainOfThree)
	_, _, err := a.StartTask(t.Context(), engine.NewTask{VersionID: version})
	require.Equal(t, flow.Moved, flow.ErrorKindOf(err))
	c.give(a, persistence.AllShards()...)
	require.Equal(t, flow.TaskCompleted, a.run(t, version, `{"n":1}`).State.Status)
}

func TestAMemberThatIsAloneOnItsStoreOwnsAll(t *testing.T) {
	store := openStore(t, filepath.Join(t.TempDir(), "troupe.db"))
	t.Cleanup(func() { store.Close() })
	a := newCircuit(store).join(t, withFunc(increment))
	require.Equal(t, flow.TaskCompleted, a.run(t, a.publish(t, chainOfThree), `{"n":1}`).State.Status)
	require.Equal(t, flow.Conflict, flow.ErrorKindOf(a.Lose(t.Context(), []int{1})))
	require.Equal(t, flow.TaskCompleted, a.run(t, a.publish(t, chainOfThree), `{"n":1}`).State.Status)
}

func TestAPlannedMoveRepeatsNoWork(t *testing.T) {
	c, l := newCircuit(nil), newLedger()
	a := c.join(t, withFunc(l.carrier("a")))
	c.give(a, persistence.AllShards()...)
	b := c.join(t, withFunc(l.carrier("b")))
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

// TestMovesBackAndForthRepeatNoWork moves everything again and again, at random, while jobs are begun and land.
func TestMovesBackAndForthRepeatNoWork(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 0))
			c, l := newCircuit(nil), newLedger()
			close(l.free)
			members := []*theatre{c.join(t, withFunc(l.carrier("a"))), c.join(t, withFunc(l.carrier("b"))), c.join(t, withFunc(l.carrier("c")))}
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

func TestWhatIsOnItsWayToTheStoreIsThereBeforeATaskHasMoved(t *testing.T) {
	committing, release := make(chan struct{}), make(chan struct{})
	var once atomic.Bool
	store := faulty.Wrap(model.New(model.Options{}), faulty.Hooks{Commit: func(_ string, batch []persistence.Commit) faulty.Fault {
		if batch[0].Seq == 2 && !once.Swap(true) { // the report
			close(committing)
			<-release
		}
		return faulty.Fault{}
	}})
	c, l := newCircuit(store), newLedger()
	close(l.free)
	a := c.join(t, withFunc(l.carrier("a")))
	c.give(a, persistence.AllShards()...)
	b := c.join(t, withFunc(l.carrier("b")))
	id := a.begin(t, a.publish(t, `{"start":"a","nodes":{"a":{"exec_type":"local_func","func":"f"},"b":{"kind":"approval","params":{"approval_key":"$shared.ok"}}},"edges":[{"from":"a","action":"default","to":"b"}]}`), `{}`)
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

func TestATaskThatIsGivenBackWhileItGoesToRestGoesOn(t *testing.T) {
	committing, release := make(chan struct{}), make(chan struct{})
	var once atomic.Bool
	store := faulty.Wrap(model.New(model.Options{}), faulty.Hooks{Commit: func(_ string, batch []persistence.Commit) faulty.Fault {
		if batch[0].Seq == 2 && !once.Swap(true) {
			close(committing)
			<-release
		}
		return faulty.Fault{}
	}})
	c := newCircuit(store)
	a := c.join(t, withFunc(newLedger().freed().carrier("a")))
	c.give(a, persistence.AllShards()...)
	id := a.begin(t, a.publish(t, aJobAndATimer), `{}`)
	<-committing
	ctx, cancel := context.WithCancel(t.Context())
	lost := make(chan error, 1)
	go func() { lost <- a.Lose(ctx, shardOf(id)) }()
	require.Eventually(t, func() bool {
		return flow.ErrorKindOf(a.Do(t.Context(), neighbor(id), flow.Pause{}, "")) == flow.Moved
	}, patience, time.Millisecond)
	cancel()
	require.ErrorIs(t, <-lost, context.Canceled)
	c.give(a, shardOf(id)...)
	close(release)
	require.Equal(t, flow.TaskCompleted, c.ended(t, id).State.Status)
}

func TestAReportThatIsOnItsWayWhenItsTaskComesBackIsNotWaitedForTwice(t *testing.T) {
	c, l := newCircuit(nil), newLedger()
	a := c.join(t, withFunc(l.carrier("a")))
	c.give(a, persistence.AllShards()...)
	b := c.join(t, withFunc(l.carrier("b")))
	bringing, release := make(chan struct{}), make(chan struct{})
	c.lines[a].hold = func(engine.Order) {
		close(bringing)
		<-release
	}
	id := a.begin(t, a.publish(t, oneJob), `{}`)
	<-l.begun
	c.move(t, b, shardOf(id)...)
	close(l.free)
	<-bringing
	c.move(t, a, shardOf(id)...)
	require.Eventually(t, func() bool { return a.Stats().Actors["task"] == 1 }, patience, time.Millisecond)
	require.NoError(t, a.Do(t.Context(), id, flow.Pause{}, ""), "it is there, with what it is owed")
	close(release)
	require.NoError(t, a.Do(t.Context(), id, flow.Resume{}, ""))
	require.Equal(t, flow.TaskCompleted, c.ended(t, id).State.Status)
	require.Empty(t, l.repeated())
}

func TestThoseWhoWaitForATaskAreToldThatItMoves(t *testing.T) {
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

func TestACancelReachesTheMemberThatCarriesTheJob(t *testing.T) {
	c := newCircuit(nil)
	begun, called := make(chan string, 10), make(chan string, 10)
	hang := withFunc(func(ctx context.Context, j flow.Job) flow.Report {
		begun <- j.ID()
		<-ctx.Done()
		called <- j.ID()
		return flow.Report{Error: "called off"}
	})
	a := c.join(t, hang)
	c.give(a, persistence.AllShards()...)
	b := c.join(t, hang)
	id := a.begin(t, a.publish(t, `{"start":"e","nodes":{"e":{"kind":"foreach","exec_type":"local_func","func":"f","parallel_mode":"concurrent","prep":{"input_key":"$params.list"}}}}`), listOf(3))
	for range 3 {
		<-begun
	}
	c.move(t, b, shardOf(id)...)
	require.NoError(t, b.Cancel(t.Context(), id, flow.Cancel{}))
	for range 3 {
		<-called
	}
	require.Equal(t, flow.TaskCanceled, c.ended(t, id).State.Status)
	require.Empty(t, begun)
}

func TestWhatAMemberCarriedThatIsGoneIsTakenOver(t *testing.T) {
	for name, owner := range map[string]string{"for its own tasks": "a", "for tasks of another": "b"} {
		t.Run(name, func(t *testing.T) {
			c, l := newCircuit(nil), newLedger()
			a := c.join(t, withFunc(l.carrier("a")))
			c.give(a, persistence.AllShards()...)
			b := c.join(t, withFunc(l.carrier("b")))
			id := a.begin(t, a.publish(t, oneJob), `{}`)
			job := <-l.begun
			if owner == "b" {
				c.move(t, b, shardOf(id)...)
				require.NoError(t, b.Do(t.Context(), id, flow.Pause{}, ""), "it is there")
				require.NoError(t, b.Do(t.Context(), id, flow.Resume{}, ""))
				require.Empty(t, l.begun, "the other one has it")
			}
			c.die(t, a)
			if owner == "a" {
				c.give(b, shardOf(id)...)
			}
			b.Gone(a.Incarnation())
			require.Equal(t, job, <-l.begun)
			close(l.free)
			view := c.ended(t, id)
			require.Equal(t, flow.TaskCompleted, view.State.Status)
			runs, err := b.reader.Runs(t.Context(), id, flow.Place{}, 10, 1<<20)
			require.NoError(t, err)
			require.Equal(t, "b", runs.Runs[0].Worker)
		})
	}
}

func TestAMemberThatStopsGivesBackWhatItCarriesForOthers(t *testing.T) {
	c, l := newCircuit(nil), newLedger()
	a := c.join(t, withFunc(l.carrier("a")))
	c.give(a, persistence.AllShards()...)
	cfg := withFunc(l.carrier("b"))
	cfg.Limits.Deliveries = 1
	b := c.join(t, cfg)
	id := a.begin(t, a.publish(t, oneJob), `{}`)
	job := <-l.begun
	c.move(t, b, shardOf(id)...)
	stopSoon(t, a)
	require.Equal(t, job, <-l.begun, "nobody has to find out that it is gone")
	close(l.free)
	require.Equal(t, flow.TaskCompleted, c.ended(t, id).State.Status, "nothing was lost")
}

func TestThatAJobHasBegunIsToldToWhoeverHasItsTask(t *testing.T) {
	c, l := newCircuit(nil), newLedger()
	a := c.join(t, withFunc(l.carrier("a")))
	c.give(a, persistence.AllShards()...)
	busy := withFunc(l.carrier("b"))
	busy.Concurrency = map[flow.ExecType]int{flow.ExecFunc: 1}
	b := c.join(t, busy)
	version := a.publish(t, oneJob)
	id, other := a.begin(t, version, `{}`), a.begin(t, version, `{}`)
	<-l.begun
	<-l.begun
	c.die(t, a)
	c.give(b, persistence.AllShards()...) // one of them waits in line there
	first := <-l.begun
	d := c.join(t, withFunc(l.carrier("d")))
	c.move(t, d, persistence.AllShards()...)
	l.free <- struct{}{}
	second := <-l.begun
	require.NotEqual(t, first, second)
	task, at, err := flow.ParseJobID(second)
	require.NoError(t, err)
	view, err := d.reader.View(t.Context(), task)
	require.NoError(t, err)
	require.Equal(t, flow.UnitRunning, view.State.Root.Step.Units[at.Unit].Status, "its beginning was stored before it was carried out")
	close(l.free)
	for _, id := range []string{id, other} {
		require.Equal(t, flow.TaskCompleted, c.ended(t, id).State.Status)
	}
}

func TestAJobIsClaimedByAPollerAtAnotherMember(t *testing.T) {
	type poll func(time.Duration) []engine.Claimed
	for name, take := range map[string]func(begin func(), poll poll) []engine.Claimed{
		"that waits": func(begin func(), poll poll) []engine.Claimed {
			got := make(chan []engine.Claimed, 1)
			go func() { got <- poll(patience) }()
			begin()
			return <-got
		},
		"that comes later, and waits": func(begin func(), poll poll) []engine.Claimed {
			begin()
			return poll(patience)
		},
		"that does not wait": func(begin func(), poll poll) []engine.Claimed {
			begin()
			return poll(0)
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCircuit(nil)
			a := c.join(t, actors.Config{})
			c.give(a, persistence.AllShards()...)
			b := c.join(t, actors.Config{})
			version := a.publish(t, queueOf("x"))
			got := take(func() { a.begin(t, version, `{}`) }, func(wait time.Duration) []engine.Claimed { return b.poll(t, wait, 1, "x") })
			require.Len(t, got, 1)
			order, err := engine.Completing(got[0].Job.ID(), flow.Report{Token: got[0].Token})
			require.NoError(t, err)
			require.NoError(t, c.lines[b].Do(t.Context(), engine.Orders{order})[0].Err)
			require.Equal(t, flow.TaskCompleted, c.ended(t, got[0].Job.Task).State.Status)
		})
	}
}

func TestAPollerFindsJobsOfOthersOfWhichItsMemberWasNotTold(t *testing.T) {
	c := newCircuit(nil)
	a := c.join(t, actors.Config{})
	c.give(a, persistence.AllShards()...)
	c.lines[a].mute = true
	b := c.join(t, actors.Config{})
	version := a.publish(t, queueOf("x"))
	require.Empty(t, b.poll(t, 0, 1, "x"))
	a.begin(t, version, `{}`)
	require.Len(t, b.poll(t, patience, 1, "x"), 1)
	a.begin(t, version, `{}`)
	require.Eventually(t, func() bool { return len(b.poll(t, 0, 1, "x")) == 1 }, patience, 10*time.Millisecond)
}

func TestPollersOfAllMembersGetEachJobOnce(t *testing.T) {
	c := newCircuit(nil)
	a := c.join(t, actors.Config{})
	c.give(a, persistence.AllShards()...)
	members := []*theatre{a, c.join(t, actors.Config{}), c.join(t, actors.Config{})}
	a.begin(t, a.publish(t, queueOverAList), listOf(200))
	got := make(chan engine.Claimed, 1000)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for i := range 9 {
		go func() {
			for ctx.Err() == nil {
				jobs, _ := members[i%3].Poll(ctx, engine.Poll{Worker: fmt.Sprint(i), Services: []string{"x"}, Max: 3, Wait: patience})
				for _, j := range jobs {
					got <- j
				}
			}
		}()
	}
	seen := map[string]bool{}
	for range 200 {
		select {
		case j := <-got:
			require.False(t, seen[j.Job.ID()])
			seen[j.Job.ID()] = true
		case <-time.After(patience):
			require.Fail(t, "jobs were not handed out", "%d were", len(seen))
		}
	}
	require.Empty(t, got)
}

func TestAMemberIsToldWhenTheClusterHasChanged(t *testing.T) {
	c := newCircuit(nil)
	changed := make(chan persistence.Pulse, 100)
	a := c.join(t, actors.Config{Lease: time.Second, Changed: func(p persistence.Pulse) { changed <- p }})
	c.join(t, actors.Config{})
	select {
	case <-changed:
	case <-time.After(patience):
		require.Fail(t, "it was not told")
	}
	require.NoError(t, a.Ready())
}
