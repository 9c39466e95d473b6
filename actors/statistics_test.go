package actors_test

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/stats"
	"github.com/troupe-engine/troupe/persistence"
)

// inAndOut is a flow with many units, and with a nested step.
const inAndOut = `{"start":"fan","on_error":"fail","nodes":{
	"fan":{"kind":"foreach","exec_type":"local_func","func":"f","parallel_mode":"concurrent","prep":{"input_key":"$params.list"}},
	"sub":{"kind":"subflow","subflow":{"start":"in","nodes":{"in":{"exec_type":"local_func","func":"f","retry":{"max_attempts":2}}}}}},
	"edges":[{"from":"fan","action":"default","to":"sub"}]}`

// sums returns the sums of all rows of one width about a version's tasks or nodes, by key.
func sums(t *testing.T, s persistence.Store, flows []string, nodes bool, width int64) map[stats.Key]*stats.Counts {
	t.Helper()
	rows, err := s.ReadStats(t.Context(), persistence.StatsFilter{Flows: flows, Nodes: nodes,
		Width: width, To: time.Now().Add(time.Hour).UnixMilli()})
	require.NoError(t, err)
	all := map[stats.Key]*stats.Counts{}
	for i := range rows {
		if all[rows[i].Key] == nil {
			all[rows[i].Key] = &stats.Counts{}
		}
		all[rows[i].Key].Add(&rows[i].Counts)
	}
	return all
}

func TestCountsOfMembersAddUp(t *testing.T) {
	store := openStore(t, filepath.Join(t.TempDir(), "troupe.db"))
	t.Cleanup(func() { store.Close() })
	version := ""
	for range 2 { // one member after another
		var calls atomic.Int64
		cfg := withFunc(func(context.Context, flow.Job) flow.Report {
			if calls.Add(1) == 4 {
				return flow.Report{Error: "not yet"}
			}
			return flow.Report{}
		})
		cfg.Store = store
		th := start(t, cfg)
		if version == "" {
			version = th.publish(t, inAndOut)
		}
		require.Equal(t, flow.TaskCompleted, th.run(t, version, `{"list":[1,2,3]}`).State.Status)
		require.Equal(t, flow.TaskCompleted, th.run(t, version, `{"list":[1,2]}`).State.Status)
		require.NoError(t, th.Stop(t.Context()))
	}
	v, err := store.Version(t.Context(), version)
	require.NoError(t, err)
	for _, width := range []int64{persistence.StatsMinute, persistence.StatsHour} {
		tasks := sums(t, store, []string{"", v.FlowID}, false, width)
		for _, at := range []stats.Key{{}, {Flow: v.FlowID, Version: version}} {
			require.Equal(t, []int64{4, 4, 0, 4}, []int64{tasks[at].Began, tasks[at].Completed, tasks[at].Failed, tasks[at].Took.N()}, at)
		}
		nodes := sums(t, store, []string{v.FlowID}, true, width)
		require.Len(t, nodes, 3)
		of := func(scope, node string) []int64 {
			n := nodes[stats.Key{Flow: v.FlowID, Version: version, Scope: scope, Node: node}]
			require.NotNil(t, n, node)
			return []int64{n.Completed, n.Units, n.Retried, n.Took.N()}
		}
		require.Equal(t, []int64{4, 10, 0, 4}, of("", "fan"))
		require.Equal(t, int64(4), of("", "sub")[0])
		require.Equal(t, []int64{4, 4, 2, 4}, of("sub", "in"))
	}
}

func TestACrashLosesNoMoreThanTheLastSecondsOfStatistics(t *testing.T) {
	store := openStore(t, filepath.Join(t.TempDir(), "troupe.db"))
	t.Cleanup(func() { store.Close() })
	cfg := withFunc(func(context.Context, flow.Job) flow.Report { return flow.Report{} })
	cfg.Store, cfg.Host.Clock = store, quick{time.Now()}
	th := start(t, cfg)
	version := th.publish(t, `{"start":"a","nodes":{"a":{"exec_type":"local_func","func":"f"}}}`)
	counted := func() int64 {
		if all := sums(t, store, []string{""}, false, persistence.StatsHour)[stats.Key{}]; all != nil {
			return all.Completed
		}
		return 0
	}
	// its clock is quick, so a store that is slow for a moment counts as unavailable
	run := func(key string) {
		th.ended(t, th.insist(t, engine.NewTask{VersionID: version, Params: json.RawMessage(`{}`), Key: key}))
	}
	for _, key := range []string{"1", "2", "3"} {
		run(key)
	}
	require.Eventually(t, func() bool { return counted() == 3 }, patience, 10*time.Millisecond)
	for _, key := range []string{"4", "5"} {
		run(key)
	}
	th.Kill()
	require.Contains(t, []int64{3, 4, 5}, counted())
	all, err := store.CountTasks(t.Context(), persistence.TaskFilter{Statuses: []string{"completed"}})
	require.NoError(t, err)
	require.Equal(t, 5, all, "tasks are counted exactly all the same")
}

func TestNodesInScopesTooLongForAnIndexAreCountedTogether(t *testing.T) {
	store := openStore(t, filepath.Join(t.TempDir(), "troupe.db"))
	t.Cleanup(func() { store.Close() })
	cfg := withFunc(func(context.Context, flow.Job) flow.Report { return flow.Report{} })
	cfg.Store = store
	th := start(t, cfg)
	definition := `{"start":"a","nodes":{"a":{"exec_type":"local_func","func":"f"}}}`
	for n := range 10 {
		name := strings.Repeat(strconv.Itoa(n), 250)
		definition = `{"start":"` + name + `","nodes":{"` + name + `":{"kind":"subflow","subflow":` + definition + `}}}`
	}
	version := th.publish(t, definition)
	require.Equal(t, flow.TaskCompleted, th.run(t, version, `{}`).State.Status)
	require.NoError(t, th.Stop(t.Context()))
	v, err := store.Version(t.Context(), version)
	require.NoError(t, err)
	other, ended := stats.Key{Flow: v.FlowID, Version: version, Node: stats.Other}, int64(0)
	nodes := sums(t, store, []string{v.FlowID}, true, persistence.StatsHour)
	for at, counts := range nodes {
		require.LessOrEqual(t, len(at.Scope), persistence.StatsScope)
		ended += counts.Completed
	}
	require.EqualValues(t, 11, ended)
	require.EqualValues(t, 5, nodes[other].Completed)
}
