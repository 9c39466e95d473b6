package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/internal/testing/errands"
	"github.com/troupe-engine/troupe/internal/testing/pgtest"
)

// takeover is a cluster whose store has moved to a standby that was behind.
type takeover struct {
	*testCluster
	rng      *rand.Rand
	old      *pgtest.Server // the primary before
	frozen   bool           // it was frozen, not killed
	tickers  []string       // tasks that move, from before
	lost     []string       // tasks that were acknowledged, which the standby never got
	kept     []string       // tasks that were acknowledged after the takeover
	noticed  time.Duration  // from the takeover until the last member knew
	comeback time.Duration  // the slowest refusal of a member that was led to the old primary
}

// errandsOfATakeover are done while the old primary comes back.
const errandsOfATakeover = 60

// readSeed returns the seed of a test that has no plan.
func readSeed(t *testing.T) uint64 {
	seed, given := number(t, "TROUPE_FAULTS_SEED")
	if !given {
		seed = 1
		if strict() {
			seed = rand.Uint64N(1_000_000)
		}
	}
	t.Logf("TROUPE_FAULTS_SEED=%d", seed)
	return seed
}

// newTakeover has a standby take over that lacks the last transactions, and waits until every
// member goes on with it.
func newTakeover(t *testing.T, seed uint64) *takeover {
	k := &takeover{testCluster: newMovableCluster(t, theMembers), rng: rand.New(rand.NewPCG(seed, theMembers))}
	k.open(t.Context())
	k.tickers = k.startTickers(t.Context(), manyTickers)
	require.NoError(t, k.await(t.Context(), "every member owns tasks", func(ctx context.Context) error { return k.spread(ctx, k.tickers) }))
	standby, err := k.server.StartStandby(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, standby.Stop()) })
	require.NoError(t, standby.AwaitCaughtUp(t.Context(), k.server))
	require.NoError(t, standby.Detach(t.Context()))
	k.awaitGrowth(t.Context())
	k.lost = k.startTickersNamed(t.Context(), "lost")

	k.old, k.frozen = k.server, k.rng.IntN(2) == 0
	if k.frozen {
		require.NoError(t, k.old.Freeze())
	} else {
		require.NoError(t, k.old.Kill())
	}
	require.NoError(t, standby.Promote(t.Context()))
	k.server = standby
	k.front.leadAll(standby)
	k.log.write("seed %d: the standby takes over, the old primary is frozen: %v", seed, k.frozen)
	begun := time.Now()
	for _, m := range k.members {
		require.NoError(t, k.await(t.Context(), m.name+" has noticed", func(context.Context) error { return m.hasNoticed() }))
	}
	k.noticed = time.Since(begun)
	require.NoError(t, k.settle(t.Context()))
	k.awaitGrowth(t.Context())
	for _, m := range k.members {
		k.requireStatus(t.Context(), m, http.StatusNotFound, k.lost)
	}
	k.kept = k.startTickersNamed(t.Context(), "kept")
	return k
}

// awaitGrowth waits until all tickers have moved.
func (k *takeover) awaitGrowth(ctx context.Context) {
	before, err := k.lengths(ctx, k.tickers)
	require.NoError(k.t, err)
	require.NoError(k.t, k.await(ctx, "all tasks move", func(ctx context.Context) error { return k.haveGrown(ctx, before) }))
}

// startTickersNamed starts some tickers under a name.
func (k *takeover) startTickersNamed(ctx context.Context, name string) (tasks []string) {
	for i := range theMembers * 4 {
		started, err := k.client.Start(ctx, fmt.Sprintf("%s-%d", name, i), "ticker", map[string]any{})
		require.NoError(k.t, err)
		require.True(k.t, started.Created)
		tasks = append(tasks, started.ID)
	}
	return tasks
}

// requireStatus requires that a member answers so when it is asked for tasks.
func (k *takeover) requireStatus(ctx context.Context, m *member, want int, tasks []string) {
	client := errands.NewClient(m.site().base())
	defer client.HTTP.CloseIdleConnections()
	for _, id := range tasks {
		status, answer, err := client.Send(ctx, errands.Request{Method: "GET", Path: "/v1/tasks/" + id})
		require.NoError(k.t, err)
		require.Equal(k.t, want, status, "%s at %s: %s", id, m.name, answer)
	}
}

// resumeOldPrimary has the old primary run again. Nothing is under way there when it returns.
func (k *takeover) resumeOldPrimary(ctx context.Context) error {
	if !k.frozen {
		return k.old.Restart(ctx)
	}
	if err := k.old.Thaw(); err != nil {
		return err
	}
	return k.await(ctx, "the old primary has ended what it had begun", func(ctx context.Context) error {
		return readFrom(ctx, k.old, func(conn *pgx.Conn) error {
			var n int
			err := conn.QueryRow(ctx, "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'member-%'").Scan(&n)
			if err == nil && n > 0 {
				err = fmt.Errorf("%d connections of members are there", n)
			}
			return err
		})
	})
}

// misleadMembers leads some members to the old primary for a time. It returns an error unless they
// refuse new tasks, do not report tasks as gone that only the newer primary has, and write nothing
// there. A member that exits meanwhile stays down, since it would start without knowing of the
// newer primary.
func (k *takeover) misleadMembers(ctx context.Context, some []*member, length time.Duration) error {
	if err := errors.Join(k.resumeOldPrimary(ctx), k.settle(ctx)); err != nil {
		return err
	}
	for _, m := range some {
		m.take()
	}
	before, err := readContents(ctx, k.old)
	if err != nil {
		return err
	}
	for _, m := range some {
		k.log.write("%s is led to the old primary", m.name)
		k.front.leadHost(m.i, k.old)
	}
	for _, m := range some {
		took, err := k.refusesSoon(ctx, m)
		if err != nil {
			return err
		}
		k.comeback = max(k.comeback, took)
		if err := k.checkKeptTasks(ctx, m); err != nil {
			return err
		}
	}
	pause(ctx, length)
	after, err := readContents(ctx, k.old)
	if err != nil {
		return err
	}
	for table := range after {
		if before[table] != after[table] {
			return fmt.Errorf("table %s of the old primary was written to", table)
		}
	}
	return nil
}

