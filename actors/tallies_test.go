package actors_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/actors"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// scrape returns a member's counters, gauges and observation counts of histograms, by name and
// label values in the order of label names.
func (th *harness) scrape(t *testing.T) map[string]float64 {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(th.Collectors()...)
	families, err := registry.Gather()
	require.NoError(t, err)
	told := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			key := []string{f.GetName()}
			for _, l := range m.GetLabel() {
				key = append(key, l.GetValue())
			}
			told[strings.Join(key, " ")] = m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return told
}

// named stores a definition as the only version of a flow with a name.
func (th *harness) named(t *testing.T, slug, definition string) string {
	t.Helper()
	require.NoError(t, th.store.CreateFlow(t.Context(), persistence.Flow{ID: "flow-" + slug, Slug: slug, Name: slug}))
	v := persistence.Version{ID: "ver-" + slug, FlowID: "flow-" + slug, Number: 1, Status: "published", Definition: []byte(definition)}
	require.NoError(t, th.store.CreateVersion(t.Context(), v))
	return v.ID
}

func TestAttemptsAreCountedByNodeIfConfigured(t *testing.T) {
	const two = `{"start":"a","nodes":{"a":{"exec_type":"local_func","func":"f","post":{"action_static":"on"}},"b":{"exec_type":"local_func","func":"f"}},"edges":[{"from":"a","action":"on","to":"b"}]}`
	for _, asked := range []bool{false, true} {
		cfg := withFunc(func(context.Context, flow.Job) flow.Report { return flow.Report{} })
		cfg.NodeMetrics = asked
		th := start(t, cfg)
		require.Equal(t, "completed", th.run(t, th.named(t, "order", two), `{}`).Status)
		told := th.scrape(t)
		require.EqualValues(t, 2, told["troupe_attempts_total ok local_func"])
		if !asked {
			require.NotContains(t, told, "troupe_node_attempts_total order a ok")
			continue
		}
		require.Subset(t, told, map[string]float64{
			"troupe_node_attempts_total order a ok":        1,
			"troupe_node_attempts_total order b ok":        1,
			"troupe_node_attempts_total order b error":     0,
			"troupe_node_attempt_duration_seconds order a": 1,
		})
		for i := range 3 { // of 200 nodes each
			nodes, edges := []string{}, []string{}
			for n := range 200 {
				nodes = append(nodes, fmt.Sprintf(`"n%d":{"exec_type":"local_func","func":"f","post":{"action_static":"on"}}`, n))
				if n > 0 {
					edges = append(edges, fmt.Sprintf(`{"from":"n%d","action":"on","to":"n%d"}`, n-1, n))
				}
			}
			v := th.named(t, fmt.Sprintf("long-%d", i),
				`{"start":"n0","nodes":{`+strings.Join(nodes, ",")+`},"edges":[`+strings.Join(edges,
					",")+`]}`)
			require.Equal(t, "completed", th.run(t, v, `{}`).Status)
		}
		told = th.scrape(t)
		require.EqualValues(t, 102, told["troupe_node_attempts_total other other ok"], "500 have series of their own")
		require.EqualValues(t, 602, told["troupe_attempts_total ok local_func"])
	}
}

func TestTasksAndAttemptsAreCountedByFlowAndService(t *testing.T) {
	tries := 0
	th := start(t, withFunc(func(_ context.Context, j flow.Job) flow.Report {
		if string(j.Input) == `"never"` {
			return flow.Report{Error: "no", Fatal: true}
		}
		if tries++; tries == 1 {
			return flow.Report{Error: "not yet"}
		}
		return flow.Report{}
	}))
	v := th.named(t, "order",
		`{"start":"a","nodes":{"a":{"exec_type":"local_func","func":"f","prep":{"input_key":"$params.n"},"retry":{"max_attempts":2}}}}`)
	require.Equal(t, "completed", th.run(t, v, `{"n":1}`).Status)
	require.Equal(t, "failed", th.run(t, v, `{"n":"never"}`).Status)
	told := th.scrape(t)
	require.Subset(t, told, map[string]float64{
		"troupe_tasks_started_total order":             2,
		"troupe_tasks_ended_total order completed":     1,
		"troupe_tasks_ended_total order failed":        1,
		"troupe_tasks_ended_total order canceled":      0,
		"troupe_task_duration_seconds order failed":    1,
		"troupe_attempts_total ok local_func":          1,
		"troupe_attempts_total error local_func":       2,
		"troupe_attempts_total lost local_func":        0,
		"troupe_attempt_retries_total local_func":      1,
		"troupe_attempt_duration_seconds local_func":   3,
		"troupe_attempt_wait_seconds local_func":       3,
		"troupe_claims_expired_total local_func":       0,
		"troupe_task_duration_seconds order completed": 1,
	})
}

