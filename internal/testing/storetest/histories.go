package storetest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/troupe-engine/troupe/internal/testing/faulty"
	"github.com/troupe-engine/troupe/internal/testing/model"
	"github.com/troupe-engine/troupe/persistence"
)

// Histories compares a store with the model over random histories: batches of every kind, results
// that fail or are lost, batches that are written late, takeovers, retention.
func Histories(test *testing.T, s persistence.Store) {
	Publish(test, s, "flow", "version")
	rapid.Check(test, func(t *rapid.T) {
		h := &storeHistory{T: t, model: model.New(model.Options{})}
		Publish(test, h.model, "flow", "version")
		h.store = faulty.Wrap(s, faulty.Hooks{Commit: func(string, []persistence.Commit) faulty.Fault { return h.fault }})
		h.replaceMember(t)
		defer h.clearStore()
		t.Repeat(map[string]func(*rapid.T){
			"commit":    h.commitBoth,
			"late":      h.landLate,
			"takeover":  h.replaceMember,
			"retention": h.deleteEnded,
			"":          h.compareLoads,
		})
		h.compareLists()
	})
}

// storeHistory is a store and a model that receive the same calls.
type storeHistory struct {
	*rapid.T
	store, model persistence.Store
	fault        faulty.Fault      // fault of the next batch
	members      []incarnationPair // only the last member may write
	waiting      []func()          // batches to be written late
}

// incarnationPair holds the ids of one incarnation in the store and in the model.
type incarnationPair struct{ store, model string }

var (
	ctx      = context.Background()
	taskIDs  = []string{"a", "b", "c", "d", "e", "f"}
	jobIDs   = []string{"j1", "j2", "j3"}
	services = []string{"s", "t"}
)

// commitBoth sends a batch to the store, and to the model if the fault lets the batch through.
func (h *storeHistory) commitBoth(t *rapid.T) {
	h.T = t
	batch := h.drawBatch()
	from := h.members[len(h.members)-1]
	if rapid.IntRange(0, 9).Draw(t, "old member") == 0 {
		from = rapid.SampledFrom(h.members).Draw(t, "member")
	}
	switch rapid.IntRange(0, 9).Draw(t, "fault") {
	case 0:
		h.fault = faulty.Fail()
		_, err := h.store.Commit(ctx, from.store, batch)
		require.ErrorIs(t, err, faulty.ErrFailed)
	case 1:
		h.fault = faulty.Lose()
		_, err := h.store.Commit(ctx, from.store, batch)
		require.ErrorIs(t, err, faulty.ErrLost)
		_, _ = h.model.Commit(ctx, from.model, batch)
	case 2:
		h.fault = faulty.Fault{Late: func(write func()) {
			h.waiting = append(h.waiting, func() { write(); _, _ = h.model.Commit(ctx, from.model, batch) })
		}}
		_, err := h.store.Commit(ctx, from.store, batch)
		require.ErrorIs(t, err, faulty.ErrLost)
	default:
		h.fault = faulty.Fault{}
		got, err := h.store.Commit(ctx, from.store, batch)
		want, wantErr := h.model.Commit(ctx, from.model, batch)
		require.ErrorIs(t, err, wantErr)
		for i := range want {
			require.ErrorIs(t, got[i], want[i], "%+v", batch[i])
		}
	}
}

func (h *storeHistory) drawBatch() []persistence.Commit {
	n := rapid.IntRange(1, len(taskIDs)).Draw(h.T, "size")
	batch := make([]persistence.Commit, n)
	for i, id := range rapid.Permutation(taskIDs).Draw(h.T, "tasks")[:n] {
		batch[i] = h.drawCommit(id)
	}
	return batch
}

// drawCommit usually draws the commit that the task's owner would send next.
func (h *storeHistory) drawCommit(id string) persistence.Commit {
	flip := func(what string, percent int) bool { return rapid.IntRange(0, 99).Draw(h.T, what) < percent }
	last := int64(0)
	if r := h.loadRecord(h.model, id); r != nil {
		last = r.SnapshotSeq + int64(len(r.Rows))
	}
	c := persistence.Commit{Task: id, Seq: last + 1, At: rapid.Int64Range(1, 99).Draw(h.T, "at"), Events: []byte("[]")}
	if last == 0 && flip("create", 80) || flip("create again", 5) {
		c.Create = &persistence.Create{FlowID: "flow", VersionID: "version", CreatedAt: c.At}
		c.Seq = 1
	}
	if flip("no events", 20) {
		c.Events, c.Seq = nil, c.Seq-1
	}
	if flip("another row", 10) {
		c.Seq = max(0, last+rapid.Int64Range(-2, 3).Draw(h.T, "row"))
	}
	if flip("columns", 30) {
		c.Columns = &persistence.Columns{Status: rapid.SampledFrom([]string{"running", "failed"}).Draw(h.T, "status"), Steps: int(c.At)}
		if c.Columns.Status == "failed" {
			c.Columns.EndedAt = c.At
		}
	}
	if flip("snapshot", 20) {
		c.Snapshot = newSnapshot(fmt.Sprint(c.At))
	}
	if flip("rest", 30) {
		c.Rest = &persistence.Rest{Resting: flip("resting", 60)}
		if c.Rest.Resting {
			c.Rest.Due = rapid.Int64Range(0, 9).Draw(h.T, "due")
		}
	}
	for _, job := range jobIDs {
		if flip("enqueue", 15) {
			c.Enqueue = append(c.Enqueue, persistence.QueueRow{JobID: id + job, Task: id,
				Service: rapid.SampledFrom(services).Draw(h.T, "service"), EnqueuedAt: c.At, Turn: job + id})
		}
		if flip("dequeue", 15) {
			c.Dequeue = append(c.Dequeue, id+job)
		}
	}
	return c
}

