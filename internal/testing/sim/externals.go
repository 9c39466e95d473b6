package sim

import (
	"context"

	"github.com/troupe-engine/troupe/persistence"
)

func (m *storeModel) NextExternals(_ context.Context, shards persistence.ShardSet, limit int) ([]persistence.ExternalRow, error) {
	return m.externals.Next(shards, limit), nil
}

func (m *storeModel) ExternalsOf(_ context.Context, task string) ([]persistence.ExternalRow, error) {
	return m.externals.Of(task), nil
}

func (m *storeModel) NoteExternals(_ context.Context, incarnation string, notes []persistence.ExternalNote) error {
	if m.findMember(incarnation) == nil && !m.unfenced {
		return persistence.ErrFenced
	}
	m.externals.Note(notes)
	return nil
}

func (d *storeConn) NextExternals(ctx context.Context, shards persistence.ShardSet, limit int) ([]persistence.ExternalRow, error) {
	return callStore(d, func() ([]persistence.ExternalRow, error) { return d.Store.NextExternals(ctx, shards, limit) })
}

func (d *storeConn) ExternalsOf(ctx context.Context, task string) ([]persistence.ExternalRow, error) {
	return callStore(d, func() ([]persistence.ExternalRow, error) { return d.Store.ExternalsOf(ctx, task) })
}

func (d *storeConn) NoteExternals(ctx context.Context, incarnation string, notes []persistence.ExternalNote) error {
	_, err := callStore(d, func() (bool, error) { return true, d.Store.NoteExternals(ctx, incarnation, notes) })
	return err
}
