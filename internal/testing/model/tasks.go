package model

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"

	"github.com/troupe-engine/troupe/flow/stats"
	"github.com/troupe-engine/troupe/persistence"
)

// listedRow returns a task as shown in lists.
func (s *store) listedRow(t *task) persistence.TaskRow {
	row := t.TaskRow
	row.Params = slices.Clone(t.Params)
	for _, f := range s.flows {
		if f.ID == t.FlowID {
			row.FlowName, row.FlowSlug = f.Name, f.Slug
		}
	}
	for _, v := range s.versions {
		if v.ID == t.VersionID {
			row.VersionNumber = v.Number
		}
	}
	return row
}

func (s *store) Task(ctx context.Context, id string) (*persistence.TaskRow, error) {
	leave, err := s.beginCall(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	t := s.tasks[id]
	if t == nil {
		return nil, persistence.ErrNotFound
	}
	row := s.listedRow(t)
	return &row, nil
}

func (s *store) ListTasks(ctx context.Context, f persistence.TaskFilter) ([]persistence.TaskRow, error) {
	leave, err := s.beginCall(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	list := s.pickTasks(f)
	slices.SortFunc(list, func(a, b persistence.TaskRow) int {
		if f.ByUpdate {
			return cmp.Or(cmp.Compare(b.UpdatedAt, a.UpdatedAt), cmp.Compare(b.ID, a.ID))
		}
		return compareRows(f, a, b)
	})
	list = list[min(f.Offset, len(list)):]
	if f.Limit > 0 {
		list = takeFirst(list, f.Limit)
	}
	for i := range list {
		list[i].Params = nil
	}
	return list, nil
}

// compareRows compares two rows in list order.
func compareRows(f persistence.TaskFilter, a, b persistence.TaskRow) int {
	if f.Oldest {
		a, b = b, a
	}
	if f.ByEnd {
		return cmp.Or(cmp.Compare(b.EndedAt, a.EndedAt), cmp.Compare(b.ID, a.ID))
	}
	return cmp.Or(cmp.Compare(b.CreatedAt, a.CreatedAt), cmp.Compare(b.ID, a.ID))
}

// rowAt returns a row at a position in list order.
func rowAt(spot persistence.Spot) persistence.TaskRow {
	row := persistence.TaskRow{ID: spot.ID, CreatedAt: spot.CreatedAt}
	row.EndedAt = spot.CreatedAt
	return row
}

func (s *store) CountTasksBy(ctx context.Context, f persistence.TaskFilter, by persistence.By) (map[string]persistence.Group, error) {
	leave, err := s.beginCall(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	what := func(t *persistence.TaskRow) string {
		switch {
		case by.Label != "":
			return t.Labels[by.Label]
		case by.Flow:
			return t.FlowID
		}
		return t.Status
	}
	list, cut := s.pickTasks(f), false
	if by != (persistence.By{}) && f.Most > 0 {
		cut = len(list) > f.Most
		list = takeFirst(list, f.Most)
	}
	groups := map[string]persistence.Group{}
	for i := range list {
		g := groups[what(&list[i])]
		full := f.Most > 0 && g.Count == f.Most
		if !full {
			g.Count++
		}
		g.More = full || cut
		groups[what(&list[i])] = g
	}
	return groups, nil
}

func (s *store) CountTasks(ctx context.Context, f persistence.TaskFilter) (int, error) {
	leave, err := s.beginCall(ctx)
	if err != nil {
		return 0, err
	}
	defer leave()
	if n := len(s.pickTasks(f)); f.Most == 0 || n < f.Most {
		return n, nil
	}
	return f.Most, nil
}

func (s *store) pickTasks(f persistence.TaskFilter) []persistence.TaskRow {
	var list []persistence.TaskRow
	for _, t := range s.tasks {
		row := s.listedRow(t)
		if f.Match(&row) && (f.Queued == "" || t.hasQueued(f.Queued)) && (f.Before.ID == "" ||
			compareRows(f, rowAt(f.Before), row) < 0) && (f.Through.ID == "" ||
			compareRows(f, rowAt(f.Through), row) >= 0) {
			list = append(list, row)
		}
	}
	return list
}

// hasQueued reports whether a task has jobs in the queue of a service.
func (t *task) hasQueued(service string) bool {
	for _, q := range t.jobs {
		if q.Service == service {
			return true
		}
	}
	return false
}

func (s *store) NewestOf(ctx context.Context, flows []string, each int) ([]persistence.TaskMark, error) {
	var list []persistence.TaskMark
	for _, id := range slices.Compact(slices.Sorted(slices.Values(flows))) {
		rows, err := s.ListTasks(ctx, persistence.TaskFilter{FlowID: id, Limit: each})
		if err != nil {
			return nil, err
		}
		for i := range rows {
			list = append(list, persistence.TaskMark{Flow: id, ID: rows[i].ID, Status: rows[i].Status, CreatedAt: rows[i].CreatedAt})
		}
	}
	return list, nil
}

func (s *store) CountByShard(ctx context.Context) (map[int]persistence.ShardTasks, error) {
	leave, err := s.beginCall(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	counts := map[int]persistence.ShardTasks{}
	for id, t := range s.tasks {
		if t.EndedAt == 0 {
			counts[persistence.ShardOf(id)] = counts[persistence.ShardOf(id)].With(t.rest.Resting)
		}
	}
	return counts, nil
}

func (s *store) EndedBetween(ctx context.Context, from, before int64, limit int) (ends []persistence.TaskEnd, err error) {
	leave, err := s.beginCall(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	for _, t := range s.endedTasks(from, before, limit) {
		ends = append(ends, persistence.TaskEnd{ID: t.ID, EndedAt: t.EndedAt})
	}
	return ends, nil
}

func (s *store) DeleteEnded(ctx context.Context, before int64, limit int) (int, error) {
	leave, err := s.beginCall(ctx)
	if err != nil {
		return 0, err
	}
	defer leave()
	list := s.endedTasks(0, before, limit)
	s.dropTasks(list)
	return len(list), nil
}

// endedTasks returns the tasks that ended first, at or after from and before before.
func (s *store) endedTasks(from, before int64, limit int) (list []*task) {
	for _, t := range s.tasks {
		if t.EndedAt > 0 && t.EndedAt >= from && t.EndedAt < before {
			list = append(list, t)
		}
	}
	slices.SortFunc(list, func(a, b *task) int { return cmp.Or(cmp.Compare(a.EndedAt, b.EndedAt), cmp.Compare(a.ID, b.ID)) })
	return takeFirst(list, limit)
}

func (s *store) dropTasks(list []*task) {
	for _, t := range list {
		delete(s.tasks, t.ID)
		s.permits.Drop(t.ID)
		s.externals.Drop(t.ID)
		s.dropApprovals(t.ID)
		delete(s.logs, t.ID)
		delete(s.byTask, t.ID)
	}
}

func (s *store) DeleteFlow(ctx context.Context, id string, limit int) (int, error) {
	leave, err := s.beginCall(ctx)
	if err != nil {
		return 0, err
	}
	defer leave()
	var list []*task
	for _, t := range s.tasks {
		if t.FlowID == id {
			list = append(list, t)
		}
	}
	s.schedules.Drop(func(sc *persistence.Schedule) bool { return sc.FlowID == id })
	slices.SortFunc(list, func(a, b *task) int { return cmp.Or(cmp.Compare(b.CreatedAt, a.CreatedAt), cmp.Compare(b.ID, a.ID)) })
	all := len(list)
	list = takeFirst(list, limit)
	s.dropTasks(list)
	if all < limit {
		maps.DeleteFunc(s.stats, func(at persistence.StatsSpot, _ stats.Counts) bool { return at.Flow == id })
		s.flows = slices.DeleteFunc(s.flows, func(f persistence.Flow) bool { return f.ID == id })
		s.versions = slices.DeleteFunc(s.versions, func(v persistence.Version) bool { return v.FlowID == id })
	}
	return len(list), nil
}

func (s *store) QueueRows(ctx context.Context, services []string, afterAt int64, afterTurn string,
	limit int) ([]persistence.QueueRow, error) {
	leave, err := s.beginCall(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	return s.queuedJobs(afterAt, afterTurn, limit, func(_ *task, q *persistence.QueueRow) bool {
		return services == nil || slices.Contains(services, q.Service)
	}), nil
}

func (s *store) QueueFor(ctx context.Context, f persistence.QueueFilter, afterAt int64,
	afterTurn string, limit int) ([]persistence.QueueRow, error) {
	leave, err := s.beginCall(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	return s.queuedJobs(afterAt, afterTurn, limit, func(t *task, q *persistence.QueueRow) bool {
		lacks := func(label string) bool { return !slices.Contains(f.Labels, label) }
		return q.Service == f.Service && (f.FlowID == "" || t.FlowID == f.FlowID) && !slices.ContainsFunc(q.Labels, lacks)
	}), nil
}

// queuedJobs returns the jobs after a position for which wanted is true.
func (s *store) queuedJobs(afterAt int64, afterTurn string, limit int,
	wanted func(*task, *persistence.QueueRow) bool) []persistence.QueueRow {
	order := func(a, b persistence.QueueRow) int {
		return cmp.Or(cmp.Compare(a.EnqueuedAt, b.EnqueuedAt), cmp.Compare(a.Turn, b.Turn))
	}
	after := persistence.QueueRow{EnqueuedAt: afterAt, Turn: afterTurn}
	var list []persistence.QueueRow
	for _, t := range s.tasks {
		for _, q := range t.jobs {
			if order(q, after) > 0 && wanted(t, &q) {
				list = append(list, q)
			}
		}
	}
	slices.SortFunc(list, order)
	return takeFirst(list, limit)
}

func (s *store) QueueBefore(ctx context.Context, of, job string, most int) (int, error) {
	leave, err := s.beginCall(ctx)
	if err != nil {
		return 0, err
	}
	defer leave()
	t := s.tasks[of]
	if t == nil {
		return 0, persistence.ErrNotFound
	}
	j, waits := t.jobs[job]
	if !waits {
		return 0, persistence.ErrNotFound
	}
	before := func(_ *task, q *persistence.QueueRow) bool {
		return q.Service == j.Service && cmp.Or(cmp.Compare(q.EnqueuedAt, j.EnqueuedAt), cmp.Compare(q.Turn, j.Turn)) < 0
	}
	return len(s.queuedJobs(math.MinInt64, "", most, before)), nil
}

func (s *store) QueueServices(ctx context.Context) ([]string, error) {
	depth, err := s.QueueDepth(ctx)
	if err != nil {
		return nil, err
	}
	return slices.Sorted(maps.Keys(depth)), nil
}

func (s *store) QueueDepth(ctx context.Context) (map[string]persistence.QueueStat, error) {
	leave, err := s.beginCall(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	depth := map[string]persistence.QueueStat{}
	for _, t := range s.tasks {
		had := map[string]bool{}
		for _, q := range t.jobs {
			stat, seen := depth[q.Service]
			if !seen || q.EnqueuedAt < stat.Oldest {
				stat.Oldest = q.EnqueuedAt
			}
			stat.Waiting++
			if !had[q.Service] {
				had[q.Service] = true
				stat.Tasks++
			}
			depth[q.Service] = stat
		}
	}
	return depth, nil
}
