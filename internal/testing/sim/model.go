package sim

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	permits "github.com/troupe-engine/troupe/internal/testing/model"
	"github.com/troupe-engine/troupe/persistence"
)

// storeModel is an in-memory store, written to be obviously correct.
type storeModel struct {
	persistence.Store // nil; methods that the actors never call
	w                 *simWorld
	check             *commitChecker
	members           []*memberRecord // in order of joining
	owners            [persistence.Shards]string
	generation        int64
	history           string
	kept              int64 // see persistence.Pulse
	histories         int   // number of histories begun by members
	tasks             map[string]*storedTask
	queue             map[string]persistence.QueueRow // by job id
	permits           *permits.Permits
	externals         *permits.Externals
	schedules         permits.Schedules
	flows             map[string]persistence.Flow
	versions          map[string]persistence.Version
	refusal           string // error text of a refusal
	unfenced          bool   // a defect to be caught: fenced members may write
	orphans           bool   // a defect to be caught: tasks of deleted versions can start
	generous          bool   // a defect to be caught: permits beyond the limit are granted
}

// storedTask is a task in the store.
type storedTask struct {
	persistence.TaskRow
	rows        []persistence.Row
	snapshot    []byte
	snapshotSeq int64
	resting     bool
	due         int64 // time of its wake-up; 0 if none
}

func newModel(w *simWorld) *storeModel {
	return &storeModel{w: w, tasks: map[string]*storedTask{},
		queue: map[string]persistence.QueueRow{}, permits: permits.NewPermits(),
		externals: permits.NewExternals(),
		flows:     map[string]persistence.Flow{}, versions: map[string]persistence.Version{},
		refusal: pickOne(w.rng, "it cannot be kept", poison+" cannot be kept")}
}

// poison is a text that this store refuses to store.
const poison = "\u2620"

func (m *storeModel) Lanes() int { return 2 }

// Locked returns false, because members live beside each other.
func (m *storeModel) Locked() bool { return false }

func (m *storeModel) Commit(_ context.Context, incarnation string, batch []persistence.Commit) ([]error, error) {
	if m.findMember(incarnation) == nil && !m.unfenced {
		return nil, persistence.ErrFenced
	}
	for i := range batch {
		if bytes.Contains(batch[i].Events, []byte(poison)) {
			m.check.refused[batch[i].Task] = true
			return nil, fmt.Errorf("%s: %w", m.refusal, persistence.ErrRefused)
		}
	}
	answers := make([]error, len(batch))
	for i := range batch {
		if answers[i] = m.applyCommit(&batch[i]); answers[i] == nil {
			m.check.checkCommit(incarnation, &batch[i])
		}
	}
	return answers, nil
}

func (m *storeModel) applyCommit(c *persistence.Commit) error {
	t := m.tasks[c.Task]
	last := int64(0)
	if t != nil {
		last = t.rows[len(t.rows)-1].Seq
	}
	switch {
	case c.Create != nil && t != nil:
		return persistence.ErrExists
	case c.Create != nil && !m.orphans && !m.hasVersion(c.Create.VersionID):
		return persistence.ErrNoVersion
	case c.Create != nil:
		t = m.createTask(c)
	case t == nil:
		return persistence.ErrUnknown
	case c.Events == nil && c.Seq != last, c.Events != nil && c.Seq != last+1:
		return persistence.ErrStale
	}
	m.updateTask(t, c)
	return nil
}

func (m *storeModel) createTask(c *persistence.Commit) *storedTask {
	t := &storedTask{TaskRow: persistence.TaskRow{ID: c.Task, FlowID: c.Create.FlowID, VersionID: c.Create.VersionID,
		Labels: c.Create.Labels, Params: c.Create.Params, BodyHash: c.Create.BodyHash, CreatedAt: c.Create.CreatedAt}}
	t.Status = "pending"
	m.tasks[c.Task] = t
	return t
}

func (m *storeModel) updateTask(t *storedTask, c *persistence.Commit) {
	if c.Events != nil {
		t.rows = append(t.rows, persistence.Row{Seq: c.Seq, At: c.At, Events: c.Events})
	}
	if c.Columns != nil {
		t.Columns, t.UpdatedAt = *c.Columns, c.At
	}
	if c.Snapshot != nil && t.snapshotSeq <= c.Seq {
		t.snapshot, t.snapshotSeq = c.Snapshot.Bytes(), c.Seq
	}
	if c.Rest != nil {
		t.resting, t.due = c.Rest.Resting, 0
		if t.resting {
			t.due = c.Rest.Due
		}
	}
	for _, q := range c.Enqueue {
		if _, ok := m.queue[q.JobID]; !ok {
			m.queue[q.JobID] = q
		}
	}
	for _, job := range c.Dequeue {
		delete(m.queue, job)
	}
	m.permits.Commit(c.Task, c.Permits)
	m.externals.Commit(c.Task, c.Externals)
}

