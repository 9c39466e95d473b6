package troupe

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/testing/pgtest"
)

// logText is a log that can be read while it is written.
type logText struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// count returns how many lines have a text.
func (l *logText) count(text string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.text.String()) {
		if strings.Contains(line, text) {
			n++
		}
	}
	return n
}

const wentBack = `level=ERROR msg="store went back in time: data confirmed between these times may be lost`

const timerThenJob = `{"start":"t","nodes":{
	"t":{"kind":"timer","params":{"delay_ms":4000}},
	"a":{"exec_type":"local_func","func":"job"}},
	"edges":[{"from":"t","action":"default","to":"a"}]}`

// rewinds is a cluster of two members on a primary and its standby.
type rewinds struct {
	t                *testing.T
	primary, standby *pgtest.Server
	members          []*Engine
	logs             []*logText
}

func newRewindsCluster(t *testing.T) *rewinds {
	r := &rewinds{t: t}
	var err error
	r.primary, err = pgtest.StartServer(t.Context(), "")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.primary.Stop()) })
	r.standby, err = r.primary.StartStandby(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.standby.Stop()) })
	for _, name := range []string{"a", "b"} {
		log := &logText{}
		cfg := Config{Store: pgtest.AnyOf("postgres", r.primary, r.standby), Name: name,
			IdleAfter: 50 * time.Millisecond, Logger: slog.New(slog.NewTextHandler(log, nil))}
		e := serving(t, cfg)
		e.HandleJSON("job", func(context.Context, Job) (json.RawMessage, error) { return json.RawMessage("1"), nil })
		r.members, r.logs = append(r.members, e), append(r.logs, log)
	}
	shared(t, r.members...)
	require.NoError(t, r.members[0].Publish(t.Context(), "timed", []byte(timerThenJob)))
	require.NoError(t, r.members[0].Publish(t.Context(), "asks", waitsFor("a")))
	return r
}

// start starts some tasks of a flow, so that each member owns one.
func (r *rewinds) start(flow string) (ids []string) {
	for range 8 {
		id, err := r.members[0].Start(r.t.Context(), flow, nil)
		require.NoError(r.t, err)
		ids = append(ids, id)
	}
	return ids
}

// await waits until all tasks have completed.
func (r *rewinds) await(ids []string) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), 2*time.Minute)
	defer cancel()
	for _, id := range ids {
		result, err := r.members[0].Wait(ctx, id)
		require.NoError(r.t, err)
		require.Equal(r.t, flow.TaskCompleted, result.Status)
	}
}

// status returns the status code of a path at a member.
func (r *rewinds) status(e *Engine, path string) int {
	resp, err := http.Get("http://" + e.cfg.Listen + path)
	if err != nil {
		return 0
	}
	require.NoError(r.t, resp.Body.Close())
	return resp.StatusCode
}

func TestNoTaskIsStuckAfterAFailoverThatLostTransactions(t *testing.T) {
	r := newRewindsCluster(t)
	timed, asks := r.start("timed"), r.start("asks")
	require.NoError(t, r.standby.AwaitCaughtUp(t.Context(), r.primary))
	require.NoError(t, r.standby.Detach(t.Context()))
	// Everything from here on is lost: ended, started and unloaded tasks.
	for _, id := range asks {
		require.NoError(t, r.members[0].Signal(t.Context(), id, "ok", json.RawMessage("true")))
	}
	lost := r.start("asks")
	r.await(append(timed, asks...))
	require.NoError(t, r.primary.Kill())
	require.NoError(t, r.standby.Promote(t.Context()))

	for i, e := range r.members {
		require.Eventually(t, func() bool {
			return r.logs[i].count(wentBack) == 1 &&
				r.status(e, "/readyz") == http.StatusOK
		}, time.Minute, 20*time.Millisecond)
		require.Equal(t, 1.0, e.scrape(t)[`troupe_store_failovers_total{confirmed_data="lost"}`])
	}
	r.await(timed)
	for _, id := range asks {
		require.Eventually(t, func() bool {
			return r.members[1].Signal(t.Context(), id, "ok",
				json.RawMessage("true")) == nil
		}, time.Minute, 20*time.Millisecond)
	}
	r.await(asks)
	for _, e := range r.members {
		for _, id := range lost {
			require.Equal(t, http.StatusNotFound, r.status(e, "/v1/tasks/"+id))
		}
	}
	r.await(r.start("timed"))
	for _, log := range r.logs {
		require.Equal(t, 1, log.count(wentBack))
	}
}

func TestAFailoverThatLostNothingIsNoError(t *testing.T) {
	r := newRewindsCluster(t)
	require.NoError(t, r.primary.Synchronize(t.Context()))
	asks := r.start("asks")
	require.NoError(t, r.primary.Kill())
	require.NoError(t, r.standby.Promote(t.Context()))
	for i, e := range r.members {
		require.Eventually(t, func() bool {
			return r.logs[i].count("store moved to another server with all confirmed data") == 1 && r.status(e, "/readyz") == http.StatusOK
		}, time.Minute, 20*time.Millisecond)
		require.Equal(t, 1.0, e.scrape(t)[`troupe_store_failovers_total{confirmed_data="kept"}`])
	}
	for _, id := range asks {
		require.Eventually(t, func() bool {
			return r.members[1].Signal(t.Context(), id, "ok",
				json.RawMessage("true")) == nil
		}, time.Minute, 20*time.Millisecond)
	}
	r.await(asks)
	for _, log := range r.logs {
		require.Zero(t, log.count(wentBack))
	}
}
