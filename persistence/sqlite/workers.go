package sqlite

import (
	"context"
	"encoding/json"

	"github.com/troupe-engine/troupe/persistence"
	"github.com/troupe-engine/troupe/persistence/internal/listing"
)

// workerStore keeps registered workers.
type workerStore struct{ *database }

func (s workerStore) PutWorker(ctx context.Context, w persistence.Worker) error {
	services, err := json.Marshal(w.Services)
	if err != nil {
		return err
	}
	return s.inTransaction(ctx, "put a worker", func(t writeTx) error {
		_, err := t.execCount(
			`INSERT INTO workers (id, url, type, services, labels, secret, load, last_heartbeat, registered_at, joined_at, polled_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
			ON CONFLICT (id) DO UPDATE SET url = excluded.url, type = excluded.type, services = excluded.services, labels = excluded.labels, secret = excluded.secret,
				load = excluded.load, last_heartbeat = excluded.last_heartbeat, joined_at = excluded.joined_at, polled_at = max(workers.polled_at, excluded.polled_at)`,
			w.ID, w.URL, w.Type, string(services), listing.ListOfLabels(w.Labels), w.Secret, w.Load,
			w.LastHeartbeat, w.RegisteredAt, w.JoinedAt, w.PolledAt)
		return err
	})
}

func (s workerStore) TouchWorkers(ctx context.Context, beats []persistence.Heartbeat) error {
	return s.inTransaction(ctx, "touch workers", func(t writeTx) error {
		for _, b := range beats {
			if _, err := t.execCount("UPDATE workers SET load = ?, last_heartbeat = "+
				"max(last_heartbeat, ?), polled_at = max(polled_at, ?) WHERE id = ?", b.Load, b.At,
				b.PolledAt, b.ID); err != nil {
				return err
			}
		}
		return nil
	})
}

func (s workerStore) ListWorkers(ctx context.Context) ([]persistence.Worker, error) {
	return readRows(ctx, &s.readers, "list workers", listing.ScanWorker,
		"SELECT id, url, type, services, labels, secret, load, last_heartbeat, registered_at, joined_at, polled_at FROM workers ORDER BY n")
}

func (s workerStore) DeleteWorker(ctx context.Context, id string) error {
	return s.inTransaction(ctx, "delete a worker", func(t writeTx) error {
		_, err := t.execCount("DELETE FROM workers WHERE id = ?", id)
		return err
	})
}

func (s workerStore) DeleteWorkers(ctx context.Context, silentSince int64) (int, error) {
	var deleted int64
	err := s.inTransaction(ctx, "delete workers", func(t writeTx) (err error) {
		deleted, err = t.execCount("DELETE FROM workers WHERE last_heartbeat < ?", silentSince)
		return err
	})
	return int(deleted), err
}
