package actors_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/actors"
	"github.com/troupe-engine/troupe/definition/compile"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/testing/model"
	"github.com/troupe-engine/troupe/persistence"
)

// gauge is a carrier that counts how many jobs of a key, which is the job's input, run at once.
type gauge struct {
	mu    sync.Mutex
	now   map[string]int
	most  map[string]int
	order []string
	begun chan string
	free  chan struct{} // nil if jobs take a moment
}

func newGauge() *gauge {
	return &gauge{now: map[string]int{}, most: map[string]int{}, begun: make(chan string, 1000)}
}

func (g *gauge) Carry(ctx context.Context, j flow.Job) flow.Report {
	key := string(j.Input)
	g.mu.Lock()
	g.now[key]++
	g.most[key] = max(g.most[key], g.now[key])
	g.order = append(g.order, key)
	g.mu.Unlock()
	g.begun <- key
	if g.free == nil {
		time.Sleep(time.Millisecond) // time for others to overlap
	} else {
		select {
		case <-g.free:
		case <-ctx.Done():
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.now[key]--
	if ctx.Err() != nil {
		return flow.Report{Error: "called off"}
	}
	return flow.Report{Output: j.Input}
}

func (g *gauge) mosts() map[string]int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.most
}

// atMost requires that never more than limit jobs of a key ran at once.
func (g *gauge) atMost(t *testing.T, limit int) {
	t.Helper()
	for key, most := range g.mosts() {
		require.LessOrEqual(t, most, limit, key)
	}
}

func gauged(g *gauge) actors.Config {
	return actors.Config{Carriers: map[flow.ExecType]actors.Carrier{flow.ExecFunc: g}}
}

const byCustomer = `
start: a
nodes:
  a: {func: f, prep: {input_key: $params.c}, post: {output_key: out}, concurrency: {key: $params.c, limit: 2}}
`

func TestAKeyLimitsConcurrentAttempts(t *testing.T) {
	for name, store := range map[string]persistence.Store{"sqlite": nil, "model": model.New(model.Options{})} {
		t.Run(name, func(t *testing.T) {
			g := newGauge()
			cfg := gauged(g)
			cfg.Store = store
			th := start(t, cfg)
			version := th.publish(t, byCustomer)
			var ids []string
			for i := range 60 {
				ids = append(ids, th.begin(t, version, fmt.Sprintf(`{"c":"c%d"}`, i%3)))
			}
			for _, id := range ids {
				require.Equal(t, flow.TaskCompleted, th.ended(t, id).State.Status)
			}
			g.atMost(t, 2)
			require.Len(t, g.order, 60)
			require.Empty(t, openKeys(t, th.store))
		})
	}
}

func openKeys(t *testing.T, store persistence.Store) []string {
	keys, err := store.OpenKeys(t.Context(), nil, "", 100)
	require.NoError(t, err)
	return keys
}

func TestUnitsWaitForTheKeysOfTheirItems(t *testing.T) {
	g := newGauge()
	th := start(t, gauged(g))
	view := th.run(t, th.publish(t, `
start: each
nodes:
  each: {kind: foreach, func: f, parallel_mode: concurrent, prep: {input_key: $params.list}, post: {output_key: out}, concurrency: {key: $item, limit: 2}}
`), `{"list":[1,2,1,2,1,2,1,2,1,1,1,1,3]}`)
	require.JSONEq(t, `{"out":[1,2,1,2,1,2,1,2,1,1,1,1,3]}`, string(view.State.Root.SharedJSON()))
	g.atMost(t, 2)
}

func TestTasksWaitForTheKeyOfTheirFlowAndRestMeanwhile(t *testing.T) {
	g := newGauge()
	g.free = make(chan struct{})
	cfg := gauged(g)
	cfg.IdleAfter = 30 * time.Millisecond
	th := start(t, cfg)
	version := th.publish(t, "concurrency: {limit: 1}\nstart: a\nnodes: {a: {func: f}}\n")
	var ids []string
	for range 4 {
		ids = append(ids, th.begin(t, version, `{}`))
	}
	<-g.begun
	require.Eventually(t, func() bool { return th.Stats().Actors["task"] == 1 }, patience, 5*time.Millisecond, "those who wait are rows")
	waits := 0
	for _, id := range ids {
		view, err := th.reader.View(t.Context(), id)
		require.NoError(t, err)
		if w := flow.Waiting(view.State); len(w) > 0 && w[0].For == flow.WaitsForPermit {
			waits++
		}
	}
	require.Equal(t, 3, waits)
	close(g.free)
	for _, id := range ids {
		require.Equal(t, flow.TaskCompleted, th.ended(t, id).State.Status)
	}
	require.Equal(t, 1, g.mosts()["null"])
}

func TestARateLimitsStarts(t *testing.T) {
	g := newGauge()
	th := start(t, gauged(g))
	version := th.publish(t, "start: a\nnodes: {a: {func: f, rate: {limit: 3, per: 300ms}}}\n")
	var ids []string
	for range 9 {
		ids = append(ids, th.begin(t, version, `{}`))
	}
	var begun []int64
	for _, id := range ids {
		th.ended(t, id)
		rows, err := th.store.Rows(t.Context(), id, 0, persistence.Part{Rows: 100, Bytes: 1 << 20})
		require.NoError(t, err)
		for _, row := range rows {
			events, err := flow.DecodeEvents(row.Events)
			require.NoError(t, err)
			for _, e := range events {
				if e.Type == flow.PermitGranted {
					begun = append(begun, e.At)
				}
			}
		}
	}
	require.Len(t, begun, 9)
	first, last := begun[0], begun[0]
	for _, at := range begun {
		first, last = min(first, at), max(last, at)
	}
	require.GreaterOrEqual(t, last-first, int64(500), "nine in threes take two pauses")
	rows, err := th.store.PermitsOf(t.Context(), ids[0])
	require.NoError(t, err)
	require.Empty(t, rows, "what has begun is used up")
}

func TestATaskThatMayNotWaitIsRefused(t *testing.T) {
	g := newGauge()
	g.free = make(chan struct{})
	th := start(t, gauged(g))
	version := th.publish(t, "concurrency: {limit: 1, when_full: refuse}\nstart: a\nnodes: {a: {func: f}}\n")
	first := th.begin(t, version, `{}`)
	<-g.begun
	view := th.run(t, version, `{}`)
	require.Equal(t, flow.TaskFailed, view.State.Status)
	require.Contains(t, view.State.Error, "limit: no room for tasks:flow-TestATaskThatMayNotWaitIsRefused")
	close(g.free)
	require.Equal(t, flow.TaskCompleted, th.ended(t, first).State.Status)
	require.Equal(t, flow.TaskCompleted, th.run(t, version, `{}`).State.Status)
}

func TestANewerTaskReplacesTheOldest(t *testing.T) {
	g := newGauge()
	g.free = make(chan struct{})
	th := start(t, gauged(g))
	version := th.publish(t, "concurrency: {limit: 1, when_full: cancel_running}\nstart: a\nnodes: {a: {func: f}}\n")
	first := th.begin(t, version, `{}`)
	<-g.begun
	second := th.begin(t, version, `{}`)
	view := th.ended(t, first)
	require.Equal(t, flow.TaskCanceled, view.State.Status)
	require.Contains(t, view.State.Error, "a newer one takes its place")
	<-g.begun
	close(g.free)
	require.Equal(t, flow.TaskCompleted, th.ended(t, second).State.Status)
}

func TestACanceledTaskLeavesTheQueueOfItsKey(t *testing.T) {
	g := newGauge()
	g.free = make(chan struct{})
	th := start(t, gauged(g))
	version := th.publish(t, byCustomer)
	var ids []string
	for range 4 {
		ids = append(ids, th.begin(t, version, `{"c":"c"}`))
	}
	<-g.begun
	<-g.begun
	for _, id := range ids {
		require.NoError(t, th.Cancel(t.Context(), id, flow.Cancel{}))
	}
	for _, id := range ids {
		require.Equal(t, flow.TaskCanceled, th.ended(t, id).State.Status)
	}
	require.Empty(t, openKeys(t, th.store))
}

// TestTheExamplesOfTheKeysPageRun runs every flow of docs/how-to/limits.md.
func TestTheExamplesOfTheKeysPageRun(t *testing.T) {
	page, err := os.ReadFile("../docs/how-to/limits.md")
	require.NoError(t, err)
	blocks := strings.Split(string(page), "```yaml\n# params: ")[1:]
	require.Len(t, blocks, strings.Count(string(page), "```yaml"))
	g := newGauge()
	th := start(t, gauged(g))
	for _, block := range blocks {
		params, definition, _ := strings.Cut(block, "\n")
		definition, _, _ = strings.Cut(definition, "```")
		_, problems := compile.Text([]byte(definition), flow.Limits{})
		require.Empty(t, problems, "%s", definition)
		view := th.run(t, th.publish(t, definition), params)
		require.Equal(t, flow.TaskCompleted, view.State.Status, "%s", definition)
		asked := 0
		rows, err := th.store.Rows(t.Context(), view.ID, 0, persistence.Part{Rows: 100, Bytes: 1 << 20})
		require.NoError(t, err)
		for _, row := range rows {
			asked += strings.Count(string(row.Events), string(flow.PermitGranted))
		}
		require.Positive(t, asked, "%s", definition)
	}
}

func newTaskOf(version, params string) engine.NewTask {
	return engine.NewTask{VersionID: version, Params: json.RawMessage(params)}
}
