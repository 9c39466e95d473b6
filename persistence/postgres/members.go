package postgres

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/troupe-engine/troupe/persistence"
)

// memberStore stores members, their leases and shards.
type memberStore struct{ *database }

// now is the database's clock in milliseconds; it advances within a transaction.
const now = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint"

// joining is the name of the lock for joining.
const joining = "join"

// These statements lock members. Every transaction takes its locks in the same order: joining, rows
// of members, the row of the cluster, and shards. Every change of owners needs the row of the
// cluster.
const (
	// lockJoining takes the advisory lock that makes members join one at a time.
	lockJoining  = "SELECT pg_advisory_xact_lock($1)"
	lockMember   = "SELECT FROM troupe.members WHERE incarnation = $1 AND fenced_at = 0 FOR "
	lockCluster  = "SELECT FROM troupe.cluster FOR UPDATE"
	newlyChanged = "UPDATE troupe.cluster SET generation = generation + 1"
	forgetMoves  = "DELETE FROM troupe.moves WHERE at <= " + now + " - $1::bigint"
	// formatKnown sets the format of journals to the newest format that all live members know. It
	// runs after members have joined or left.
	formatKnown = `UPDATE troupe.cluster SET format = known FROM (SELECT min(m.format) AS known ` +
		`FROM troupe.members m WHERE fenced_at = 0) AS living WHERE known > format`
)

// Join also deletes members that left long ago, because a missing incarnation means the same as a
// fenced one. All statements are sent at once, so that a member that freezes holds no locks.
func (s memberStore) Join(ctx context.Context, j persistence.Joining) (string, error) {
	defer s.memory.forgetAll() // the memory belongs to an earlier incarnation
	incarnation := rand.Text()
	var name, values string
	var written int
	var alone, sealed bool
	var batch pgx.Batch
	batch.Queue(lockJoining, s.schema.lockID(joining))
	batch.Queue(lockCluster)
	batch.Queue(newlyChanged+", name = coalesce(name, $1), values_at = coalesce(nullif($4, ''), "+
		"values_at) WHERE coalesce(name, $1) = $1 AND "+joinCondition("$2", "$3", "$4::text"),
		j.Cluster, j.Format, j.Seal, j.Values)
	batch.Queue("DELETE FROM troupe.members WHERE fenced_at BETWEEN 1 AND "+now+" - $1::bigint", persistence.Forgotten.Milliseconds())
	batch.Queue("SELECT NOT "+othersLive("")+", NOT "+othersLive(" AND seal <> $1"), j.Seal).
		QueryRow(func(row pgx.Row) error { return row.Scan(&alone, &sealed) })
	batch.Queue(`INSERT INTO troupe.members (incarnation, name, url, gossip, version, format, seal, era, joined_at)
		SELECT $1, $2, $3, $4, $5, $7, $8, era, greatest(`+now+`, (SELECT max(joined_at) + 1 FROM troupe.members)) FROM troupe.cluster WHERE name = $6 AND `+joinCondition("$7", "$8", "$9::text"),
		incarnation, j.Name, j.URL, j.Gossip, j.Version, j.Cluster, j.Format, j.Seal, j.Values)
	batch.Queue("INSERT INTO troupe.leases (incarnation, until, ttl) SELECT incarnation, "+now+
		" + $2::bigint, $2 FROM troupe.members WHERE incarnation = $1",
		incarnation, j.TTL.Milliseconds())
	batch.Queue(formatKnown)
	batch.Queue("SELECT name, format, values_at FROM troupe.cluster").QueryRow(
		func(row pgx.Row) error { return row.Scan(&name, &written, &values) })
	err := s.inOne(ctx, s.leases, &batch)
	switch {
	case err != nil:
	case name != j.Cluster:
		err = persistence.Stranger(name, j.Cluster)
	case !sealed:
		err = persistence.Unsealed()
	default:
		err = cmp.Or(persistence.Fits(written, j.Format, alone), persistence.Placed(values, j.Values, alone))
	}
	return incarnation, wrapError("join", err)
}

// othersLive returns the condition that a member of some kind has a running lease.
func othersLive(kind string) string {
	return "EXISTS (SELECT FROM troupe.members JOIN troupe.leases USING (incarnation) WHERE fenced_at = 0 AND until > " + now + kind + ")"
}

