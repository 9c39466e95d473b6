package sqlite

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/troupe-engine/troupe/persistence"
	"github.com/troupe-engine/troupe/persistence/internal/listing"
)

// memberStore keeps members, their leases and shards.
type memberStore struct{ *database }

// fenceAll fences all members. The lock on the file proves that no earlier member is alive.
func (s memberStore) fenceAll(ctx context.Context) error {
	return s.inTransaction(ctx, "fence", func(t writeTx) error { return t.fenceMembers(end, time.Now().UnixMilli()) })
}

const (
	end        = "UPDATE members SET fenced_at = ? WHERE fenced_at = 0"
	endOne     = end + " AND incarnation = ?"
	endExpired = endOne + " AND lease_until <= ?"
)

// fenceMembers runs a query that fences members. If it has fenced any, it increases the generation.
func (t writeTx) fenceMembers(query string, args ...any) error {
	n, err := t.execCount(query, args...)
	if err == nil && n > 0 {
		err = t.bumpGeneration()
	}
	return err
}

func (t writeTx) bumpGeneration() error {
	_, err := t.execCount("UPDATE cluster SET generation = generation + 1")
	return err
}

// Locked returns true, because the lock file is held until Close or the end of the process.
func (s memberStore) Locked() bool { return true }

// leaseHolder is the incarnation that may write.
type leaseHolder struct {
	incarnation, name string
	leaseUntil        int64
}

// Join waits only for a predecessor in the same process, because the lock file excludes other
// processes.
func (s memberStore) Join(ctx context.Context, j persistence.Joining) (string, error) {
	incarnation := rand.Text()
	var first leaseHolder
	for {
		var now leaseHolder
		err := s.inTransaction(ctx, "join", func(t writeTx) (err error) {
			now, err = t.joinMember(incarnation, j)
			return err
		})
		switch {
		case err != nil:
			return "", err
		case now.incarnation == incarnation:
			return incarnation, nil
		case first.incarnation == "":
			first = now
		case first != now:
			return "", fmt.Errorf("member %s (%s): %w", now.name, now.incarnation, persistence.ErrTaken)
		}
		if err := awaitLeaseEnd(ctx, now.leaseUntil); err != nil {
			return "", fmt.Errorf("join: %w", err)
		}
	}
}

// joinMember joins if possible, and returns the member that then holds the store.
func (t writeTx) joinMember(incarnation string, j persistence.Joining) (leaseHolder, error) {
	if err := t.checkCluster(j); err != nil {
		return leaseHolder{}, err
	}
	now := time.Now()
	var old leaseHolder
	err := t.queryOne("SELECT incarnation, name, lease_until FROM members WHERE fenced_at = 0", nil,
		&old.incarnation, &old.name, &old.leaseUntil)
	if err == nil && old.leaseUntil > now.UnixMilli() {
		return old, nil
	}
	if err != nil && !isNone(err) {
		return leaseHolder{}, err
	}
	if err := t.fenceMembers(end, now.UnixMilli()); err != nil {
		return leaseHolder{}, err
	}
	h := leaseHolder{incarnation, j.Name, now.Add(j.TTL).UnixMilli()}
	_, err = t.execCount(`INSERT INTO members (incarnation, name, url, gossip, version, format, joined_at, lease_until, renewed_at)
		VALUES (?, ?, ?, ?, ?, ?, (SELECT max(?, coalesce(max(joined_at) + 1, 0)) FROM members), ?, ?)`,
		h.incarnation, j.Name, j.URL, j.Gossip, j.Version, j.Format, now.UnixMilli(), h.leaseUntil, now.UnixMilli())
	if err == nil {
		_, err = t.execCount("UPDATE cluster SET format = ?", j.Format)
	}
	if err == nil {
		err = t.bumpGeneration()
	}
	return h, err
}

// checkCluster names a new cluster. It returns an error if the member's cluster, journal format or
// place of large values does not match.
func (t writeTx) checkCluster(j persistence.Joining) error {
	var name, values string
	var written int
	err := t.queryOne("UPDATE cluster SET name = coalesce(name, ?), values_at = "+
		"coalesce(nullif(?, ''), values_at) RETURNING name, format, values_at",
		[]any{j.Cluster, j.Values}, &name, &written, &values)
	switch {
	case err != nil:
		return err
	case name != j.Cluster:
		return persistence.Stranger(name, j.Cluster)
	}
	return cmp.Or(persistence.Fits(written, j.Format, true), persistence.Placed(values, j.Values, true))
}

