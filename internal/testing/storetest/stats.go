package storetest

import (
	"errors"
	"math/rand/v2"
	"sync"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/stats"
	"github.com/troupe-engine/troupe/persistence"
)

// tasksOf returns a row about tasks of a flow with the given durations.
func tasksOf(flowID, version string, bucket int64, ms ...int64) persistence.StatsRow {
	r := persistence.StatsRow{StatsSpot: persistence.StatsSpot{Key: stats.Key{Flow: flowID,
		Version: version}, Width: persistence.StatsMinute, Bucket: bucket}}
	for _, d := range ms {
		r.Counts.End(flow.TaskCompleted, "task", bucket, d)
	}
	return r
}

// nodeOf returns a row about a node.
func nodeOf(flowID, scope, node string, bucket int64) persistence.StatsRow {
	r := tasksOf(flowID, "v", bucket)
	r.Scope, r.Node = scope, node
	r.Counts.Tally(&flow.Tally{What: flow.TallyFailed, N: 3, MS: 7}, "task", bucket)
	return r
}

func (w *testEnv) addStats(rows ...persistence.StatsRow) {
	w.Helper()
	for _, r := range rows {
		if r.Flow == "" {
			continue
		}
		if err := w.CreateFlow(w.ctx(), persistence.Flow{ID: r.Flow}); !errors.Is(err, persistence.ErrDuplicate) {
			require.NoError(w, err)
		}
	}
	require.NoError(w, w.AddStats(w.ctx(), rows))
}

// readStats returns the rows of a filter, by default with buckets of a minute.
func (w *testEnv) readStats(f persistence.StatsFilter) (rows []persistence.StatsRow) {
	w.Helper()
	if f.Width == 0 {
		f.Width = persistence.StatsMinute
	}
	if f.To == 0 {
		f.To = 1 << 50
	}
	return requireList[persistence.StatsRow](w)(w.ReadStats(w.ctx(), f))
}

func spotsOf(rows []persistence.StatsRow) (spots []persistence.StatsSpot) {
	for _, r := range rows {
		spots = append(spots, r.StatsSpot)
	}
	return spots
}