// joinCondition returns persistence.Fits and Placed as an SQL condition on the joining member. It
// also checks for the same seal as the live members.
func joinCondition(format, seal, values string) string {
	return "cluster.format <= " + format + " AND (cluster.format = 0 OR " + format +
		" <= cluster.format + 1 OR NOT " + othersLive("") + ")" +
		" AND NOT " + othersLive(" AND seal <> "+seal) +
		" AND CASE WHEN values_at = '' THEN " + values + " = '' OR NOT " + othersLive("") + " ELSE " + values + " <> '' END"
}

// Renew takes a lock on the member's row for which a fence waits. So the renewal completes before
// the fence or fails after it. Batches and deletions of flows do not block it.
func (s memberStore) Renew(ctx context.Context, incarnation string, ttl time.Duration) (persistence.Pulse, error) {
	var p persistence.Pulse
	var at int64
	before := s.witness.renewalMark()
	err := s.leases.withConn(ctx, func(conn *pgxpool.Conn) error {
		err := conn.QueryRow(ctx, s.schema.qualify(`WITH fence AS MATERIALIZED (
			SELECT incarnation, until - ttl AS before FROM troupe.members JOIN troupe.leases USING (incarnation)
				WHERE incarnation = $1 AND fenced_at = 0 FOR KEY SHARE OF members)
		UPDATE troupe.leases l SET until = `+now+` + $2::bigint, ttl = $2, renewals = l.renewals + 1 FROM fence, troupe.cluster c WHERE l.incarnation = fence.incarnation
		RETURNING l.until - $2::bigint, l.renewals, fence.before, c.generation, c.format, c.history, c.kept`), incarnation, ttl.Milliseconds()).
			Scan(&at, &p.Renewals, &p.Before, &p.Generation, &p.Format, &p.History, &p.Kept)
		if !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		known := false
		err = conn.QueryRow(ctx, s.schema.qualify(
			`SELECT `+now+`, history, kept, EXISTS (SELECT FROM troupe.members WHERE `+
				`incarnation = $1) FROM troupe.cluster`), incarnation).
			Scan(&at, &p.History, &p.Kept, &known)
		switch {
		case err != nil:
			return err
		case !known:
			return persistence.ErrRewound
		}
		return persistence.ErrFenced
	})
	switch {
	case err == nil:
		s.witness.renewedIn(p, incarnation, before)
	case errors.Is(err, persistence.ErrFenced):
		s.witness.forgetAll()
	}
	p.Now, p.Takeover = time.UnixMilli(at), s.witness.takeoverTo(p.History)
	return p, wrapError("renew", err)
}

// Locked returns false, because several programs may join through the database.
func (s memberStore) Locked() bool { return false }

func (s memberStore) Drain(ctx context.Context, incarnation string, drains bool) error {
	lives := false
	var batch pgx.Batch
	batch.Queue(lockMember+"KEY SHARE", incarnation).Query(func(rows pgx.Rows) error {
		lives = rows.Next()
		rows.Close()
		return rows.Err()
	})
	batch.Queue(lockCluster)
	batch.Queue(`WITH drained AS (UPDATE troupe.leases SET draining = $2 WHERE incarnation = $1 AND draining <> $2
			AND EXISTS (SELECT FROM troupe.members WHERE incarnation = $1 AND fenced_at = 0) RETURNING incarnation)
		`+newlyChanged+` WHERE EXISTS (SELECT FROM drained)`, incarnation, drains)
	err := s.inOne(ctx, s.keeper, &batch)
	if err == nil && !lives {
		err = persistence.ErrFenced
	}
	return wrapError("drain", err)
}

// ended is the part of a statement that frees the shards of the members in its part gone.
const ended = `,
		freed AS (UPDATE troupe.shards SET owner = '', had = owner FROM gone WHERE owner = gone.incarnation)
		` + newlyChanged + ` WHERE EXISTS (SELECT FROM gone)`