// awaitLeaseEnd waits until a lease expires, at most 100 ms, so that the caller can check for a
// renewal.
func awaitLeaseEnd(ctx context.Context, until int64) error {
	wait := time.NewTimer(min(time.Until(time.UnixMilli(until+1)), 100*time.Millisecond))
	defer wait.Stop()
	select {
	case <-wait.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s memberStore) Renew(ctx context.Context, incarnation string, ttl time.Duration) (persistence.Pulse, error) {
	var p persistence.Pulse
	err := s.inTransaction(ctx, "renew", func(t writeTx) error {
		p.Now = time.Now()
		if err := t.queryOne("SELECT generation, format, history, kept FROM cluster", nil,
			&p.Generation, &p.Format, &p.History, &p.Kept); err != nil {
			return err
		}
		var fencedAt int64
		err := t.queryOne("SELECT renewed_at, renewals + 1, fenced_at FROM members WHERE "+
			"incarnation = ?", []any{incarnation}, &p.Before, &p.Renewals, &fencedAt)
		switch {
		case isNone(err):
			return persistence.ErrRewound
		case err == nil && fencedAt != 0:
			return persistence.ErrFenced
		case err != nil:
			return err
		}
		_, err = t.execCount("UPDATE members SET lease_until = ?, renewed_at = ?, renewals = renewals + 1 WHERE incarnation = ?",
			p.Now.Add(ttl).UnixMilli(), p.Now.UnixMilli(), incarnation)
		return err
	})
	return p, err
}

// BeginHistory begins a new history. It drops the cached ends of journals, because they belong to
// the previous history.
func (s memberStore) BeginHistory(ctx context.Context, known string, kept int64) error {
	return s.inTransaction(ctx, "begin another history", func(t writeTx) error {
		n, err := t.execCount(
			`UPDATE cluster SET history = hex(randomblob(16)), kept = coalesce(nullif(?, 0), (SELECT max(renewed_at) FROM members), 0)
			WHERE history = ?`, kept, known)
		if err != nil || n == 0 {
			return err
		}
		t.lane.ends.Clear()
		return t.fenceMembers(end, time.Now().UnixMilli())
	})
}

func (s memberStore) Leave(ctx context.Context, incarnation string) error {
	return s.inTransaction(ctx, "leave", func(t writeTx) error { return t.fenceMembers(endOne, time.Now().UnixMilli(), incarnation) })
}

func (s memberStore) Fence(ctx context.Context, incarnation string) (ended bool, err error) {
	err = s.inTransaction(ctx, "fence", func(t writeTx) error {
		now := time.Now().UnixMilli()
		if err := t.fenceMembers(endExpired, now, incarnation, now); err != nil {
			return err
		}
		err := t.checkFence(incarnation)
		ended = errors.Is(err, persistence.ErrFenced)
		if ended {
			return nil
		}
		return err
	})
	return ended, err
}

// Cluster reports the live member as the owner of all shards.
func (s memberStore) Cluster(ctx context.Context) (*persistence.Cluster, error) {
	t, err := s.readers.beginSnapshot(ctx, generationQuery, membersQuery)
	if err != nil {
		return nil, wrapError("read the cluster", err)
	}
	defer func() { _ = t.tx.Rollback() }() // the transaction has only read
	generation, err := readFirst(ctx, t, "read the cluster", listing.ScanValue[int64], generationQuery)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	c := &persistence.Cluster{Generation: *generation, Now: now.UnixMilli(), Owners: make([]string, persistence.Shards)}
	c.Members, err = readRows(ctx, t, "read the cluster", scanMember, membersQuery, now.Add(-persistence.Remembered).UnixMilli())
	for _, m := range c.Members {
		if m.FencedAt == 0 {
			c.Owners = slices.Repeat([]string{m.Incarnation}, persistence.Shards)
		}
	}
	return c, err
}

const (
	generationQuery = "SELECT generation FROM cluster"
	membersQuery    = `SELECT incarnation, name, url, gossip, version, format, joined_at, lease_until, fenced_at FROM members
		WHERE fenced_at = 0 OR fenced_at > ? ORDER BY joined_at`
)

func scanMember(row listing.Row, m *persistence.MemberRow) error {
	return row.Scan(&m.Incarnation, &m.Name, &m.URL, &m.Gossip, &m.Version, &m.Format, &m.JoinedAt, &m.Until, &m.FencedAt)
}

// Claim returns all requested shards, because the only member owns every shard.
func (s memberStore) Claim(ctx context.Context, incarnation string, shards []int) ([]int, error) {
	err := s.inTransaction(ctx, "claim", func(t writeTx) error { return t.checkFence(incarnation) })
	if err != nil {
		return nil, err
	}
	return slices.Sorted(slices.Values(shards)), nil
}

// Release does nothing, because no other member could claim the shards.
func (s memberStore) Release(context.Context, string, []persistence.Transfer) error { return nil }

// Moves returns none, because there is no other member.
func (s memberStore) Moves(context.Context) ([]persistence.Move, error) { return nil, nil }

// Secret stores a new secret only if none is stored.
func (s memberStore) Secret(ctx context.Context) (secret string, err error) {
	err = s.inTransaction(ctx, "read the secret of the cluster", func(t writeTx) error {
		return t.queryOne("UPDATE cluster SET secret = coalesce(secret, ?) RETURNING secret", []any{rand.Text()}, &secret)
	})
	return secret, err
}

func (s memberStore) ValuesAt(ctx context.Context) (at string, err error) {
	err = s.inTransaction(ctx, "read where large values are kept", func(t writeTx) error {
		return t.queryOne("SELECT values_at FROM cluster", nil, &at)
	})
	return at, err
}

// Drain does nothing, because there is no other member.
func (s memberStore) Drain(context.Context, string, bool) error { return nil }

// checkFence returns ErrFenced if an incarnation may not write.
func (t writeTx) checkFence(incarnation string) error {
	var one int
	err := t.queryOne("SELECT 1 FROM members WHERE incarnation = ? AND fenced_at = 0", []any{incarnation}, &one)
	if isNone(err) {
		return persistence.ErrFenced
	}
	return err
}
