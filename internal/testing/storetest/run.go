// Package storetest is the Store contract as a suite of named behaviors. An implementation is
// correct if all of them hold.
package storetest

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// storeBehavior is a promise, tested on a store of its own.
type storeBehavior struct {
	name string
	try  func(*testEnv)
}

// Run tests every behavior. open returns an empty store, which Run closes.
func Run(t *testing.T, open func(*testing.T) persistence.Store) {
	probe := open(t)
	alike := many
	if probe.Locked() {
		alike = single
	}
	require.NoError(t, probe.Close())
	for _, group := range []struct {
		name string
		list []storeBehavior
		flow bool // the flow of the tasks exists
	}{
		{"store", store, true},
		{"members", slices.Concat(members, alike), true},
		{"journal", journal, true},
		{"owners", owners, true},
		{"rest", rest, true},
		{"queue", queue, true},
		{"permits", permits, true},
		{"externals", externals, true},
		{"approvals", approvals, true},
		{"tasks", tasks, true},
		{"retention", retention, true},
		{"flows", flows, false},
		{"schedules", schedules, true},
		{"workers", workers, true},
		{"logs", logs, true},
		{"streams", streams, true},
		{"stats", statistics, true},
		{"hooks", hooks, false},
		{"tokens", tokens, false},
		{"views", views, false},
		{"holds", holds, true},
	} {
		t.Run(group.name, func(t *testing.T) {
			for _, b := range group.list {
				t.Run(b.name, func(t *testing.T) {
					s := open(t)
					w := &testEnv{T: t, Store: s}
					w.me = w.joinMember("me", time.Hour)
					if group.flow {
						Publish(t, s, "flow", "version")
					}
					b.try(w)
					require.NoError(t, s.Close())
				})
			}
		})
	}
}

// Publish creates a version for tasks, and its flow if needed.
func Publish(t testing.TB, s persistence.Flows, flow, version string) {
	t.Helper()
	if err := s.CreateFlow(context.Background(), persistence.Flow{ID: flow}); !errors.Is(err, persistence.ErrDuplicate) {
		require.NoError(t, err)
	}
	require.NoError(t, s.CreateVersion(context.Background(), persistence.Version{ID: version, FlowID: flow, Status: "published"}))
}

// testEnv is a test with its store and a member that has joined.
type testEnv struct {
	*testing.T
	persistence.Store
	me string
}

func (w *testEnv) ctx() context.Context { return w.Context() }

func (w *testEnv) joinMember(name string, ttl time.Duration) string {
	w.Helper()
	incarnation, err := w.Join(w.ctx(), persistence.Joining{Name: name, TTL: ttl})
	require.NoError(w, err)
	return incarnation
}

// commitBatch writes a batch and returns the result of each commit.
func (w *testEnv) commitBatch(batch ...persistence.Commit) []error {
	w.Helper()
	answers, err := w.Commit(w.ctx(), w.me, batch)
	require.NoError(w, err)
	require.Len(w, answers, len(batch))
	return answers
}

// mustCommit writes a batch and requires that every commit succeeds.
func (w *testEnv) mustCommit(batch ...persistence.Commit) {
	w.Helper()
	for i, err := range w.commitBatch(batch...) {
		require.NoError(w, err, "commit %d of %s", i, batch[i].Task)
	}
}

// loadTask returns a task, or nil if the task does not exist.
func (w *testEnv) loadTask(id string) *persistence.Record {
	w.Helper()
	records, err := w.Load(w.ctx(), []string{id})
	require.NoError(w, err)
	require.Len(w, records, 1)
	return records[0]
}

// createCommit returns the first commit of a task, with nothing special.
func createCommit(id string) persistence.Commit {
	return persistence.Commit{Task: id, Create: &persistence.Create{FlowID: "flow",
		VersionID: "version", CreatedAt: 1}, Seq: 1, Events: []byte("[1]"), At: 1}
}

// appendCommit returns a commit that only appends a row.
func appendCommit(id string, seq int64) persistence.Commit {
	return persistence.Commit{Task: id, Seq: seq, Events: []byte("[2]"), At: seq}
}

// newSnapshot returns a snapshot made of a text.
func newSnapshot(text string) flow.Snapshot {
	return flow.Snapshot{[]byte(text[:len(text)/2]), []byte(text[len(text)/2:])}
}

// changeCommit changes a commit.
func changeCommit(c persistence.Commit, change func(*persistence.Commit)) persistence.Commit {
	change(&c)
	return c
}

// requireList returns a list and requires that there is no error.
func requireList[T any](w *testEnv) func(list []T, err error) []T {
	return func(list []T, err error) []T {
		w.Helper()
		require.NoError(w, err)
		return list
	}
}

var store = []storeBehavior{
	{"it can be reached and has a lane", func(w *testEnv) {
		require.NoError(w, w.Ping(w.ctx()))
		require.Positive(w, w.Lanes())
	}},
	{"an ended context is an error", func(w *testEnv) {
		ctx, cancel := context.WithCancel(w.ctx())
		cancel()
		_, err := w.Commit(ctx, w.me, []persistence.Commit{createCommit("a")})
		require.ErrorIs(w, err, context.Canceled)
		require.Nil(w, w.loadTask("a"))
	}},
	{"a value that is refused is refused with its whole batch", func(w *testEnv) {
		bad := changeCommit(createCommit("b"), func(c *persistence.Commit) { c.Create.FlowID = "nul\x00nul" })
		_, err := w.Commit(w.ctx(), w.me, []persistence.Commit{createCommit("a"), bad, createCommit("c")})
		if err == nil { // a store may accept values that others cannot store
			require.Equal(w, "nul\x00nul", w.loadTask("b").FlowID)
			return
		}
		require.ErrorIs(w, err, persistence.ErrRefused)
		require.False(w, errors.Is(err, persistence.ErrFenced))
		for _, id := range []string{"a", "b", "c"} {
			require.Nil(w, w.loadTask(id))
		}
		w.mustCommit(createCommit("a"), createCommit("c"))
	}},
}