// Leave waits for batches of the member that are in progress. It uses the connection of the lease,
// because it ends the lease.
func (s memberStore) Leave(ctx context.Context, incarnation string) error {
	defer s.witness.forgetAll()
	var batch pgx.Batch
	batch.Queue(lockMember+"NO KEY UPDATE", incarnation)
	batch.Queue(lockCluster)
	batch.Queue("WITH gone AS (UPDATE troupe.members SET fenced_at = "+now+
		" WHERE incarnation = $1 AND fenced_at = 0 RETURNING incarnation)"+ended, incarnation)
	batch.Queue(formatKnown)
	return wrapError("leave", s.inOne(ctx, s.leases, &batch))
}

// fencePatience is how long a fence waits for a batch of the member. Afterwards it gives up for
// now, so that the caller can continue.
const fencePatience = 500 * time.Millisecond

// Fence takes the lock only if the lease seems to have expired. The lock excludes batches and
// renewals of that member. Then it checks the lease again, because the lease may have been renewed
// just before.
func (s memberStore) Fence(ctx context.Context, incarnation string) (bool, error) {
	const runs = "EXISTS (SELECT FROM troupe.members JOIN troupe.leases USING (incarnation) " +
		"WHERE incarnation = $1 AND fenced_at = 0 AND until > " + now + " AND until <= " + now + " + 2 * ttl)"
	held := false
	err := s.keeper.withConn(ctx, func(conn *pgxpool.Conn) error {
		if err := conn.QueryRow(ctx, s.schema.qualify("SELECT "+runs), incarnation).Scan(&held); err != nil || held {
			return err
		}
		var batch pgx.Batch
		batch.Queue("SELECT set_config('lock_timeout', $1, true)", fmt.Sprint(fencePatience.Milliseconds()))
		batch.Queue(lockMember+"UPDATE", incarnation)
		batch.Queue(lockCluster)
		batch.Queue("WITH gone AS (UPDATE troupe.members SET fenced_at = "+now+
			" WHERE incarnation = $1 AND fenced_at = 0 AND NOT "+runs+" RETURNING incarnation)"+
			ended, incarnation)
		batch.Queue(formatKnown)
		batch.Queue("SELECT EXISTS (SELECT FROM troupe.members WHERE incarnation = $1 AND "+
			"fenced_at = 0)", incarnation).QueryRow(func(row pgx.Row) error {
			return row.Scan(&held)
		})
		return conn.SendBatch(ctx, s.schema.qualifyBatch(&batch)).Close()
	})
	return err == nil && !held, wrapError("fence", err)
}

// Cluster reads everything with one statement, so that the result is of one moment.
func (s memberStore) Cluster(ctx context.Context) (*persistence.Cluster, error) {
	var c persistence.Cluster
	err := s.keeper.withConn(ctx, func(conn *pgxpool.Conn) error {
		return conn.QueryRow(ctx, s.schema.qualify(`SELECT generation, `+now+`,
			(SELECT coalesce(json_agg(json_build_object('Incarnation', incarnation, 'Name', m.name, 'URL', url, 'Gossip', gossip,
					'Version', version, 'Format', m.format, 'JoinedAt', joined_at, 'Until', until, 'TTL', ttl, 'FencedAt', fenced_at, 'Draining', draining) ORDER BY joined_at), '[]')
				FROM troupe.members m JOIN troupe.leases USING (incarnation) WHERE fenced_at = 0 OR fenced_at > `+now+` - $1::bigint),
			(SELECT array_agg(owner ORDER BY shard) FROM troupe.shards) FROM troupe.cluster`), persistence.Remembered.Milliseconds()).
			Scan(&c.Generation, &c.Now, &c.Members, &c.Owners)
	})
	if err != nil {
		return nil, wrapError("read the cluster", err)
	}
	return &c, nil
}

