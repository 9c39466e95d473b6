package troupe

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/internal/testing/pgtest"
	"github.com/troupe-engine/troupe/worker"
)

// serving joins a member whose API answers until the test ends.
func serving(t *testing.T, cfg Config) *Engine {
	t.Helper()
	cfg.Listen = freeAddress(t)
	var err error
	cfg.Listener, err = Listen(cfg)
	require.NoError(t, err)
	e := join(t, cfg)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = e.Serve(ctx, nil) // being fenced is part of the test
	}()
	t.Cleanup(func() {
		cancel()
		<-served
	})
	return e
}

// scrape reads /metrics of a member, by name and labels.
func (e *Engine) scrape(t *testing.T) map[string]float64 {
	t.Helper()
	resp, err := http.Get("http://" + e.cfg.Listen + "/metrics")
	require.NoError(t, err)
	defer resp.Body.Close()
	require.Equal(t, http.StatusOK, resp.StatusCode)
	told := map[string]float64{}
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		if at := strings.LastIndexByte(lines.Text(), ' '); at > 0 && lines.Text()[0] != '#' {
			told[lines.Text()[:at]], err = strconv.ParseFloat(lines.Text()[at+1:], 64)
			require.NoError(t, err)
		}
	}
	return told
}

// total adds up one metric of several members.
func total(t *testing.T, name string, members ...*Engine) (sum float64) {
	t.Helper()
	for _, e := range members {
		told := e.scrape(t)
		require.Contains(t, told, name)
		sum += told[name]
	}
	return sum
}

func eventually(t *testing.T, what func() bool) {
	t.Helper()
	require.Eventually(t, what, 30*time.Second, 20*time.Millisecond)
}

const keyed = `{"start":"a","nodes":{"a":{"exec_type":"remote","service":"double","concurrency":{"key":"all","limit":1}}}}`

func TestMetricsDescribeACluster(t *testing.T) {
	// long enough even on a busy machine
	cfg := Config{Store: pgtest.DSN(t), Lease: 6 * time.Second}
	named := func(name string) *Engine { cfg.Name = name; return serving(t, cfg) }
	a, b, c := named("a"), named("b"), named("c")
	members := []*Engine{a, b, c}
	shared(t, members...)

	t.Run("who is there, and who owns what", func(t *testing.T) {
		eventually(t, func() bool { return total(t, "troupe_cluster_shards_owned", members...) == 1024 })
		for _, e := range members {
			eventually(t, func() bool {
				told := e.scrape(t)
				return told[`troupe_cluster_members{state="alive"}`] == 3 &&
					told["troupe_cluster_gossip_peers"] == 2 && told["troupe_cluster_shards_unowned"] == 0
			})
			told := e.scrape(t)
			require.Zero(t, told[`troupe_cluster_members{state="overdue"}`])
			require.Positive(t, told["troupe_lease_remaining_seconds"])
			require.LessOrEqual(t, told["troupe_lease_remaining_seconds"], cfg.Lease.Seconds())
			require.Positive(t, told["troupe_cluster_view_age_seconds"])
			require.GreaterOrEqual(t, told["troupe_cluster_shards_acquired_total"], told["troupe_cluster_shards_owned"])
		}
		require.Positive(t, total(t, "troupe_cluster_handover_duration_seconds_count", members...), "the first member had all shards")
		require.Zero(t, total(t, "troupe_cluster_handovers_failed_total", members...))
		require.Contains(t, a.scrape(t), "troupe_cluster_shards_handing_over")
	})

	t.Run("what goes to other members", func(t *testing.T) {
		require.NoError(t, a.Publish(t.Context(), "f", waitsFor("a")))
		a.signals(t)
		told := a.scrape(t)
		for _, kind := range []string{"command", "start", "wait"} {
			require.Positive(t, told[`troupe_cluster_forwarded_requests_total{kind="`+kind+`",outcome="ok"}`], kind)
		}
		before := told[`troupe_cluster_forwarded_requests_total{kind="command",outcome="rejected"}`]
		// some of the tasks, none of which exists, belong to another member
		eventually(t, func() bool {
			require.Error(t, a.Signal(t.Context(), "nobody-"+strconv.FormatInt(time.Now().UnixNano(), 36), "ok", json.RawMessage("true")))
			return a.scrape(t)[`troupe_cluster_forwarded_requests_total{kind="command",outcome="rejected"}`] > before
		})
	})

	t.Run("attached workers and keys", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		hold, begun := make(chan struct{}), make(chan struct{}, 1)
		w := worker.New(worker.Config{Server: "http://" + b.cfg.Listen, Attach: true, Concurrency: 3})
		w.Handle("double", func(context.Context, worker.Job) (any, error) {
			begun <- struct{}{}
			<-hold
			return 2, nil
		})
		gone := make(chan error)
		go func() { gone <- w.Run(ctx) }()
		eventually(t, func() bool { return b.scrape(t)[`troupe_attached_workers{state="connected"}`] == 1 })
		require.NoError(t, a.Publish(ctx, "keyed", []byte(keyed)))
		id, err := a.Start(ctx, "keyed", nil)
		require.NoError(t, err)
		<-begun
		var told map[string]float64
		eventually(t, func() bool { // the scrape may come before all of that is reported
			told = b.scrape(t)
			return told["troupe_attached_jobs"] == 1 && told[`troupe_workers{state="online"}`] == 1
		})
		require.EqualValues(t, 2, told["troupe_attached_slots_free"])
		require.Zero(t, told["troupe_attached_jobs_waiting"])
		require.Zero(t, told[`troupe_attached_workers{state="disconnected"}`])
		require.EqualValues(t, 1, told[`troupe_worker_slots{service="double",state="used"}`])
		require.EqualValues(t, 2, told[`troupe_worker_slots{service="double",state="free"}`])
		require.EqualValues(t, 1, told[`troupe_service_workers{service="double"}`])
		require.EqualValues(t, 1, told[`troupe_workers{state="online"}`])
		close(hold)
		_, err = a.Wait(ctx, id)
		require.NoError(t, err)
		require.Positive(t, total(t, "troupe_key_decisions_total", members...))
		require.Zero(t, total(t, "troupe_key_decisions_failed_total", members...))
		eventually(t, func() bool { return total(t, "troupe_key_decisions_pending", members...) == 0 })
		cancel()
		<-gone
	})

	t.Run("a member that is killed", func(t *testing.T) {
		require.Zero(t, total(t, "troupe_cluster_members_fenced_total", a, b))
		c.member.Kill()
		// two members may do it at once
		eventually(t, func() bool { return total(t, "troupe_cluster_members_fenced_total", a, b) > 0 })
		eventually(t, func() bool { return total(t, "troupe_cluster_shards_owned", a, b) == 1024 })
		eventually(t, func() bool {
			told := a.scrape(t)
			return told[`troupe_cluster_members{state="alive"}`] == 2 && told[`troupe_cluster_members{state="gone"}`] == 1
		})
	})
}

