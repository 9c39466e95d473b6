package model

import (
	"cmp"
	"context"
	"slices"

	"github.com/troupe-engine/troupe/persistence"
)

func (s *store) Commit(ctx context.Context, incarnation string, batch []persistence.Commit) ([]error, error) {
	leave, err := s.beginCall(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	if s.findMember(incarnation) == nil {
		return nil, persistence.ErrFenced
	}
	answers := make([]error, len(batch))
	for i, c := range batch {
		if answers[i] = s.checkCommit(c); answers[i] == nil {
			s.applyCommit(c)
		}
	}
	return answers, nil
}

// checkCommit returns the reason why a commit must not be written.
func (s *store) checkCommit(c persistence.Commit) error {
	t := s.tasks[c.Task]
	switch {
	case c.Create != nil && t != nil && c.Seq == 1 && c.Events != nil:
		return persistence.ErrExists
	case c.Create != nil && (c.Seq != 1 || c.Events == nil):
		return persistence.ErrStale
	case c.Create != nil && !slices.ContainsFunc(s.versions, func(v persistence.Version) bool { return v.ID == c.Create.VersionID }):
		return persistence.ErrNoVersion
	case c.Create != nil:
		return nil
	case t == nil:
		return persistence.ErrUnknown
	case c.Events != nil && c.Seq != t.lastSeq()+1, c.Events == nil && c.Seq != t.lastSeq():
		return persistence.ErrStale
	}
	return nil
}

func (t *task) lastSeq() int64 { return int64(len(t.rows)) }

func (s *store) applyCommit(c persistence.Commit) {
	if c.Create != nil {
		s.tasks[c.Task] = newTask(c)
	}
	t := s.tasks[c.Task]
	if c.Events != nil {
		t.rows = append(t.rows, persistence.Row{Seq: c.Seq, At: c.At, Events: slices.Clone(c.Events)})
	}
	if c.Columns != nil {
		t.Columns, t.UpdatedAt = *c.Columns, c.At
		t.Cursor, t.LastAction = persistence.CleanText(t.Cursor), persistence.CleanText(t.LastAction)
		t.Error = persistence.CleanText(t.Error)
	}
	if c.Checkpoint {
		t.checkpoints = append(t.checkpoints, checkpoint{c.Seq, c.Snapshot.Bytes()})
	}
	if c.Snapshot != nil {
		t.snapshot, t.snapshotSeq = c.Snapshot.Bytes(), c.Seq
	}
	if c.Rest != nil {
		t.rest = *c.Rest
	}
	for _, q := range c.Enqueue {
		if _, waits := t.jobs[q.JobID]; !waits {
			q.Task = c.Task
			t.jobs[q.JobID] = q
		}
	}
	for _, job := range c.Dequeue {
		delete(t.jobs, job)
	}
	s.permits.Commit(c.Task, c.Permits)
	s.externals.Commit(c.Task, c.Externals)
	s.applyApprovals(c.Approvals)
}

func newTask(c persistence.Commit) *task {
	t := &task{jobs: map[string]persistence.QueueRow{}}
	t.TaskRow = persistence.TaskRow{ID: c.Task, FlowID: c.Create.FlowID, VersionID: c.Create.VersionID,
		Columns: persistence.Columns{Status: "pending"}, Params: slices.Clone(c.Create.Params),
		BodyHash: c.Create.BodyHash, CreatedAt: c.Create.CreatedAt, UpdatedAt: c.At}
	for key, value := range c.Create.Labels {
		if t.Labels == nil {
			t.Labels = map[string]string{}
		}
		t.Labels[key] = value
	}
	return t
}

func (s *store) Load(ctx context.Context, ids []string) ([]*persistence.Record, error) {
	leave, err := s.beginCall(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	records := make([]*persistence.Record, len(ids))
	for i, id := range ids {
		if t := s.tasks[id]; t != nil {
			records[i] = &persistence.Record{TaskRow: s.listedRow(t), Snapshot: slices.Clone(t.snapshot), SnapshotSeq: t.snapshotSeq,
				Rows: t.rowsAfter(t.snapshotSeq), Resting: t.rest.Resting}
		}
	}
	return records, nil
}

// rowsAfter returns copies of rows, because callers may change them.
func (t *task) rowsAfter(seq int64) []persistence.Row {
	var rows []persistence.Row
	for _, r := range t.rows[min(max(seq, 0), t.lastSeq()):] {
		rows = append(rows, persistence.Row{Seq: r.Seq, At: r.At, Events: slices.Clone(r.Events)})
	}
	return rows
}

func (s *store) Rows(ctx context.Context, id string, after int64, p persistence.Part) ([]persistence.Row, error) {
	leave, err := s.beginCall(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	t := s.tasks[id]
	if t == nil {
		return nil, nil
	}
	rows := takeFirst(t.rowsAfter(after), p.Rows)
	for i, bytes := 0, 0; i < len(rows); i++ {
		if i > 0 && bytes >= p.Bytes {
			return rows[:i], nil
		}
		bytes += len(rows[i].Events)
	}
	return rows, nil
}

func (s *store) Sizes(ctx context.Context, ids []string) ([]int64, error) {
	records, err := s.Load(ctx, ids)
	sizes := make([]int64, len(records))
	for i, r := range records {
		if r == nil {
			continue
		}
		sizes[i] = int64(len(r.Snapshot))
		for _, row := range r.Rows {
			sizes[i] += int64(len(row.Events))
		}
	}
	return sizes, err
}

func (s *store) Checkpoints(ctx context.Context, id string) ([]int64, error) {
	leave, err := s.beginCall(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	var list []int64
	if t := s.tasks[id]; t != nil {
		for _, c := range t.checkpoints {
			list = append(list, c.seq)
		}
	}
	return list, nil
}

func (s *store) Checkpoint(ctx context.Context, id string, seq int64) ([]byte, error) {
	leave, err := s.beginCall(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	if t := s.tasks[id]; t != nil {
		for _, c := range t.checkpoints {
			if c.seq == seq {
				return slices.Clone(c.snapshot), nil
			}
		}
	}
	return nil, persistence.ErrNotFound
}

func (s *store) Unfinished(ctx context.Context, shards persistence.ShardSet, after string, limit int) ([]string, error) {
	leave, err := s.beginCall(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	var ids []string
	for id, t := range s.tasks {
		if t.EndedAt == 0 && !t.rest.Resting && id > after && shards.Has(id) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return takeFirst(ids, limit), nil
}

func (s *store) DueWakes(ctx context.Context, shards persistence.ShardSet, before int64, limit int) ([]persistence.Wake, error) {
	leave, err := s.beginCall(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	var wakes []persistence.Wake
	for id, t := range s.tasks {
		if t.rest.Resting && t.rest.Due != 0 && t.rest.Due <= before && shards.Has(id) {
			wakes = append(wakes, persistence.Wake{Task: id, Due: t.rest.Due})
		}
	}
	slices.SortFunc(wakes, func(a, b persistence.Wake) int {
		return cmp.Or(cmp.Compare(a.Due, b.Due), cmp.Compare(a.Task, b.Task))
	})
	return takeFirst(wakes, limit), nil
}

func takeFirst[T any](list []T, limit int) []T { return list[:min(limit, len(list))] }