// landLate writes a batch that its sender has given up.
func (h *storeHistory) landLate(t *rapid.T) {
	if len(h.waiting) == 0 {
		t.Skip("nothing is on its way")
	}
	land := h.waiting[0]
	h.waiting = h.waiting[1:]
	land()
}

func (h *storeHistory) replaceMember(t *rapid.T) {
	if len(h.members) > 0 {
		old := h.members[len(h.members)-1]
		require.NoError(t, h.store.Leave(ctx, old.store))
		require.NoError(t, h.model.Leave(ctx, old.model))
	}
	var next incarnationPair
	var err error
	next.store, err = h.store.Join(ctx, persistence.Joining{Name: "me", TTL: time.Hour})
	require.NoError(t, err)
	next.model, err = h.model.Join(ctx, persistence.Joining{Name: "me", TTL: time.Hour})
	require.NoError(t, err)
	h.members = append(h.members, next)
}

// deleteEnded has no limit, because the order of two tasks that ended at once is not defined.
func (h *storeHistory) deleteEnded(t *rapid.T) {
	before := rapid.Int64Range(1, 99).Draw(t, "before")
	got, err := h.store.DeleteEnded(ctx, before, 99)
	require.NoError(t, err)
	want, err := h.model.DeleteEnded(ctx, before, 99)
	require.NoError(t, err)
	require.Equal(t, want, got)
}

func (h *storeHistory) loadRecord(s persistence.Store, id string) *persistence.Record {
	records, err := s.Load(ctx, []string{id})
	require.NoError(h, err)
	return records[0]
}

// compareLoads compares the results of Load.
func (h *storeHistory) compareLoads(t *rapid.T) {
	h.T = t
	got, err := h.store.Load(ctx, taskIDs)
	require.NoError(t, err)
	want, err := h.model.Load(ctx, taskIDs)
	require.NoError(t, err)
	sizes, err := h.store.Sizes(ctx, taskIDs)
	require.NoError(t, err)
	wantSizes, err := h.model.Sizes(ctx, taskIDs)
	require.NoError(t, err)
	require.Equal(t, wantSizes, sizes)
	for i, id := range taskIDs {
		for _, r := range []*persistence.Record{got[i], want[i]} {
			if r != nil && len(r.Rows) == 0 {
				r.Rows = nil
			}
		}
		require.Equal(t, want[i], got[i], id)
	}
}

// compareLists compares the results of all other reads.
func (h *storeHistory) compareLists() {
	both := func(read func(persistence.Store) (any, error)) {
		got, err := read(h.store)
		require.NoError(h, err)
		want, err := read(h.model)
		require.NoError(h, err)
		require.Equal(h, fmt.Sprint(want), fmt.Sprint(got))
	}
	both(func(s persistence.Store) (any, error) { return s.Unfinished(ctx, nil, "", 99) })
	both(func(s persistence.Store) (any, error) { return s.DueWakes(ctx, nil, 7, 99) })
	both(func(s persistence.Store) (any, error) { return s.QueueRows(ctx, nil, 0, "", 99) })
	both(func(s persistence.Store) (any, error) { return s.QueueRows(ctx, services[:1], 50, "a", 3) })
	both(func(s persistence.Store) (any, error) { return s.QueueDepth(ctx) })
	both(func(s persistence.Store) (any, error) { return s.ListTasks(ctx, persistence.TaskFilter{}) })
	both(func(s persistence.Store) (any, error) {
		return s.ListTasks(ctx, persistence.TaskFilter{ByUpdate: true, Limit: 3})
	})
	both(func(s persistence.Store) (any, error) {
		return s.CountTasksBy(ctx, persistence.TaskFilter{}, persistence.By{})
	})
	for _, id := range taskIDs {
		both(func(s persistence.Store) (any, error) { return s.Rows(ctx, id, 0, rowsPart(99)) })
	}
}

// clearStore empties the store for the next history, through its own methods.
func (h *storeHistory) clearStore() {
	h.fault = faulty.Fault{}
	me := h.members[len(h.members)-1].store
	for _, id := range taskIDs {
		if rows, err := h.store.Rows(ctx, id, 0, rowsPart(1<<30)); err == nil && len(rows) > 0 {
			end := persistence.Commit{Task: id, Seq: int64(len(rows)), Columns: &persistence.Columns{EndedAt: 1}}
			_, err = h.store.Commit(ctx, me, []persistence.Commit{end})
			require.NoError(h, err)
		}
	}
	_, err := h.store.DeleteEnded(ctx, 1<<40, 99)
	require.NoError(h, err)
	require.NoError(h, h.store.Leave(ctx, me))
}
