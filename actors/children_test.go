package actors_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/actors"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/testing/model"
	"github.com/troupe-engine/troupe/persistence"
)

// gates hold the jobs of steps until they are opened, and count how often each job was carried out.
type gates struct {
	mu    sync.Mutex
	begun map[string]int
	open  map[string]chan struct{} // by node; a step without one is not held
}

func newGates(nodes ...string) *gates {
	g := &gates{begun: map[string]int{}, open: map[string]chan struct{}{}}
	for _, node := range nodes {
		g.open[node] = make(chan struct{})
	}
	return g
}

func (g *gates) carry(ctx context.Context, j flow.Job) flow.Report {
	g.mu.Lock()
	g.begun[j.Address.String()]++
	g.mu.Unlock()
	if gate := g.open[j.Node]; gate != nil {
		select {
		case <-gate:
		case <-ctx.Done():
			return flow.Report{Error: "called off"}
		}
	}
	return flow.Report{Output: json.RawMessage(`1`)}
}

// counts returns how many jobs were started, and how many of them more than once.
func (g *gates) counts() (jobs, again int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, n := range g.begun {
		if n > 1 {
			again++
		}
	}
	return len(g.begun), again
}

func (g *gates) await(t *testing.T, jobs int) {
	t.Helper()
	require.Eventually(t, func() bool { n, _ := g.counts(); return n == jobs }, patience, time.Millisecond)
}

// slow is a clock on which the linger time of a step's first report never ends.
type slow struct{ actors.Clock }

func (slow) Now() time.Time { return time.Now() }

func (slow) AfterFunc(d time.Duration, f func()) (stop func() bool) {
	if d == time.Millisecond {
		return func() bool { return true }
	}
	return time.AfterFunc(d, f).Stop
}

const twoFanouts = `
mode: dag
on_error: continue
nodes:
  one: {func: f, route: local_func, each: {count: 20}}
  two: {func: f, route: local_func, each: {count: 20}}
`

// starts counts the starts of actors by kind.
type starts struct{ task, step atomic.Int64 }

func (s *starts) note(kind string, message any) {
	if fmt.Sprintf("%T", message) == "*actor.Started" {
		map[string]*atomic.Int64{"task": &s.task, "step": &s.step}[kind].Add(1)
	}
}

func TestACrashOfAStepActorAffectsNoOtherActor(t *testing.T) {
	g := newGates("one", "two")
	cfg := withFunc(g.carry)
	var crash atomic.Bool
	var began starts
	cfg.Host.Probe = func(kind string, message any) {
		began.note(kind, message)
		if kind == "step" && fmt.Sprintf("%T", message) == "actors.collectReports" && crash.Swap(false) {
			panic("a planted crash")
		}
	}
	th := start(t, cfg)
	id := th.begin(t, th.publish(t, twoFanouts), `{}`)
	g.await(t, 40)
	crash.Store(true)
	close(g.open["one"])
	require.Eventually(t, func() bool { return began.step.Load() == 3 }, patience, time.Millisecond)
	close(g.open["two"])
	require.Equal(t, flow.TaskCompleted, th.ended(t, id).State.Status)
	jobs, again := g.counts()
	require.Equal(t, 40, jobs)
	require.Zero(t, again, "what had landed was not lost with the actor")
	require.EqualValues(t, 1, began.task.Load())
	require.EqualValues(t, 3, began.step.Load())
}

func TestACrashingStepActorFailsItsStepOnly(t *testing.T) {
	g := newGates("one", "two")
	var calledOff atomic.Int64
	cfg := withFunc(func(ctx context.Context, j flow.Job) flow.Report {
		if j.Node == "one" && j.Unit == 0 {
			g.await(t, 39)
			return flow.Report{}
		}
		r := g.carry(ctx, j)
		if ctx.Err() != nil {
			calledOff.Add(1)
		}
		return r
	})
	var began starts
	var crashed atomic.Bool
	cfg.Host.Probe = func(kind string, message any) {
		began.note(kind, message)
		text := fmt.Sprintf("%T %v", message, message)
		first := kind == "step" && strings.HasPrefix(text, "actors.collectReports") && !crashed.Swap(true)
		if first || kind == "step" && strings.HasPrefix(text, "actors.effectShare") && strings.Contains(text, " one ") && crashed.Load() {
			panic("a planted crash")
		}
	}
	th := start(t, cfg)
	id := th.begin(t, th.publish(t, twoFanouts), `{}`)
	require.Eventually(t, func() bool {
		view, err := th.reader.View(t.Context(), id)
		return err == nil && view.State.Root.Nodes[0].Status() == flow.StepFailed
	}, patience, time.Millisecond)
	require.Eventually(t, func() bool { return calledOff.Load() == 19 }, patience, time.Millisecond)
	close(g.open["two"])
	state := th.ended(t, id).State
	require.Contains(t, state.Root.Nodes[0].Rare().Error, "internal: the step's actor keeps crashing")
	require.Equal(t, flow.StepCompleted, state.Root.Nodes[1].Status())
	require.EqualValues(t, 1, began.task.Load())
	jobs, again := g.counts()
	require.Equal(t, 39, jobs)
	require.Zero(t, again)
}

