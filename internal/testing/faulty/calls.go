package faulty

import (
	"context"
	"time"

	"github.com/troupe-engine/troupe/persistence"
)

// callHooked calls the hook and then the store.
func callHooked[T any](ctx context.Context, s *store, name string, do func() (T, error)) (T, error) {
	if s.hooks.Call != nil {
		if err := s.hooks.Call(ctx, name); err != nil {
			var none T
			return none, err
		}
	}
	return do()
}

func (s *store) Join(ctx context.Context, j persistence.Joining) (string, error) {
	return callHooked(ctx, s, "Join", func() (string, error) { return s.Store.Join(ctx, j) })
}

func (s *store) Renew(ctx context.Context, incarnation string, ttl time.Duration) (persistence.Pulse, error) {
	return callHooked(ctx, s, "Renew", func() (persistence.Pulse, error) { return s.Store.Renew(ctx, incarnation, ttl) })
}

func (s *store) Leave(ctx context.Context, incarnation string) error {
	_, err := callHooked(ctx, s, "Leave", func() (bool, error) { return true, s.Store.Leave(ctx, incarnation) })
	return err
}

func (s *store) Cluster(ctx context.Context) (*persistence.Cluster, error) {
	return callHooked(ctx, s, "Cluster", func() (*persistence.Cluster, error) { return s.Store.Cluster(ctx) })
}

func (s *store) Claim(ctx context.Context, incarnation string, shards []int) ([]int, error) {
	return callHooked(ctx, s, "Claim", func() ([]int, error) { return s.Store.Claim(ctx, incarnation, shards) })
}

func (s *store) Release(ctx context.Context, incarnation string, transfers []persistence.Transfer) error {
	_, err := callHooked(ctx, s, "Release", func() (bool, error) { return true, s.Store.Release(ctx, incarnation, transfers) })
	return err
}

func (s *store) Drain(ctx context.Context, incarnation string, drains bool) error {
	_, err := callHooked(ctx, s, "Drain", func() (bool, error) { return true, s.Store.Drain(ctx, incarnation, drains) })
	return err
}

func (s *store) Secret(ctx context.Context) (string, error) {
	return callHooked(ctx, s, "Secret", func() (string, error) { return s.Store.Secret(ctx) })
}

func (s *store) ValuesAt(ctx context.Context) (string, error) {
	return callHooked(ctx, s, "ValuesAt", func() (string, error) { return s.Store.ValuesAt(ctx) })
}

func (s *store) Fence(ctx context.Context, incarnation string) (bool, error) {
	return callHooked(ctx, s, "Fence", func() (bool, error) { return s.Store.Fence(ctx, incarnation) })
}

func (s *store) Load(ctx context.Context, ids []string) ([]*persistence.Record, error) {
	return callHooked(ctx, s, "Load", func() ([]*persistence.Record, error) { return s.Store.Load(ctx, ids) })
}

func (s *store) Rows(ctx context.Context, task string, after int64, p persistence.Part) ([]persistence.Row, error) {
	return callHooked(ctx, s, "Rows", func() ([]persistence.Row, error) { return s.Store.Rows(ctx, task, after, p) })
}

func (s *store) Checkpoints(ctx context.Context, task string) ([]int64, error) {
	return callHooked(ctx, s, "Checkpoints", func() ([]int64, error) { return s.Store.Checkpoints(ctx, task) })
}

func (s *store) Checkpoint(ctx context.Context, task string, seq int64) ([]byte, error) {
	return callHooked(ctx, s, "Checkpoint", func() ([]byte, error) { return s.Store.Checkpoint(ctx, task, seq) })
}

func (s *store) Unfinished(ctx context.Context, shards persistence.ShardSet, after string, limit int) ([]string, error) {
	return callHooked(ctx, s, "Unfinished", func() ([]string, error) { return s.Store.Unfinished(ctx, shards, after, limit) })
}

