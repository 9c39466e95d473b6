package sim

import (
	"context"

	"github.com/troupe-engine/troupe/persistence"
)

func (m *model) NextExternals(_ context.Context, shards persistence.ShardSet, limit int) ([]persistence.ExternalRow, error) {
	return m.externals.Next(shards, limit), nil
}

func (m *model) ExternalsOf(_ context.Context, task string) ([]persistence.ExternalRow, error) {
	return m.externals.Of(task), nil
}

func (m *model) NoteExternals(_ context.Context, incarnation string, notes []persistence.ExternalNote) error {
	if m.member(incarnation) == nil && !m.unfenced {
		return persistence.ErrFenced
	}
	m.externals.Note(notes)
	return nil
}

func (d *door) NextExternals(ctx context.Context, shards persistence.ShardSet, limit int) ([]persistence.ExternalRow, error) {
	return call(d, func() ([]persistence.ExternalRow, error) { return d.Store.NextExternals(ctx, shards, limit) })
}

func (d *door) ExternalsOf(ctx context.Context, task string) ([]persistence.ExternalRow, error) {
	return call(d, func() ([]persistence.ExternalRow, error) { return d.Store.ExternalsOf(ctx, task) })
}

func (d *door) NoteExternals(ctx context.Context, incarnation string, notes []persistence.ExternalNote) error {
	_, err := call(d, func() (bool, error) { return true, d.Store.NoteExternals(ctx, incarnation, notes) })
	return err
}