// aShortWait is a subflow that waits, with its own timeout.
const aShortWait = `
start: sub
nodes:
  sub: {kind: subflow, timeout_ms: 800, subflow: {start: ok, nodes: {ok: {kind: approval, params: {approval_key: $shared.ok}, timeout_ms: 3600000}}}}
`

func TestARestartedStepActorDoesNotTakeAlarmsOfTheEnclosingOne(t *testing.T) {
	var crashed atomic.Bool
	var rung atomic.Int64
	cfg := actors.Config{Host: actors.Host{Probe: func(kind string, message any) {
		text := fmt.Sprintf("%#v", message)
		switch {
		case kind == "task" && strings.Contains(text, "cmd:flow.Ring{"):
			rung.Add(1)
		case kind == "step" && strings.HasPrefix(text, "actors.effectShare") && !crashed.Swap(true):
			panic("a planted crash")
		}
	}}}
	th := start(t, cfg)
	id := th.begin(t, th.publish(t, aShortWait), `{}`)
	require.Equal(t, flow.TaskFailed, th.ended(t, id).State.Status)
	require.True(t, crashed.Load())
	require.Zero(t, rung.Load(), "the task's own actor has that alarm")
}

func (th *harness) rows(t *testing.T, id string) int {
	t.Helper()
	rows, err := th.store.Rows(t.Context(), id, 0, persistence.Part{Rows: 1000, Bytes: 1 << 20})
	require.NoError(t, err)
	return len(rows)
}

func TestReportsOfAStepShareOneRow(t *testing.T) {
	g := newGates("each")
	cfg := withFunc(g.carry)
	cfg.Store, cfg.Host.Clock = model.New(model.Options{}), slow{}
	th := start(t, cfg)
	id := th.begin(t, th.publish(t, overAList), listOf(200))
	g.await(t, 200)
	require.Equal(t, 1, th.rows(t, id))
	close(g.open["each"])
	require.Equal(t, flow.TaskCompleted, th.ended(t, id).State.Status)
	require.Equal(t, 2, th.rows(t, id))
}

func (th *harness) eventuallySteps(t *testing.T, n int64) {
	t.Helper()
	require.Eventually(t, func() bool { return th.Stats().Actors["step"] == n }, patience, time.Millisecond)
}

// nested is a foreach in a flow in a flow, and a plain step beside it.
const nested = `
start: outer
nodes:
  outer:
    kind: subflow
    subflow:
      start: inner
      nodes:
        inner:
          kind: subflow
          subflow:
            start: each
            nodes: {each: {kind: foreach, exec_type: local_func, func: f, parallel_mode: concurrent, prep: {input_key: $params.list}}}
        last: {exec_type: local_func, func: f}
      edges: [{from: inner, action: default, to: last}]
`

func TestNestedStepActorsAreChildrenOfTheEnclosingOne(t *testing.T) {
	g := newGates("each", "last")
	cfg := withFunc(g.carry)
	var crash atomic.Bool
	var stopped atomic.Int64
	cfg.Host.Probe = func(kind string, message any) {
		text := fmt.Sprintf("%T", message)
		if kind == "step" && text == "*actor.Stopped" {
			stopped.Add(1)
		}
		if kind == "step" && text == "actors.collectReports" && crash.Swap(false) {
			panic("a planted crash")
		}
	}
	th := start(t, cfg)
	id := th.begin(t, th.publish(t, nested), listOf(5))
	g.await(t, 5)
	th.eventuallySteps(t, 3)
	crash.Store(true)
	close(g.open["each"])
	g.await(t, 6)
	th.eventuallySteps(t, 1)
	require.EqualValues(t, 3, stopped.Load(), "one crashed, came again and was over, and so was the one around it")
	crash.Store(true)
	close(g.open["last"]) // the outermost step collects the reports of its plain steps
	require.Equal(t, flow.TaskCompleted, th.ended(t, id).State.Status)
	_, again := g.counts()
	require.Zero(t, again)
	require.False(t, crash.Load())
}

