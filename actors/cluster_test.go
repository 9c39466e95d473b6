package actors_test

import (
	"context"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/actors"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/testing/model"
	"github.com/troupe-engine/troupe/persistence"
)

func TestAMemberOfAClusterOwnsNothingUntilItGainsIt(t *testing.T) {
	c := newCircuit(nil)
	a := c.join(t, withFunc(increment))
	version := a.publish(t, chainOfThree)
	_, _, err := a.StartTask(t.Context(), engine.NewTask{VersionID: version})
	require.Equal(t, flow.Moved, flow.ErrorKindOf(err))
	c.give(a, persistence.AllShards()...)
	require.Equal(t, flow.TaskCompleted, a.run(t, version, `{"n":1}`).State.Status)
}

func TestASoleMemberOwnsAllTasks(t *testing.T) {
	store := openStore(t, filepath.Join(t.TempDir(), "troupe.db"))
	t.Cleanup(func() { store.Close() })
	a := newCircuit(store).join(t, withFunc(increment))
	require.Equal(t, flow.TaskCompleted, a.run(t, a.publish(t, chainOfThree), `{"n":1}`).State.Status)
	require.Equal(t, flow.Conflict, flow.ErrorKindOf(a.Lose(t.Context(), []int{1})))
	require.Equal(t, flow.TaskCompleted, a.run(t, a.publish(t, chainOfThree), `{"n":1}`).State.Status)
}

func TestACancelReachesTheCarrierOfTheJob(t *testing.T) {
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
	id := a.begin(t, a.publish(t,
		`{"start":"e","nodes":{"e":{"kind":"foreach","exec_type":"local_func","func":"f","parallel_mode":"concurrent","prep":{"input_key":"$params.list"}}}}`),
		listOf(3))
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

func TestJobsOfADepartedMemberAreRecovered(t *testing.T) {
	for name, owner := range map[string]string{"for its own tasks": "a", "for tasks of another": "b"} {
		t.Run(name, func(t *testing.T) {
			c, l, a, b := newPair(t, nil)
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
			b.Gone(a.Incarnation(), false)
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

func TestAStoppingMemberReturnsJobsOfOtherMembers(t *testing.T) {
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

func TestAJobStartIsReportedToTheOwnerOfItsTask(t *testing.T) {
	c, l := newCircuit(nil), newLedger()
	a := c.join(t, withFunc(l.carrier("a")))
	c.give(a, persistence.AllShards()...)
	busy := withFunc(l.carrier("b"))
	busy.Concurrency = map[flow.ExecType]int{flow.ExecFunc: 1}
	b, e := c.join(t, busy), c.join(t, withFunc(l.carrier("e")))
	version := a.publish(t, oneJob)
	id, other := a.begin(t, version, `{}`), a.begin(t, version, `{}`)
	for _, gone := range []*harness{a, e} { // no event records a job that was returned only once
		if gone == e {
			c.give(e, persistence.AllShards()...)
		}
		<-l.begun
		<-l.begun
		c.die(t, gone)
	}
	c.give(b, persistence.AllShards()...) // one of them waits in the queue there
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

func TestAMemberIsNotifiedOfClusterChanges(t *testing.T) {
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

func TestTimeDoesNotRunBackwardsForATaskThatMoves(t *testing.T) {
	var behind atomic.Int64
	c := newCircuit(model.New(model.Options{Now: func() time.Time { return time.Now().Add(-time.Duration(behind.Load())) }}))
	a := c.join(t, withFunc(increment))
	c.give(a, persistence.AllShards()...)
	id := a.begin(t, a.publish(t, `{"start":"a","nodes":{"a":{"kind":"approval","params":{"approval_key":"$shared.ok"}}}}`), `{}`)
	behind.Store(int64(time.Minute)) // the clock of the next owner, which may be slightly behind
	b := c.join(t, withFunc(increment))
	c.move(t, b, persistence.AllShards()...)
	require.NoError(t, b.Do(t.Context(), id, flow.Signal{Key: "ok", Value: []byte(`true`)}, ""))
	c.ended(t, id)
	rows, err := c.store.Rows(t.Context(), id, 0, persistence.Part{Rows: 9, Bytes: 1 << 20})
	require.NoError(t, err)
	require.Len(t, rows, 2)
	require.GreaterOrEqual(t, rows[1].At, rows[0].At)
}

func TestAStoppedClusterMemberAnswersMoved(t *testing.T) {
	c := newCircuit(nil)
	a, b := c.join(t, withFunc(increment)), c.join(t, withFunc(increment))
	c.give(a, persistence.AllShards()...)
	version := a.publish(t, chainOfThree)
	id := a.begin(t, version, `{"n":1}`)
	c.move(t, b, persistence.AllShards()...)
	require.NoError(t, a.Stop(t.Context()))
	_, _, started := a.StartTask(t.Context(), engine.NewTask{VersionID: version})
	outcomes, err := a.DoAll(t.Context(), engine.Orders{{Task: id, Command: flow.Cancel{}}})
	require.NoError(t, err)
	_, awaited := a.Await(t.Context(), id)
	for _, err := range []error{started, a.Do(t.Context(), id, flow.Cancel{}, ""), outcomes[0].Err, awaited} {
		require.Equal(t, flow.Moved, flow.ErrorKindOf(err), "%v", err)
	}
}
