package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/troupe-engine/troupe/persistence"
)

// Commit sends one statement. What it did not write is looked at afterwards, which is rare.
func (s *store) Commit(ctx context.Context, incarnation string, batch []persistence.Commit) ([]error, error) {
	answers := make([]error, len(batch))
	if len(batch) == 0 {
		return answers, nil
	}
	query, args := statement(incarnation, batch)
	rows, err := s.lanes.Query(ctx, query, args...)
	if err != nil {
		return nil, wrap("commit", err)
	}
	written, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, wrap("commit", err)
	}
	if len(written) == len(batch) {
		return answers, nil
	}
	if err := s.explain(ctx, incarnation, batch, written, answers); err != nil {
		return nil, wrap("commit", err)
	}
	return answers, nil
}

// explain finds for each commit that was not written why it was not. A fence is for ever, so it is
// still there if it was the reason.
func (s *store) explain(ctx context.Context, incarnation string, batch []persistence.Commit, written []string, answers []error) error {
	done := make(map[string]bool, len(written))
	for _, id := range written {
		done[id] = true
	}
	var missing, found []string
	for _, c := range batch {
		if !done[c.Task] {
			missing = append(missing, c.Task)
		}
	}
	var member bool
	err := s.lanes.QueryRow(ctx, `SELECT EXISTS (SELECT FROM members WHERE incarnation = $1 AND fenced_at = 0),
		ARRAY(SELECT id FROM tasks WHERE id = ANY ($2))`, incarnation, missing).Scan(&member, &found)
	if err != nil {
		return fmt.Errorf("of %d only %d were written, why: %w", len(batch), len(written), err)
	}
	if len(written) == 0 && !member {
		return persistence.ErrFenced
	}
	exists := make(map[string]bool, len(found))
	for _, id := range found {
		exists[id] = true
	}
	for i, c := range batch {
		if !done[c.Task] {
			answers[i] = reason(c, exists[c.Task])
		}
	}
	return nil
}

func reason(c persistence.Commit, exists bool) error {
	switch {
	case c.Create != nil && exists && !malformed(&c):
		return persistence.ErrExists
	case c.Create == nil && !exists:
		return persistence.ErrUnknown
	}
	return persistence.ErrStale
}
