package sqlite

import (
	"context"
	"slices"
	"time"

	"github.com/troupe-engine/troupe/persistence"
	"github.com/troupe-engine/troupe/persistence/internal/listing"
)

// permitStore stores permits and decides about them.
type permitStore struct{ *database }

// writePermits applies the changes of a commit to permits.
func (t writeTx) writePermits(task string, c *persistence.PermitChanges) error {
	for i := range c.Ask {
		r := &c.Ask[i]
		_, err := t.execCount(`INSERT INTO permits (task, holder, key, shard, most, per_ms, when_full, urgency, fair, asked_at, turn)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
			task, r.Holder, r.Key, persistence.ShardOf(r.Key), r.Limit, r.PerMS, r.Full, -r.Priority, r.Fair, r.AskedAt, r.Turn)
		if err != nil {
			return err
		}
	}
	for _, id := range c.Hold {
		if _, err := t.execCount("UPDATE permits SET state = 2 WHERE task = ? AND holder = ? "+
			"AND key = ?", task, id.Holder, id.Key); err != nil {
			return err
		}
	}
	for _, id := range c.Release {
		if _, err := t.execCount("DELETE FROM permits WHERE task = ? AND holder = ? AND key = ?", task, id.Holder, id.Key); err != nil {
			return err
		}
	}
	return nil
}

// Rule holds the lane, so that no other decision is made meanwhile.
func (s permitStore) Rule(ctx context.Context, incarnation string, q persistence.PermitQuestion) (ruling persistence.Ruling, err error) {
	err = s.inTransaction(ctx, "give permits", func(t writeTx) error {
		if err := t.checkFence(incarnation); err != nil {
			return err
		}
		now := time.Now().UnixMilli()
		b, err := t.permitBook(q.Key, now)
		if err != nil {
			return err
		}
		v := b.Decide()
		ruling = persistence.Ruling{Again: v.Again, More: v.More}
		if err := t.redeliverVerdicts(q, now, &ruling); err != nil {
			return err
		}
		return t.writeRuling(q.Key, now, &v, &ruling)
	})
	return ruling, err
}

func (t writeTx) permitBook(key string, now int64) (*persistence.PermitBook, error) {
	b := &persistence.PermitBook{Now: now}
	err := t.queryOne("SELECT last, begun FROM permit_keys WHERE key = ?", []any{key}, &b.State.Cursor, &b.State.Begun)
	if err != nil && !isNone(err) {
		return nil, err
	}
	if err := t.queryOne(countHeld, []any{key}, &b.Held, &b.Evicted); err != nil {
		return nil, err
	}
	if b.Waiting, err = t.listWaiting(key, b.State.Cursor); err != nil {
		return nil, err
	}
	if b.Hasty, err = t.listPermits(hasty, key, persistence.HastyAtOnce); err != nil {
		return nil, err
	}
	if slices.ContainsFunc(b.Waiting, func(r persistence.PermitRow) bool { return r.Full == "cancel_running" }) {
		b.Running, err = t.listPermits("WHERE key = ? AND state IN (1, 2) AND NOT evicted ORDER "+
			"BY given_at, asked_at, task, holder LIMIT ?", key, persistence.PermitsAtOnce)
	}
	return b, err
}

// listWaiting returns the first waiting rows in the order of persistence.InTurn. From each of the
// next values of fair, it reads as many rows as are enough together.
func (t writeTx) listWaiting(key, cursor string) ([]persistence.PermitRow, error) {
	const enough = persistence.PermitsAtOnce
	turns, err := t.nextTurns(key, cursor)
	if err != nil || len(turns) == 0 {
		return nil, err
	}
	for each := (enough + len(turns) - 1) / len(turns); ; each = min(2*each, enough) {
		var rows []persistence.PermitRow
		cut := false
		for _, fair := range turns {
			some, err := t.listPermits(ofFair, key, fair, each)
			if err != nil {
				return nil, err
			}
			cut = cut || len(some) == each
			rows = append(rows, some...)
		}
		if len(rows) >= enough || !cut || each == enough {
			persistence.InTurn(rows, cursor)
			return rows[:min(len(rows), enough)], nil
		}
	}
}

// These queries never read all waiting rows. They return the number of holders, the rows of one
// fair, the next fair, the rows that do not wait, and the unacknowledged rows.
const (
	countHeld = "SELECT count(*), coalesce(sum(evicted), 0) FROM permits WHERE key = ? AND state IN (1, 2)"

	ofFair              = "WHERE key = ? AND state = 0 AND fair = ? ORDER BY urgency, asked_at, turn, holder LIMIT ?"
	nextFair            = "SELECT fair FROM permits WHERE key = ? AND state = 0 AND fair > ? ORDER BY fair LIMIT 1"
	hasty               = "INDEXED BY permits_hasty WHERE key = ? AND state = 0 AND when_full = 'refuse' ORDER BY asked_at, turn LIMIT ?"
	undeliveredVerdicts = "INDEXED BY permits_untold WHERE key = ?2 AND (state IN (1, 3) OR " +
		"evicted) AND (?3 OR told_at <= ?4 OR told_at > ?1) ORDER BY told_at, given_at, " +
		"asked_at, task, holder LIMIT ?5"
	oneFair = "SELECT fair FROM permits WHERE key = ? AND state = 0 ORDER BY fair LIMIT 1"
)

// nextTurns returns the next values of fair: first those after the cursor, then those up to the
// cursor.
func (t writeTx) nextTurns(key, cursor string) (turns []string, err error) {
	next := func(query string, args ...any) (fair string, found bool) {
		if err == nil {
			err = t.queryOne(query, args, &fair)
		}
		if found = err == nil; isNone(err) {
			err = nil
		}
		return fair, found
	}
	fair, found := next(nextFair, key, cursor)
	for ; found && len(turns) < persistence.PermitsAtOnce; fair, found = next(nextFair, key, fair) {
		turns = append(turns, fair)
	}
	if found || err != nil {
		return turns, err
	}
	for fair, found = next(oneFair, key); found && fair <= cursor &&
		len(turns) < persistence.PermitsAtOnce; fair, found = next(nextFair, key, fair) {
		turns = append(turns, fair)
	}
	return turns, err
}

// writeRuling stores a decision and adds the rows to notify to the ruling.
func (t writeTx) writeRuling(key string, now int64, v *persistence.PermitVerdict, ruling *persistence.Ruling) error {
	for _, part := range []struct {
		rows []persistence.PermitRow
		set  string
	}{
		{v.Given, "state = 1, given_at = ?1"}, {v.Refused, "state = 3, given_at = ?1"}, {v.Evicted, "evicted = ?1 > 0"},
	} {
		for _, r := range part.rows {
			told, err := t.changePermits(part.set+", told_at = ?1 WHERE task = ?2 AND holder = ?3 AND key = ?4", now, r.Task, r.Holder, key)
			if err != nil {
				return err
			}
			for _, row := range told {
				ruling.Add(row)
			}
		}
	}
	_, err := t.execCount(`INSERT INTO permit_keys (key, last, begun, idle_at) VALUES (?, ?, ?, ?)
		ON CONFLICT (key) DO UPDATE SET last = excluded.last, begun = excluded.begun, idle_at = excluded.idle_at`,
		key, v.State.Cursor, v.State.Begun, v.IdleAt)
	return err
}

// redeliverVerdicts adds the rows of earlier decisions that were not acknowledged for PermitToldMS.
func (t writeTx) redeliverVerdicts(q persistence.PermitQuestion, now int64, ruling *persistence.Ruling) error {
	rows, err := t.changePermits(`told_at = ?1 WHERE key = ?2 AND (task, holder) IN (SELECT `+
		`task, holder FROM permits `+undeliveredVerdicts+")",
		now, q.Key, q.Anew, now-persistence.PermitToldMS, persistence.PermitsToldAtOnce)
	for _, r := range rows {
		ruling.Add(r)
	}
	ruling.Retold = len(rows) > 0
	return err
}

func (t writeTx) listPermits(where string, args ...any) ([]persistence.PermitRow, error) {
	return queryRows(t, listing.ScanPermit, "SELECT "+listing.PermitColumns+" FROM permits "+where, args...)
}

// changePermits updates permits and returns the changed rows.
func (t writeTx) changePermits(set string, args ...any) ([]persistence.PermitRow, error) {
	return queryRows(t, listing.ScanPermit, "UPDATE permits SET "+set+" RETURNING "+listing.PermitColumns, args...)
}

// OpenKeys reads one row of each key. Rows of other shards are rare, because the only member owns
// every shard.
func (s permitStore) OpenKeys(ctx context.Context, shards persistence.ShardSet, after string, limit int) (keys []string, err error) {
	for len(keys) < limit {
		page, err := readRows(ctx, &s.readers, "list keys", listing.ScanValue[string], openKeys, after, limit)
		if err != nil {
			return nil, err
		}
		for _, key := range page {
			if after = key; shards.Has(key) && len(keys) < limit {
				keys = append(keys, key)
			}
		}
		if len(page) < limit {
			break
		}
	}
	return keys, nil
}

const openKeys = `WITH RECURSIVE k (key) AS (
		SELECT min(key) FROM permits INDEXED BY permits_open WHERE (state <> 2 OR evicted) AND key > ?1
		UNION ALL SELECT (SELECT min(p.key) FROM permits p INDEXED BY permits_open WHERE (p.state <> 2 OR p.evicted) AND p.key > k.key) FROM k WHERE k.key IS NOT NULL)
	SELECT key FROM k WHERE key IS NOT NULL LIMIT ?2`

func (s permitStore) PermitsOf(ctx context.Context, task string) ([]persistence.PermitRow, error) {
	return readRows(ctx, &s.readers, "list permits", listing.ScanPermitBefore, `SELECT `+listing.PermitColumns+`,
		CASE WHEN state <> 0 THEN 0 ELSE (SELECT count(*) FROM (SELECT 1 FROM permits o WHERE o.key = p.key AND o.state = 0 AND o.fair = p.fair
			AND (o.urgency, o.asked_at, o.turn, o.holder) < (p.urgency, p.asked_at, p.turn, p.holder) LIMIT ?2)) END
		FROM permits p WHERE task = ?1 ORDER BY holder, key`, task, persistence.MostBefore)
}

func (s permitStore) ForgetKeys(ctx context.Context, limit int) (int, error) {
	var deleted int64
	err := s.inTransaction(ctx, "forget keys", func(t writeTx) (err error) {
		deleted, err = t.execCount("DELETE FROM permit_keys WHERE key IN (SELECT key FROM "+
			"permit_keys WHERE idle_at <= ? ORDER BY idle_at LIMIT ?)", time.Now().UnixMilli(), limit)
		return err
	})
	return int(deleted), err
}
