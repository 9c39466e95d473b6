package postgres

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/troupe-engine/troupe/persistence"
	"github.com/troupe-engine/troupe/persistence/internal/listing"
)

// permitStore stores permits and decides about them.
type permitStore struct{ *database }

// The queries of a decision about a key. A statement sees everything written before it begins, so
// statements after the lock see every earlier decision. Rows that a batch is just releasing still
// count. After that commit, the member requests a new decision.
var (
	permitColumns = strings.Replace(listing.PermitColumns, "holder", "coalesce(long_holder, holder)", 1)

	lockKey = `INSERT INTO troupe.permit_keys (key) VALUES ($1) ON CONFLICT (key) DO UPDATE SET ` +
		`key = excluded.key RETURNING last, begun, ` + now

	countHeld = "SELECT count(*), count(*) FILTER (WHERE evicted) FROM troupe.permits WHERE key = $1 AND state IN (1, 2)"

	// listWaiting reads the first waiting rows of each of the next values of fair, and no others.
	listWaiting = `WITH RECURSIVE behind AS (
			(SELECT fair FROM troupe.permits WHERE key = $1 AND state = 0 AND fair > (SELECT last FROM troupe.permit_keys WHERE key = $1) ORDER BY fair LIMIT 1)
			UNION ALL SELECT n.fair FROM behind b, LATERAL (SELECT fair FROM troupe.permits WHERE key = $1 AND state = 0 AND fair > b.fair ORDER BY fair LIMIT 1) n),
		before AS (
			(SELECT fair FROM troupe.permits WHERE key = $1 AND state = 0 AND fair <= (SELECT last FROM troupe.permit_keys WHERE key = $1) ORDER BY fair LIMIT 1)
			UNION ALL SELECT n.fair FROM before b, LATERAL (SELECT fair FROM troupe.permits WHERE key = $1 AND state = 0 AND fair > b.fair
				AND fair <= (SELECT last FROM troupe.permit_keys WHERE key = $1) ORDER BY fair LIMIT 1) n),
		turns AS (SELECT * FROM ((SELECT fair, 1 AS lap FROM behind LIMIT $2) UNION ALL (SELECT fair, 2 FROM before LIMIT $2)) t ORDER BY lap, fair LIMIT $2)
		SELECT ` + permitColumns + ` FROM (SELECT p.*, t.lap, row_number() OVER (PARTITION BY t.fair ORDER BY p.urgency, p.asked_at, p.turn, p.holder) AS round
			FROM turns t, LATERAL (SELECT * FROM troupe.permits WHERE key = $1 AND state = 0 AND fair = t.fair ORDER BY urgency, asked_at, turn, holder LIMIT $2) p) p
		ORDER BY round, lap, fair LIMIT $2`

	listHasty = "SELECT " + permitColumns +
		" FROM troupe.permits WHERE key = $1 AND state = 0 AND when_full = 'refuse' ORDER BY " +
		"asked_at, turn LIMIT $2"

	// listRunning reads the holders only if a waiting row may cancel one. The ORDER BY makes the
	// planner use the index of such rows; otherwise it would read all waiting rows of most keys.
	listRunning = "SELECT " + permitColumns + ` FROM troupe.permits WHERE key = $1 AND state IN (1, 2) AND NOT evicted
		AND (SELECT true FROM troupe.permits WHERE key = $1 AND state = 0 AND when_full = 'cancel_running' ORDER BY asked_at, turn LIMIT 1)
		ORDER BY given_at, asked_at, task, holder LIMIT $2`

	// These statements find each row once by its key and change it in place. A plan that joins by
	// key could search all rows for each of them, if it was made while the table was small. Rows
	// that a batch has locked are skipped.
	redeliverVerdicts = `UPDATE troupe.permits SET told_at = $3 WHERE ctid = ANY (ARRAY(
			SELECT ctid FROM troupe.permits WHERE key = $1 AND (state IN (1, 3) OR evicted) AND ($2 OR told_at <= $4 OR told_at > $3)
				ORDER BY told_at, given_at, asked_at, task, holder LIMIT $5 FOR UPDATE SKIP LOCKED))
		RETURNING ` + permitColumns

	rulePermits = `UPDATE troupe.permits SET state = coalesce(nullif($4, -1)::smallint, state), given_at = CASE WHEN $4 = -1 THEN given_at ELSE $5 END, told_at = $5, evicted = evicted OR $4 = -1
		WHERE ctid = ANY (ARRAY(SELECT o.row FROM unnest($2::text[], $3::text[]) x (task, holder)
			CROSS JOIN LATERAL (SELECT ctid AS row FROM troupe.permits p WHERE p.task = x.task AND p.holder = x.holder AND p.key = $1 FOR UPDATE SKIP LOCKED) o))
		RETURNING ` + permitColumns

	rememberKey = "UPDATE troupe.permit_keys SET last = $2, begun = $3, idle_at = $4 WHERE key = $1"
)