func TestACrashStopsTheNestedSteps(t *testing.T) {
	g := newGates("each")
	cfg := withFunc(g.carry)
	var innermost, around atomic.Bool
	var began starts
	cfg.Host.Probe = func(kind string, message any) {
		began.note(kind, message)
		text := fmt.Sprintf("%T", message)
		switch {
		case kind != "step":
		case text == "actors.effectShare" && began.step.Load() == 3 && !innermost.Swap(true):
			panic("a planted crash, so that the step around this one hears of a respawn")
		case text == "actors.respawnStep" && !around.Swap(true):
			panic("a planted crash")
		}
	}
	th := start(t, cfg)
	id := th.begin(t, th.publish(t, nested), listOf(5))
	g.await(t, 5)
	th.eventuallySteps(t, 3)
	require.EqualValues(t, 5, began.step.Load(), "each of the two that were stopped began again")
	require.True(t, around.Load())
	close(g.open["each"])
	require.Equal(t, flow.TaskCompleted, th.ended(t, id).State.Status)
	_, again := g.counts()
	require.Zero(t, again)
}

func TestTheEndOfATaskWithdrawsTheJobsOfItsSteps(t *testing.T) {
	for name, definition := range map[string]string{"a fan-out": overAList, "flows inside": nested} {
		t.Run(name, func(t *testing.T) {
			g := newGates("each", "last")
			var ended atomic.Int64
			cfg := withFunc(func(ctx context.Context, j flow.Job) flow.Report {
				defer ended.Add(1)
				return g.carry(ctx, j)
			})
			cfg.Concurrency = map[flow.ExecType]int{flow.ExecFunc: 4}
			th := start(t, cfg)
			id := th.begin(t, th.publish(t, definition), listOf(50))
			g.await(t, 4)
			require.NoError(t, th.Do(t.Context(), id, flow.Cancel{}, ""))
			require.Equal(t, flow.TaskCanceled, th.ended(t, id).State.Status)
			require.Eventually(t, func() bool {
				return ended.Load() == 4 && th.Stats().Ready == 0 &&
					th.Stats().Actors["step"] == 0
			}, patience, time.Millisecond)
			jobs, _ := g.counts()
			require.Equal(t, 4, jobs, "what was in line never began")
		})
	}
}

func TestAStopLosesNoReports(t *testing.T) {
	g := newGates()
	held := make(chan struct{})
	store := model.New(model.Options{})
	cfg := withFunc(func(ctx context.Context, j flow.Job) flow.Report {
		r := g.carry(ctx, j)
		if j.Unit == 2 {
			select {
			case <-held:
			case <-ctx.Done():
				r.Error = "called off"
			}
		}
		return r
	})
	cfg.Store, cfg.Host.Clock = store, slow{}
	th := start(t, cfg)
	id := th.begin(t, th.publish(t, overAList), listOf(3))
	g.await(t, 3)
	stopSoon(t, th)
	close(held)
	require.Equal(t, flow.TaskCompleted, start(t, cfg).ended(t, id).State.Status)
	jobs, again := g.counts()
	require.Equal(t, 3, jobs)
	require.Equal(t, 1, again, "only the one that was called off")
}

func TestATaskAtRestHasNoStepActorsAndGetsThemBack(t *testing.T) {
	var began starts
	th := start(t, actors.Config{IdleAfter: 30 * time.Millisecond, Host: actors.Host{Probe: began.note}})
	id := th.begin(t, th.publish(t, `
start: sub
nodes:
  sub: {kind: subflow, subflow: {start: ok, nodes: {ok: {kind: approval, params: {approval_key: $shared.ok}, timeout_ms: 3600000}, again: {kind: approval, params: {approval_key: $shared.again}}}, edges: [{from: ok, action: default, to: again}]}}
`), `{}`)
	require.Eventually(t, func() bool { return began.step.Load() == 1 }, patience, time.Millisecond)
	th.eventuallyEmpty(t)
	th.eventuallySteps(t, 0)
	require.NoError(t, th.Do(t.Context(), id, flow.Pause{}, ""))
	require.Eventually(t, func() bool { return began.step.Load() == 2 }, patience, time.Millisecond)
	require.NoError(t, th.Do(t.Context(), id, flow.Cancel{}, ""))
	require.Equal(t, flow.TaskCanceled, th.ended(t, id).State.Status)
}