func TestCountersOfFunctionsAreExported(t *testing.T) {
	e := serving(t, Config{Store: "sqlite:" + t.TempDir() + "/troupe.db"})
	Handle(e, "read", func(ctx context.Context, _ any) (any, error) {
		for n := range 3 {
			Count(ctx, "rows", float64(n), map[string]string{"table": "orders"})
		}
		return nil, errors.New("no more")
	})
	require.NoError(t, e.Publish(t.Context(), "f", []byte(`{"start": "a", "nodes": {"a": {"exec_type": "local_func", "func": "read"}}}`)))
	id, err := e.Start(t.Context(), "f", nil)
	require.NoError(t, err)
	_, err = e.Wait(t.Context(), id)
	require.NoError(t, err)
	told := e.scrape(t)
	require.Equal(t, []float64{3, 3}, []float64{told[`troupe_job_metric_count{name="rows"}`], told[`troupe_job_metric_sum{name="rows"}`]})
}

func TestCountersOfProgramsAreExported(t *testing.T) {
	e := serving(t, Config{Store: "sqlite:" + t.TempDir() + "/troupe.db", AllowScripts: true})
	require.NotContains(t, e.scrape(t), `troupe_job_metric_count{name="rows"}`)
	require.NoError(t, e.Publish(t.Context(), "f", []byte(`{"nodes": {"a": {"retry": {"max_attempts": 2},
		"exec": {"type": "process", "command": "echo 'ORK_METRIC:{\"name\": \"rows\", \"value\": 1.5, \"labels\": {\"try\": '$ORK_ATTEMPT'}}'; test $ORK_ATTEMPT = 2"}}}}`)))
	id, err := e.Start(t.Context(), "f", nil)
	require.NoError(t, err)
	_, err = e.Wait(t.Context(), id)
	require.NoError(t, err)
	told := e.scrape(t)
	require.Equal(t, []float64{2, 3}, []float64{told[`troupe_job_metric_count{name="rows"}`], told[`troupe_job_metric_sum{name="rows"}`]})
}

func TestASingleMemberExportsNoClusterMetrics(t *testing.T) {
	told := serving(t, Config{Store: "sqlite:" + t.TempDir() + "/troupe.db"}).scrape(t)
	require.Positive(t, told["troupe_lease_remaining_seconds"])
	for name := range told {
		require.NotContains(t, name, "troupe_cluster_")
	}
}
