package postgres

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/troupe-engine/troupe/persistence"
)

// now is the database's clock in milliseconds; it goes on within a transaction.
const now = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint"

// joining is the key of the advisory lock that lets members join one after the other.
const joining = 0x74726f757065

// holder is the incarnation that may write.
type holder struct {
	incarnation, name string
	until             int64
	left              int64 // milliseconds until then, by the database's clock
}

func (s *store) Join(ctx context.Context, name string, ttl time.Duration) (string, error) {
	incarnation := rand.Text()
	var first holder
	for {
		h, err := s.join(ctx, incarnation, name, ttl)
		switch {
		case err != nil:
			return "", wrap("join", err)
		case h == nil:
			return incarnation, nil
		case first.incarnation == "":
			first = *h
		case first.incarnation != h.incarnation || first.until != h.until:
			return "", fmt.Errorf("member %s (%s): %w", h.name, h.incarnation, persistence.ErrTaken)
		}
		// Looking more often than needed tells sooner that it was renewed.
		if err := pause(ctx, min(time.Duration(h.left+1)*time.Millisecond, 100*time.Millisecond)); err != nil {
			return "", fmt.Errorf("join: %w", err)
		}
	}
}

// join tells who is in the way; nil when nobody was.
func (s *store) join(ctx context.Context, incarnation, name string, ttl time.Duration) (inTheWay *holder, err error) {
	err = s.leases.use(ctx, func(conn *pgxpool.Conn) error {
		return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1)", joining); err != nil {
				return err
			}
			if inTheWay, err = alive(ctx, tx); inTheWay != nil || err != nil {
				return err
			}
			// From here on no batch and no renewal of the old one is under way. A renewal may have been
			// just before, so look again.
			if _, err := tx.Exec(ctx, "SELECT FROM members WHERE fenced_at = 0 FOR UPDATE"); err != nil {
				return err
			}
			if inTheWay, err = alive(ctx, tx); inTheWay != nil || err != nil {
				return err
			}
			return succeed(ctx, tx, incarnation, name, ttl)
		})
	})
	return inTheWay, err
}

// alive finds a member whose lease has not run out.
func alive(ctx context.Context, tx pgx.Tx) (*holder, error) {
	var h holder
	err := tx.QueryRow(ctx, `SELECT m.incarnation, m.name, l.until, l.until - `+now+` FROM members m JOIN leases l USING (incarnation)
		WHERE m.fenced_at = 0 AND l.until > `+now+` LIMIT 1`).Scan(&h.incarnation, &h.name, &h.until, &h.left)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	return &h, err
}

// succeed fences whoever is left and takes the place.
func succeed(ctx context.Context, tx pgx.Tx, incarnation, name string, ttl time.Duration) error {
	var batch pgx.Batch
	batch.Queue("UPDATE members SET fenced_at = " + now + " WHERE fenced_at = 0")
	batch.Queue("INSERT INTO members (incarnation, name, joined_at) VALUES ($1, $2, "+now+")", incarnation, name)
	batch.Queue("INSERT INTO leases (incarnation, until) VALUES ($1, "+now+" + $2::bigint)", incarnation, ttl.Milliseconds())
	return tx.SendBatch(ctx, &batch).Close()
}

// Renew share-locks the fence, like a batch: it is over before a takeover, or sees it.
func (s *store) Renew(ctx context.Context, incarnation string, ttl time.Duration) (time.Time, error) {
	var at int64
	err := s.leases.use(ctx, func(conn *pgxpool.Conn) error {
		return conn.QueryRow(ctx, `WITH fence AS MATERIALIZED (
			SELECT incarnation FROM members WHERE incarnation = $1 AND fenced_at = 0 FOR SHARE)
		UPDATE leases l SET until = `+now+` + $2::bigint FROM fence WHERE l.incarnation = fence.incarnation
		RETURNING l.until - $2::bigint`, incarnation, ttl.Milliseconds()).Scan(&at)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		err = persistence.ErrFenced
	}
	return time.UnixMilli(at), wrap("renew", err)
}

// Locked: everybody who reaches the database may join.
func (s *store) Locked() bool { return false }

func (s *store) Leave(ctx context.Context, incarnation string) error {
	err := s.leases.use(ctx, func(conn *pgxpool.Conn) error {
		_, err := conn.Exec(ctx, "UPDATE members SET fenced_at = "+now+" WHERE incarnation = $1 AND fenced_at = 0", incarnation)
		return err
	})
	return wrap("leave", err)
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