// checkKeptTasks returns an error if a member says that a task is not there which the newer
// primary has.
func (k *takeover) checkKeptTasks(ctx context.Context, m *member) error {
	client := errands.NewClient(m.site().base())
	defer client.HTTP.CloseIdleConnections()
	for _, id := range k.kept {
		status, answer, err := client.Send(ctx, errands.Request{Method: "GET", Path: "/v1/tasks/" + id})
		if err == nil && status == http.StatusNotFound {
			return fmt.Errorf("%s takes task %s for gone: %s", m.name, id, answer)
		}
	}
	return nil
}

// readFrom reads the database of a server.
func readFrom(ctx context.Context, s *pgtest.Server, read func(*pgx.Conn) error) error {
	conn, err := pgx.Connect(ctx, s.DSN(database))
	if err != nil {
		return err
	}
	return errors.Join(read(conn), conn.Close(ctx))
}

// readContents returns a digest of each table of the store that a server has.
func readContents(ctx context.Context, s *pgtest.Server) (tables map[string]string, err error) {
	tables = map[string]string{}
	return tables, readFrom(ctx, s, func(conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, "SELECT relname::text FROM pg_class WHERE relnamespace = 'troupe'::regnamespace AND relkind = 'r'")
		if err != nil {
			return err
		}
		names, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			return err
		}
		for _, name := range names {
			digest := ""
			query := "SELECT coalesce(md5(string_agg(line, '' ORDER BY line)), '') FROM (SELECT " +
				"md5(t::text) AS line FROM troupe." + pgx.Identifier{name}.Sanitize() + " t) AS lines"
			if err := conn.QueryRow(ctx, query).Scan(&digest); err != nil {
				return err
			}
			tables[name] = digest
		}
		return nil
	})
}

// endTickers ends and deletes all tickers, so that only errands are left.
func (k *takeover) endTickers(ctx context.Context, tasks ...[]string) {
	k.stopTickers(ctx, slices.Concat(tasks...))
	require.NoError(k.t, k.client.Insist(ctx, errands.Request{Method: "DELETE", Path: "/v1/flows/ticker?tasks=true"}, &struct{}{}))
}

func TestAnOldPrimaryThatComesBackIsNotWrittenToAndNothingIsLostByIt(t *testing.T) {
	seed := readSeed(t)
	k := newTakeover(t, seed)
	var misled []*member
	returns := fault{after: between(k.rng, 300*time.Millisecond, 1500*time.Millisecond), length: between(k.rng, shortest, longest)}
	returns.kind = kind{name: "the old primary comes back", happen: func(ctx context.Context, c *testCluster, f fault) error {
		misled = slices.Clone(c.members)
		k.rng.Shuffle(len(misled), func(i, j int) { misled[i], misled[j] = misled[j], misled[i] })
		misled = misled[:1+k.rng.IntN(len(misled))]
		err := k.misleadMembers(ctx, misled, f.length)
		k.front.leadAll(k.server)
		return errors.Join(err, each(len(misled), func(i int) error { return misled[i].resume() }))
	}}
	e := k.storm(errands.Draw(seed, errandsOfATakeover), []fault{returns})
	require.False(t, t.Failed())
	k.awaitGrowth(t.Context())
	for _, m := range k.members {
		k.requireStatus(t.Context(), m, http.StatusOK, k.kept)
		k.requireStatus(t.Context(), m, http.StatusNotFound, k.lost)
	}
	k.endTickers(t.Context(), k.tickers, k.kept)
	f := k.finish(e)
	k.world.Kept(t, f)
	k.figure(map[string]any{"figure": "a standby that was behind takes over, and the old " +
		"primary comes back", "seed": seed, "old_primary_frozen": k.frozen,
		"noticed_ms": k.noticed.Milliseconds(),
		"tasks_lost": len(k.lost), "members_led_to_the_old_one": len(misled), "refused_ms": k.comeback.Milliseconds()})
}

// Members that run refuse the old primary for good, so going back to it takes a restart.
func TestMembersThatAreRestartedOnTheOldPrimaryGoOnWhereItWas(t *testing.T) {
	seed := readSeed(t)
	k := newTakeover(t, seed)
	require.NoError(t, k.misleadMembers(t.Context(), k.members, between(k.rng, 0, shortest)))
	for _, m := range k.members {
		m.kill()
	}
	k.server = k.old
	for _, m := range k.members {
		require.NoError(t, m.start())
	}
	require.NoError(t, k.settle(t.Context()))
	k.tickers = slices.Concat(k.tickers, k.lost)
	k.awaitGrowth(t.Context())
	for _, m := range k.members {
		k.requireStatus(t.Context(), m, http.StatusOK, k.lost)
		k.requireStatus(t.Context(), m, http.StatusNotFound, k.kept)
	}
	again := k.startTickersNamed(t.Context(), "kept")
	e := k.storm(errands.Draw(seed, errandsOfATakeover), nil)
	k.endTickers(t.Context(), k.tickers, again)
	k.world.Kept(t, k.finish(e))
	k.figure(map[string]any{"figure": "members are restarted on the old primary after a takeover",
		"seed": seed, "refused_ms": k.comeback.Milliseconds()})
}
