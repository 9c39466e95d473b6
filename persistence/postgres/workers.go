package postgres

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
	_, err = s.execCount(ctx, "put a worker",
		`INSERT INTO troupe.workers (id, url, type, services, labels, secret, load, last_heartbeat, registered_at, joined_at, polled_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
		ON CONFLICT (id) DO UPDATE SET url = excluded.url, type = excluded.type, services = excluded.services, labels = excluded.labels, secret = excluded.secret,
			load = excluded.load, last_heartbeat = excluded.last_heartbeat, joined_at = excluded.joined_at, polled_at = greatest(workers.polled_at, excluded.polled_at)`,
		w.ID, w.URL, w.Type, string(services), listing.ListOfLabels(w.Labels), w.Secret, w.Load,
		w.LastHeartbeat, w.RegisteredAt, w.JoinedAt, w.PolledAt)
	return err
}

func (s workerStore) TouchWorkers(ctx context.Context, beats []persistence.Heartbeat) error {
	ids, loads, times, polls := make([]string, len(beats)), make([]int, len(beats)), make([]int64, len(beats)), make([]int64, len(beats))
	for i, b := range beats {
		ids[i], loads[i], times[i], polls[i] = b.ID, b.Load, b.At, b.PolledAt
	}
	_, err := s.execCount(ctx, "touch workers",
		`UPDATE troupe.workers w SET load = d.load, last_heartbeat = greatest(w.last_heartbeat, d.at), polled_at = greatest(w.polled_at, d.polled)
		FROM unnest($1::text[], $2::int[], $3::bigint[], $4::bigint[]) AS d (id, load, at, polled) WHERE w.id = d.id`, ids, loads, times, polls)
	return err
}

func (s workerStore) ListWorkers(ctx context.Context) ([]persistence.Worker, error) {
	return readRows(ctx, s.database, "list workers", listing.ScanWorker,
		"SELECT id, url, type, services, labels, secret, load, last_heartbeat, registered_at, "+
			"joined_at, polled_at FROM troupe.workers ORDER BY n")
}

func (s workerStore) DeleteWorker(ctx context.Context, id string) error {
	_, err := s.execCount(ctx, "delete a worker", "DELETE FROM troupe.workers WHERE id = $1", id)
	return err
}

func (s workerStore) DeleteWorkers(ctx context.Context, silentSince int64) (int, error) {
	return s.execCount(ctx, "delete workers", "DELETE FROM troupe.workers WHERE last_heartbeat < $1", silentSince)
}