func (m *storeModel) Load(_ context.Context, ids []string) ([]*persistence.Record, error) {
	records := make([]*persistence.Record, len(ids))
	for i, id := range ids {
		if t := m.tasks[id]; t != nil {
			r := &persistence.Record{TaskRow: t.TaskRow, Snapshot: t.snapshot, SnapshotSeq: t.snapshotSeq, Resting: t.resting}
			r.Rows = slices.Clone(t.rows[t.snapshotSeq:])
			records[i] = r
		}
	}
	return records, nil
}

func (m *storeModel) Rows(_ context.Context, task string, after int64, p persistence.Part) ([]persistence.Row, error) {
	t := m.tasks[task]
	if t == nil || after >= int64(len(t.rows)) {
		return nil, nil
	}
	rows := t.rows[after:]
	return slices.Clone(rows[:min(p.Rows, len(rows))]), nil
}

func (m *storeModel) Task(_ context.Context, id string) (*persistence.TaskRow, error) {
	t := m.tasks[id]
	if t == nil {
		return nil, persistence.ErrNotFound
	}
	row := t.TaskRow
	return &row, nil
}

func (m *storeModel) Unfinished(_ context.Context, shards persistence.ShardSet, after string, limit int) ([]string, error) {
	var ids []string
	for _, id := range slices.Sorted(maps.Keys(m.tasks)) {
		if t := m.tasks[id]; id > after && shards.Has(id) && t.EndedAt == 0 && !t.resting && len(ids) < limit {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

func (m *storeModel) DueWakes(_ context.Context, shards persistence.ShardSet, before int64, limit int) ([]persistence.Wake, error) {
	var wakes []persistence.Wake
	for id, t := range m.tasks {
		if t.due > 0 && t.due <= before && shards.Has(id) {
			wakes = append(wakes, persistence.Wake{Task: id, Due: t.due})
		}
	}
	slices.SortFunc(wakes, func(a, b persistence.Wake) int {
		return cmp.Or(cmp.Compare(a.Due, b.Due), cmp.Compare(a.Task, b.Task))
	})
	return wakes[:min(limit, len(wakes))], nil
}

func (m *storeModel) EndedBetween(context.Context, int64, int64, int) ([]persistence.TaskEnd, error) {
	return nil, nil
}
func (m *storeModel) DeleteEnded(context.Context, int64, int) (int, error) { return 0, nil }

func (m *storeModel) AddStats(context.Context, []persistence.StatsRow) error { return nil }

func (m *storeModel) DeleteStats(context.Context, int64, int64, int) (int, error) { return 0, nil }

func (m *storeModel) ForgetDeliveries(context.Context, int64, int) (int, error) { return 0, nil }

func (m *storeModel) QueueRows(_ context.Context, services []string, afterAt int64,
	afterTurn string, limit int) ([]persistence.QueueRow, error) {
	return m.queuedJobs(afterAt, afterTurn, limit, func(q *persistence.QueueRow) bool {
		return services == nil || slices.Contains(services, q.Service)
	}), nil
}

func (m *storeModel) QueueServices(context.Context) ([]string, error) {
	services := map[string]bool{}
	for _, q := range m.queue {
		services[q.Service] = true
	}
	return slices.Sorted(maps.Keys(services)), nil
}

// QueueFor ignores labels and flows, which the simulation does not use.
func (m *storeModel) QueueFor(_ context.Context, f persistence.QueueFilter, afterAt int64,
	afterTurn string, limit int) ([]persistence.QueueRow, error) {
	return m.queuedJobs(afterAt, afterTurn, limit, func(q *persistence.QueueRow) bool { return q.Service == f.Service }), nil
}

func (m *storeModel) queuedJobs(afterAt int64, afterTurn string, limit int,
	wanted func(*persistence.QueueRow) bool) []persistence.QueueRow {
	var rows []persistence.QueueRow
	for _, q := range m.queue {
		after := q.EnqueuedAt > afterAt || q.EnqueuedAt == afterAt && q.Turn > afterTurn
		if after && wanted(&q) {
			rows = append(rows, q)
		}
	}
	slices.SortFunc(rows, func(a, b persistence.QueueRow) int {
		return cmp.Or(cmp.Compare(a.EnqueuedAt, b.EnqueuedAt), cmp.Compare(a.Turn, b.Turn))
	})
	return rows[:min(limit, len(rows))]
}