var statistics = []storeBehavior{
	{"a node with a long name, in a scope as long as may be, is counted", func(w *testEnv) {
		rng, scope := rand.New(rand.NewPCG(1, 1)), ""
		for len(scope) < persistence.StatsScope {
			scope += randomText(rng)
		}
		long := nodeOf("f", scope[:persistence.StatsScope], (randomText(rng) + randomText(rng))[:256], 60_000)
		w.addStats(long, nodeOf("f", "", "pay", 60_000))
		w.addStats(long)
		rows := w.readStats(persistence.StatsFilter{Flows: []string{"f"}, Nodes: true})
		require.Len(w, rows, 2)
		require.Equal(w, long.StatsSpot, rows[1].StatsSpot)
		require.EqualValues(w, 2, rows[1].Counts.Failed)
	}},
	{"what is added to a spot adds up, whoever adds", func(w *testEnv) {
		w.addStats(tasksOf("f", "v", 60_000, 10, 20), nodeOf("f", "", "pay", 60_000))
		w.addStats(tasksOf("f", "v", 60_000, 30), nodeOf("f", "", "pay", 60_000), tasksOf("f", "v", 120_000, 5))
		rows := w.readStats(persistence.StatsFilter{Flows: []string{"f"}})
		require.Equal(w, []persistence.StatsSpot{tasksOf("f", "v", 60_000).StatsSpot, tasksOf("f", "v", 120_000).StatsSpot}, spotsOf(rows))
		require.Equal(w, []int64{3, 60, 30}, []int64{rows[0].Counts.Completed, rows[0].Counts.Took.Sum(), rows[0].Counts.Took.Max()})
		nodes := w.readStats(persistence.StatsFilter{Flows: []string{"f"}, Nodes: true})
		require.Len(w, nodes, 1)
		require.Equal(w, []any{int64(2), int64(6), "task"},
			[]any{nodes[0].Counts.Failed, nodes[0].Counts.Units, nodes[0].Counts.LastFailed})
	}},
	{"members that add at the same time lose nothing", func(w *testEnv) {
		var members sync.WaitGroup
		for range 4 {
			members.Go(func() {
				for range 10 {
					w.addStats(tasksOf("", "", 0, 1), tasksOf("f", "v", 0, 1))
				}
			})
		}
		members.Wait()
		for _, r := range w.readStats(persistence.StatsFilter{Flows: []string{"", "f"}}) {
			require.Equal(w, int64(40), r.Counts.Completed, r.StatsSpot)
		}
	}},
	{"rows are picked by flow, version, node and time", func(w *testEnv) {
		hour := tasksOf("f", "v", 0, 1)
		hour.Width = persistence.StatsHour
		w.addStats(tasksOf("f", "v", 0, 1), tasksOf("f", "w", 0, 1), tasksOf("g", "x", 0, 1), tasksOf("", "", 0, 1), hour,
			nodeOf("f", "", "a", 0), nodeOf("f", "sub", "a", 0), nodeOf("f", "", "a", 60_000))
		for want, f := range map[int]persistence.StatsFilter{
			0: {Flows: []string{"none", "no\x00text"}},
			1: {Flows: []string{"f"}, Version: "w"},
			2: {Flows: []string{"f"}, Nodes: true, Node: "a"},
			3: {Flows: []string{"f", "g"}},
		} {
			require.Len(w, w.readStats(f), want, "%+v", f)
		}
		require.Empty(w, w.readStats(persistence.StatsFilter{}))
		require.Len(w, w.readStats(persistence.StatsFilter{Flows: []string{""}}), 1)
		require.Len(w, w.readStats(persistence.StatsFilter{Flows: []string{"f"}, Width: persistence.StatsHour}), 1)
		require.Equal(w, []persistence.StatsSpot{nodeOf("f", "sub", "a", 0).StatsSpot},
			spotsOf(w.readStats(persistence.StatsFilter{Flows: []string{"f"}, Nodes: true,
				Scope: "sub", Node: "a"})))
		require.Len(w, w.readStats(persistence.StatsFilter{Flows: []string{"f"}, Nodes: true, From: 60_000}), 1)
		require.Len(w, w.readStats(persistence.StatsFilter{Flows: []string{"f"}, Nodes: true, To: 60_000}), 2)
	}},
	{"the oldest of a width are deleted, so many at once", func(w *testEnv) {
		hour := tasksOf("f", "v", 0, 1)
		hour.Width = persistence.StatsHour
		w.addStats(hour, tasksOf("f", "v", 0, 1), tasksOf("f", "v", 60_000, 1), tasksOf("f", "v", 120_000, 1))
		for _, want := range []int{1, 1, 0} {
			n, err := w.DeleteStats(w.ctx(), persistence.StatsMinute, 120_000, 1)
			require.NoError(w, err)
			require.Equal(w, want, n)
		}
		require.Len(w, w.readStats(persistence.StatsFilter{Flows: []string{"f"}}), 1)
		require.Len(w, w.readStats(persistence.StatsFilter{Flows: []string{"f"}, Width: persistence.StatsHour}), 1)
	}},
	{"a flow that is deleted takes its statistics along", func(w *testEnv) {
		w.addStats(tasksOf("flow", "version", 0, 1), tasksOf("", "", 0, 1), nodeOf("flow", "", "a", 0))
		_, err := w.DeleteFlow(w.ctx(), "flow", 10)
		require.NoError(w, err)
		require.Len(w, w.readStats(persistence.StatsFilter{Flows: []string{"", "flow"}}), 1)
		require.Empty(w, w.readStats(persistence.StatsFilter{Flows: []string{"flow"}, Nodes: true}))
	}},
	{"what comes for a flow that was deleted is left out", func(w *testEnv) {
		_, err := w.DeleteFlow(w.ctx(), "flow", 10)
		require.NoError(w, err)
		require.NoError(w, w.AddStats(w.ctx(), []persistence.StatsRow{tasksOf("", "", 0, 1),
			tasksOf("flow", "version", 0, 1), nodeOf("flow", "", "a", 0)}))
		require.Len(w, w.readStats(persistence.StatsFilter{Flows: []string{"", "flow"}}), 1)
		require.Empty(w, w.readStats(persistence.StatsFilter{Flows: []string{"flow"}, Nodes: true}))
	}},
}