func TestAnExpiredClaimIsCountedAsLost(t *testing.T) {
	th := start(t, actors.Config{Visibility: 50 * time.Millisecond})
	id, _, err := th.StartTask(t.Context(), engine.NewTask{VersionID: th.named(t, "mail", queueOf("email"))})
	require.NoError(t, err)
	require.Len(t, th.poll(t, patience, 1, "email"), 1)
	require.Len(t, th.poll(t, patience, 1, "email"), 1, "somebody else gets it")
	told := th.scrape(t)
	require.GreaterOrEqual(t, told["troupe_claims_expired_total email"], 1.)
	require.GreaterOrEqual(t, told["troupe_attempts_total lost email"], 1.)
	require.GreaterOrEqual(t, told["troupe_attempt_wait_seconds email"], 2.)
	require.Equal(t, 1., told["troupe_tasks_started_total mail"])
	require.NotEmpty(t, id)
}

// Each is a flow of its own: they would use up the series of later flows.
func TestTrialDefinitionsShareOneSeries(t *testing.T) {
	cfg := withFunc(increment)
	cfg.NodeMetrics = true
	th := start(t, cfg)
	for range 2 {
		v, _, err := persistence.Try(t.Context(), th.store, persistence.Publication{Slug: "order",
			Definition: []byte(
				`{"start":"a","nodes":{"a":{"exec_type":"local_func","func":"f","prep":{"input_key":"$params.n"}}}}`)},
			"")
		require.NoError(t, err)
		require.Equal(t, "completed", th.run(t, v.ID, `{"n":1}`).Status)
	}
	told := th.scrape(t)
	require.Equal(t, 2., told["troupe_tasks_started_total other"])
	require.Equal(t, 2., told["troupe_tasks_ended_total other completed"])
	require.Equal(t, 2., told["troupe_node_attempts_total other other ok"])
	for name := range told {
		require.NotContains(t, name, "try-")
	}

	published, err := persistence.Publish(t.Context(), th.store,
		persistence.Publication{Slug: "other",
			Definition: []byte(
				`{"start":"a","nodes":{"a":{"exec_type":"local_func","func":"f","prep":{"input_key":"$params.n"}}}}`)})
	require.NoError(t, err)
	require.Equal(t, "completed", th.run(t, published.Version.ID, `{"n":1}`).Status)
	require.Equal(t, 1., th.scrape(t)["troupe_node_attempts_total other a ok"], "a flow that happens to have that name")
}

func TestFlowsBeyondTheFirstAreCountedTogether(t *testing.T) {
	th := start(t, withFunc(increment))
	for i := range 203 {
		v := th.named(t, fmt.Sprint("flow", i),
			`{"start":"a","nodes":{"a":{"exec_type":"local_func","func":"f","prep":{"input_key":"$params.n"}}}}`)
		th.run(t, v, `{"n":1}`)
	}
	started := th.scrape(t)
	maps.DeleteFunc(started, func(name string, _ float64) bool { return !strings.HasPrefix(name, "troupe_tasks_started_total ") })
	require.Len(t, slices.Collect(maps.Keys(started)), 201)
	require.Equal(t, 3., started["troupe_tasks_started_total other"])
	require.Equal(t, 1., started["troupe_tasks_started_total flow0"])
}