func (s *store) DueWakes(ctx context.Context, shards persistence.ShardSet, before int64, limit int) ([]persistence.Wake, error) {
	return callHooked(ctx, s, "DueWakes", func() ([]persistence.Wake, error) { return s.Store.DueWakes(ctx, shards, before, limit) })
}

func (s *store) Rule(ctx context.Context, incarnation string, q persistence.PermitQuestion) (persistence.Ruling, error) {
	return callHooked(ctx, s, "Rule", func() (persistence.Ruling, error) { return s.Store.Rule(ctx, incarnation, q) })
}

func (s *store) NextExternals(ctx context.Context, shards persistence.ShardSet, limit int) ([]persistence.ExternalRow, error) {
	return callHooked(ctx, s, "NextExternals", func() ([]persistence.ExternalRow,
		error) {
		return s.Store.NextExternals(ctx, shards, limit)
	})
}

func (s *store) NoteExternals(ctx context.Context, incarnation string, notes []persistence.ExternalNote) error {
	_, err := callHooked(ctx, s, "NoteExternals", func() (bool, error) { return true, s.Store.NoteExternals(ctx, incarnation, notes) })
	return err
}

func (s *store) OpenKeys(ctx context.Context, shards persistence.ShardSet, after string, limit int) ([]string, error) {
	return callHooked(ctx, s, "OpenKeys", func() ([]string, error) { return s.Store.OpenKeys(ctx, shards, after, limit) })
}

func (s *store) DueSchedules(ctx context.Context, shards persistence.ShardSet, by int64, limit int) ([]persistence.Schedule, error) {
	return callHooked(ctx, s, "DueSchedules",
		func() ([]persistence.Schedule, error) { return s.Store.DueSchedules(ctx, shards, by, limit) })
}

func (s *store) PutSchedule(ctx context.Context, sc persistence.Schedule) error {
	_, err := callHooked(ctx, s, "PutSchedule", func() (bool, error) { return true, s.Store.PutSchedule(ctx, sc) })
	return err
}

func (s *store) QueueBefore(ctx context.Context, task, job string, most int) (int, error) {
	return callHooked(ctx, s, "QueueBefore", func() (int, error) { return s.Store.QueueBefore(ctx, task, job, most) })
}

func (s *store) QueueServices(ctx context.Context) ([]string, error) {
	return callHooked(ctx, s, "QueueServices", func() ([]string, error) { return s.Store.QueueServices(ctx) })
}

func (s *store) QueueFor(ctx context.Context, f persistence.QueueFilter, afterAt int64,
	afterTurn string, limit int) ([]persistence.QueueRow, error) {
	return callHooked(ctx, s, "QueueFor", func() ([]persistence.QueueRow, error) {
		return s.Store.QueueFor(ctx, f, afterAt, afterTurn, limit)
	})
}

func (s *store) AppendLog(ctx context.Context, chunks []persistence.LogChunk, keep int) error {
	_, err := callHooked(ctx, s, "AppendLog", func() (bool, error) { return true, s.Store.AppendLog(ctx, chunks, keep) })
	return err
}

func (s *store) AppendStreams(ctx context.Context, writes []persistence.StreamWrite, most persistence.StreamLimits) ([]error, error) {
	return callHooked(ctx, s, "AppendStreams", func() ([]error, error) { return s.Store.AppendStreams(ctx, writes, most) })
}

func (s *store) AddStats(ctx context.Context, rows []persistence.StatsRow) error {
	_, err := callHooked(ctx, s, "AddStats", func() (bool, error) { return true, s.Store.AddStats(ctx, rows) })
	return err
}

func (s *store) QueueRows(ctx context.Context, services []string, afterAt int64, afterTurn string,
	limit int) ([]persistence.QueueRow, error) {
	return callHooked(ctx, s, "QueueRows", func() ([]persistence.QueueRow, error) {
		return s.Store.QueueRows(ctx, services, afterAt, afterTurn, limit)
	})
}