// evicts is the state argument of rulePermits that keeps the state of the rows.
const evicts = -1

// mayWrite fails with a division by zero if the member may not write, which aborts the whole
// transaction.
const mayWrite = "SELECT 1 / count(*) FROM (" + lockMember + "KEY SHARE) AS living"

// Rule is a transaction with the lock of the key; only this lock separates two decisions. It waits
// for no row that a batch has locked. It holds no other lock during the decision, and the server
// ends it soon if the member freezes. The locks on the member and on rows are sent together with
// the COMMIT.
func (s permitStore) Rule(ctx context.Context, incarnation string, q persistence.PermitQuestion) (ruling persistence.Ruling, err error) {
	err = s.pool.withConn(ctx, func(conn *pgxpool.Conn) error {
		tx, err := conn.Begin(ctx)
		if err != nil {
			return err
		}
		b, err := s.permitBook(ctx, tx, q.Key)
		if err == nil {
			v := b.Decide()
			ruling, err = s.writeRuling(ctx, tx, incarnation, q, b.Now, &v)
		}
		if err != nil {
			_ = tx.Rollback(ctx) // if the rollback fails, the connection is closed
		}
		return err
	})
	if refused := (*pgconn.PgError)(nil); errors.As(err, &refused) && refused.Code == divisionByZero {
		return persistence.Ruling{}, persistence.ErrFenced
	}
	return ruling, wrapError("give permits", err)
}

func (s permitStore) permitBook(ctx context.Context, tx pgx.Tx, key string) (*persistence.PermitBook, error) {
	b := &persistence.PermitBook{}
	var batch pgx.Batch
	batch.Queue("SELECT set_config('idle_in_transaction_session_timeout', $1, true)", strconv.FormatInt(frozen.Milliseconds(), 10))
	batch.Queue(onlyIndexes)
	batch.Queue(lockKey, key).QueryRow(func(row pgx.Row) error { return row.Scan(&b.State.Cursor, &b.State.Begun, &b.Now) })
	batch.Queue(countHeld, key).QueryRow(func(row pgx.Row) error { return row.Scan(&b.Held, &b.Evicted) })
	batch.Queue(listWaiting, key, persistence.PermitsAtOnce).Query(permitsInto(&b.Waiting))
	batch.Queue(listHasty, key, persistence.HastyAtOnce).Query(permitsInto(&b.Hasty))
	batch.Queue(listRunning, key, persistence.PermitsAtOnce).Query(permitsInto(&b.Running))
	return b, tx.SendBatch(ctx, s.schema.qualifyBatch(&batch)).Close()
}

func permitsInto(list *[]persistence.PermitRow) func(pgx.Rows) error {
	return func(rows pgx.Rows) (err error) {
		*list, err = listing.Collect(rows, listing.ScanPermit)
		return err
	}
}

