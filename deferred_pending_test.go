package troupe_test

import (
	"context"
	"encoding/json"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/testing/pgtest"
)

// crowded is another system with a queue, in which jobs wait before they run.
type crowded struct {
	polls, pending atomic.Int64 // polls, and those of jobs that the member knew as pending
	begun          atomic.Int64 // start time of the job
	open           atomic.Bool
}

func (q *crowded) Start(_ context.Context, _ flow.Job, _ bool) flow.Report {
	return flow.Report{Deferred: []troupe.External{{Service: "crowded", ID: "j", Pending: true}}}
}

func (q *crowded) Poll(_ context.Context, x troupe.External) (troupe.ExternalStatus, error) {
	if x.Pending {
		q.pending.Add(1)
	}
	q.polls.Add(1)
	return troupe.ExternalStatus{Ended: q.open.Load(), BeganAt: q.begun.Load(), Output: json.RawMessage("1"), Again: time.Millisecond}, nil
}

func (q *crowded) Cancel(context.Context, troupe.External) error { return nil }

// join opens a member with this system.
func (q *crowded) join(t *testing.T, store string) *troupe.Engine {
	t.Helper()
	e, err := troupe.Open(t.Context(), troupe.Config{Store: store, IdleAfter: time.Millisecond,
		Starters: map[string]troupe.Starter{"crowded": q}, Trackers: map[string]troupe.Tracker{"crowded": q}})
	require.NoError(t, err)
	return e
}

// looks waits for a few more polls.
func (q *crowded) looks(t *testing.T) {
	t.Helper()
	until := q.polls.Load() + 3
	require.Eventually(t, func() bool { return q.polls.Load() >= until }, 20*time.Second, 5*time.Millisecond)
}

func TestPendingExternalJobsRunFromTheirReportedStart(t *testing.T) {
	for name, store := range map[string]string{"sqlite": "sqlite:" + filepath.Join(t.TempDir(), "x.db"), "postgres": pgtest.DSN(t)} {
		t.Run(name, func(t *testing.T) {
			q := &crowded{}
			e := q.join(t, store)
			require.NoError(t, e.Publish(t.Context(), "f", []byte("nodes: {a: {exec_type: external, service: crowded}}")))
			id, err := e.Start(t.Context(), "f", nil)
			require.NoError(t, err)
			waits := func() string {
				w, err := e.Waiting(t.Context(), id)
				require.NoError(t, err)
				if len(w.Waits) == 0 || w.Waits[0].Kind != "external" {
					return ""
				}
				return w.Waits[0].Text
			}
			q.looks(t)
			require.Equal(t, "external job crowded j must start", waits())
			require.NoError(t, e.Close())
			e = q.join(t, store)
			require.Equal(t, "external job crowded j must start", waits(), "a restart does not begin it")
			q.looks(t)

			since := time.Now().UnixMilli()
			q.looks(t) // the reported start is in the past by then
			q.begun.Store(since)
			require.Eventually(t, func() bool { return waits() == "external job crowded j must end" }, 20*time.Second, 5*time.Millisecond)
			q.looks(t)
			pending := q.pending.Load()
			require.NoError(t, e.Close())
			e = q.join(t, store)
			require.Equal(t, "external job crowded j must end", waits())
			q.looks(t)
			require.Equal(t, pending, q.pending.Load(), "nobody tells it once more")

			q.open.Store(true)
			_, err = e.Wait(t.Context(), id)
			require.NoError(t, err)
			var begun []int64
			page, err := e.Events(t.Context(), id, "", 100)
			require.NoError(t, err)
			for _, event := range page.Items {
				if event.Type == string(flow.AttemptStarted) {
					begun = append(begun, event.Until.UnixMilli())
				}
			}
			require.Len(t, begun, 1)
			require.LessOrEqual(t, begun[0], since, "since when it is at work, and not when that was told")
			require.NoError(t, e.Close())
		})
	}
}