// Claim locks the member's row as a batch does.
func (s memberStore) Claim(ctx context.Context, incarnation string, shards []int) ([]int, error) {
	var owned []int
	fenced := true
	var batch pgx.Batch
	batch.Queue(lockMember+"SHARE", incarnation).Query(func(rows pgx.Rows) error {
		fenced = !rows.Next()
		rows.Close()
		return rows.Err()
	})
	batch.Queue(lockCluster)
	batch.Queue(`WITH taken AS (UPDATE troupe.shards SET owner = $1 WHERE shard = ANY($2) AND owner = ''
			AND EXISTS (SELECT FROM troupe.members WHERE incarnation = $1 AND fenced_at = 0) RETURNING had),
		noted AS (INSERT INTO troupe.moves (at, giver, taker, shards) SELECT `+now+`, had, $1, count(*) FROM taken WHERE had <> $1 GROUP BY had ORDER BY had)
		`+newlyChanged+` WHERE EXISTS (SELECT FROM taken)`, incarnation, shards)
	batch.Queue(forgetMoves, persistence.Remembered.Milliseconds())
	batch.Queue(
		"SELECT shard FROM troupe.shards WHERE shard = ANY($2) AND owner = $1 ORDER BY shard",
		incarnation, shards).Query(func(rows pgx.Rows) (err error) {
		owned, err = pgx.CollectRows(rows, pgx.RowTo[int])
		return err
	})
	err := s.inOne(ctx, s.keeper, &batch)
	if err == nil && fenced {
		err = persistence.ErrFenced
	}
	if err != nil {
		return nil, wrapError("claim shards", err)
	}
	return owned, nil
}

// Release waits for all batches of the member that are in progress. So nothing is written after
// another member owns the shards. Leaving and fencing also lock the row of the cluster, so no shard
// goes to a member that is gone. Release also clears lastRowCache, because other members may now
// extend and delete these tasks.
func (s memberStore) Release(ctx context.Context, incarnation string, transfers []persistence.Transfer) error {
	defer s.memory.forgetAll()
	shards, takers := make([]int, len(transfers)), make([]string, len(transfers))
	for i, t := range transfers {
		shards[i], takers[i] = t.Shard, t.To
	}
	var batch pgx.Batch
	batch.Queue(lockMember+"NO KEY UPDATE", incarnation)
	batch.Queue(lockCluster)
	batch.Queue(`WITH given AS (UPDATE troupe.shards s SET owner = coalesce(m.incarnation, ''), had = owner
			FROM unnest($2::int[], $3::text[]) AS t (shard, taker) LEFT JOIN troupe.members m ON m.incarnation = t.taker AND m.fenced_at = 0
			WHERE s.shard = t.shard AND s.owner = $1 RETURNING s.owner),
		noted AS (INSERT INTO troupe.moves (at, giver, taker, shards) SELECT `+now+`, $1, owner, count(*) FROM given WHERE owner NOT IN ('', $1) GROUP BY owner ORDER BY owner)
		`+newlyChanged+` WHERE EXISTS (SELECT FROM given)`, incarnation, shards, takers)
	batch.Queue(forgetMoves, persistence.Remembered.Milliseconds())
	return wrapError("release shards", s.inOne(ctx, s.keeper, &batch))
}

func (s memberStore) Moves(ctx context.Context) (moves []persistence.Move, err error) {
	err = s.keeper.withConn(ctx, func(conn *pgxpool.Conn) error {
		rows, err := conn.Query(ctx, s.schema.qualify(
			"SELECT at, giver, taker, shards FROM troupe.moves WHERE at > "+now+
				" - $1::bigint ORDER BY n DESC LIMIT $2"),
			persistence.Remembered.Milliseconds(), persistence.MostMoves)
		if err == nil {
			moves, err = pgx.CollectRows(rows, pgx.RowToStructByPos[persistence.Move])
		}
		return err
	})
	slices.Reverse(moves)
	return moves, wrapError("read what has moved", err)
}

// Secret stores a new secret only if none is stored.
func (s memberStore) Secret(ctx context.Context) (secret string, err error) {
	err = s.keeper.withConn(ctx, func(conn *pgxpool.Conn) error {
		return conn.QueryRow(ctx, s.schema.qualify(
			"UPDATE troupe.cluster SET secret = coalesce(secret, $1) RETURNING secret"),
			rand.Text()).Scan(&secret)
	})
	return secret, wrapError("read the secret of the cluster", err)
}

func (s memberStore) ValuesAt(ctx context.Context) (at string, err error) {
	err = s.keeper.withConn(ctx, func(conn *pgxpool.Conn) error {
		return conn.QueryRow(ctx, s.schema.qualify("SELECT values_at FROM troupe.cluster")).Scan(&at)
	})
	return at, wrapError("read where large values are kept", err)
}

func sleepContext(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
