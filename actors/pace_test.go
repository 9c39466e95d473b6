package actors_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/actors"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
)

// endless never ends by itself. In other profiles, a loop of choices ends early.
const endless = `
profile: pocketflow
start: a
nodes: {a: {kind: choice, default_action: go}, b: {kind: choice, default_action: go}}
edges: [{from: a, action: go, to: b}, {from: b, action: go, to: a}]`

func TestEndlessLoopsDoNotDelayOtherTasks(t *testing.T) {
	th := start(t, actors.Config{Limits: flow.Limits{Steps: 1 << 40}})
	loop, short := th.publish(t, endless), th.publish(t, "start: a\nnodes: {a: {kind: choice}}")
	var loops []string
	for range 6 {
		loops = append(loops, th.begin(t, loop, `{}`))
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for range 50 {
		id, _, err := th.StartTask(ctx, engine.NewTask{VersionID: short})
		require.NoError(t, err)
		_, err = th.Await(ctx, id)
		require.NoError(t, err)
	}
	for i, id := range loops {
		if i%2 == 0 {
			require.NoError(t, th.Do(ctx, id, flow.Pause{}, ""))
		}
		require.NoError(t, th.Cancel(ctx, id, flow.Cancel{}))
	}
}

func TestStepsWithoutWorkArePaced(t *testing.T) {
	th := start(t, actors.Config{Limits: flow.Limits{Steps: 16_000}})
	view := th.run(t, th.publish(t, endless), `{}`)
	require.Contains(t, view.State.Error, "limit: the task has run 16000 steps")
	require.GreaterOrEqual(t, view.State.EndedAt-view.State.CreatedAt, int64(500), "10,000 at once, then 10,000 a second")
}

// TestACutDecisionContinuesAfterItsRowIsStored records the messages to the actor of an endless
// task.
func TestACutDecisionContinuesAfterItsRowIsStored(t *testing.T) {
	var mu sync.Mutex
	var got []string
	th := start(t, actors.Config{Limits: flow.Limits{Steps: 5_000}, Host: actors.Host{Probe: func(actor string, message any) {
		mu.Lock()
		defer mu.Unlock()
		if name := fmt.Sprintf("%T", message); actor == "task" &&
			(strings.HasSuffix(name, ".resumeCut") || strings.HasSuffix(name, ".Written")) {
			got = append(got, name)
		}
	}}})
	th.run(t, th.publish(t, endless), `{}`)
	mu.Lock()
	defer mu.Unlock()
	require.GreaterOrEqual(t, len(got), 20)
	for i := 1; i < len(got); i++ {
		require.NotEqual(t, got[i-1], got[i], "each decision is stored before it goes on: %s", got)
	}
}

func TestAMemberWithAnEndlessLoopStopsAtOnce(t *testing.T) {
	store := openStore(t, t.TempDir()+"/troupe.db")
	t.Cleanup(func() { store.Close() })
	th := start(t, actors.Config{Store: store, Limits: flow.Limits{Steps: 30_000}})
	id := th.begin(t, th.publish(t, endless), `{}`)
	began := time.Now()
	require.NoError(t, th.Stop(t.Context()))
	require.Less(t, time.Since(began), 4*time.Second, "it did not wait for the loop's end")
	th = start(t, actors.Config{Store: store, Limits: flow.Limits{Steps: 30_000}})
	view := th.ended(t, id)
	require.Contains(t, view.State.Error, "limit: the task has run 30000 steps", "the next one has gone on with it")
}