// writeRuling stores a decision, reads the rows to notify, and ends the transaction.
func (s permitStore) writeRuling(ctx context.Context, tx pgx.Tx, incarnation string,
	q persistence.PermitQuestion, at int64,
	v *persistence.PermitVerdict) (ruling persistence.Ruling, err error) {
	ruling = persistence.Ruling{Again: v.Again, More: v.More}
	var batch pgx.Batch
	hears := func(rows pgx.Rows) error {
		list, err := listing.Collect(rows, listing.ScanPermit)
		for _, r := range list {
			ruling.Add(r)
		}
		return err
	}
	batch.Queue(mayWrite, incarnation)
	batch.Queue(redeliverVerdicts, q.Key, q.Anew, at, at-persistence.PermitToldMS,
		persistence.PermitsToldAtOnce).Query(func(rows pgx.Rows) error {
		err := hears(rows)
		ruling.Retold = len(ruling.Given)+len(ruling.Refused)+len(ruling.Evicted) > 0
		return err
	})
	set := func(rows []persistence.PermitRow, state persistence.PermitState) {
		if len(rows) == 0 {
			return
		}
		tasks, holders := make([]string, len(rows)), make([]string, len(rows))
		for i, r := range rows {
			tasks[i] = r.Task
			holders[i], _ = indexKey(r.Holder)
		}
		batch.Queue(rulePermits, q.Key, tasks, holders, int(state), at).Query(hears)
	}
	set(v.Given, persistence.PermitGiven)
	set(v.Refused, persistence.PermitRefused)
	set(v.Evicted, evicts)
	batch.Queue(rememberKey, q.Key, v.State.Cursor, v.State.Begun, v.IdleAt)
	batch.Queue("COMMIT")
	return ruling, tx.SendBatch(ctx, s.schema.qualifyBatch(&batch)).Close()
}

// openKeys reads one row of each key.
const openKeys = `WITH RECURSIVE k AS (
		(SELECT key, shard FROM troupe.permits WHERE (state <> 2 OR evicted) AND key > $2 ORDER BY key LIMIT 1)
		UNION ALL SELECT n.key, n.shard FROM k, LATERAL (SELECT key, shard FROM troupe.permits WHERE (state <> 2 OR evicted) AND key > k.key ORDER BY key LIMIT 1) n)
	SELECT key FROM k WHERE $1::int[] IS NULL OR shard = ANY($1) LIMIT $3`

func (s permitStore) OpenKeys(ctx context.Context, shards persistence.ShardSet, after string, limit int) ([]string, error) {
	return readRows(ctx, s.database, "list keys", listing.ScanValue[string], openKeys, []int(shards), after, limit)
}

func (s permitStore) PermitsOf(ctx context.Context, task string) ([]persistence.PermitRow, error) {
	return readRows(ctx, s.database, "list permits", listing.ScanPermitBefore, `SELECT `+permitColumns+`,
		CASE WHEN state <> 0 THEN 0 ELSE (SELECT count(*) FROM (SELECT FROM troupe.permits o WHERE o.key = p.key AND o.state = 0 AND o.fair = p.fair
			AND (o.urgency, o.asked_at, o.turn, o.holder) < (p.urgency, p.asked_at, p.turn, p.holder) LIMIT $2) o) END
		FROM troupe.permits p WHERE task = $1 ORDER BY holder, key`, task, persistence.MostBefore)
}

// ForgetKeys skips keys that a decision has locked.
func (s permitStore) ForgetKeys(ctx context.Context, limit int) (int, error) {
	return s.execCount(ctx, "forget keys", `DELETE FROM troupe.permit_keys WHERE ctid = ANY (ARRAY(
		SELECT ctid FROM troupe.permit_keys WHERE idle_at <= `+now+` ORDER BY idle_at LIMIT $1 FOR UPDATE SKIP LOCKED))`, limit)
}
