package troupe

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/testing/pgtest"
)

// shop is the database of a program whose engine stores its tasks there, too.
type shop struct {
	*Engine
	dsn  string
	conn *pgx.Conn
	ran  chan string // ids of tasks that ran
}

const shipping = `{"start":"a","nodes":{"a":{"func":"ship"}}}`

func openShop(t *testing.T) *shop {
	s := &shop{dsn: pgtest.DSN(t), ran: make(chan string, 100)}
	var err error
	s.conn, err = pgx.Connect(t.Context(), s.dsn)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.conn.Close(context.Background())) })
	s.Engine = s.member(t)
	require.NoError(t, s.Publish(t.Context(), "shipping", []byte(shipping)))
	_, err = s.conn.Exec(t.Context(), "CREATE SCHEMA app; CREATE TABLE app.orders (task text); "+
		"CREATE TABLE app.tasks (id int); CREATE TABLE app.wakes (id int)")
	require.NoError(t, err)
	return s
}

// member opens a member of the shop.
func (s *shop) member(t *testing.T) *Engine {
	t.Helper()
	e := open(t, s.dsn)
	t.Cleanup(func() { _ = e.Close() }) // one is killed
	Handle(e, "ship", func(ctx context.Context, _ any) (any, error) {
		s.ran <- JobFrom(ctx).Task
		return nil, nil
	})
	return e
}

// begin begins a transaction like the shop's programs, which do not know our tables.
func (s *shop) begin(t *testing.T) pgx.Tx {
	t.Helper()
	tx, err := s.conn.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), "SET LOCAL search_path TO app, pg_catalog")
	require.NoError(t, err)
	return tx
}

func (s *shop) count(t *testing.T, query string) (n int) {
	t.Helper()
	require.NoError(t, s.conn.QueryRow(t.Context(), query).Scan(&n))
	return n
}

func TestATaskOfATransactionExistsAfterTheCommit(t *testing.T) {
	s := openShop(t)
	other := s.member(t)
	_, err := other.Member(t.Context())
	require.NoError(t, err)
	for range 20 { // some of them belong to the other member
		tx := s.begin(t)
		id, err := s.StartTx(t.Context(), tx, "shipping", map[string]int{"n": 1}, WithLabels(map[string]string{"a": "b"}))
		require.NoError(t, err)
		_, err = tx.Exec(t.Context(), "INSERT INTO orders VALUES ($1)", id)
		require.NoError(t, err)
		_, err = s.Task(t.Context(), id)
		require.ErrorIs(t, err, ErrNotFound, "nobody sees it before")
		require.NoError(t, tx.Commit(t.Context()))
		task, err := s.Task(t.Context(), id)
		require.NoError(t, err)
		require.JSONEq(t, `{"n":1}`, string(task.Params))
		require.Equal(t, map[string]string{"a": "b"}, task.Labels)
		result, err := s.Wait(t.Context(), id)
		require.NoError(t, err)
		require.Equal(t, flow.TaskCompleted, result.Status)
		require.Equal(t, id, <-s.ran)
	}
	require.Empty(t, s.ran, "each of them once")
	require.Equal(t, 20, s.count(t, "SELECT count(*) FROM app.orders"))
}

func TestATaskOfARolledBackTransactionNeverExists(t *testing.T) {
	s := openShop(t)
	tx := s.begin(t)
	id, err := s.StartTx(t.Context(), tx, "shipping", nil)
	require.NoError(t, err)
	require.NoError(t, tx.Rollback(t.Context()))
	_, err = s.Task(t.Context(), id)
	require.ErrorIs(t, err, ErrNotFound)
	tables, err := s.conn.Query(t.Context(),
		"SELECT relid::regclass::text FROM pg_stat_user_tables WHERE relname IN ('tasks', "+
			"'task_events', 'wakes', 'permits') AND schemaname <> 'app'")
	require.NoError(t, err)
	names, err := pgx.CollectRows(tables, pgx.RowTo[string])
	require.NoError(t, err)
	require.Len(t, names, 4)
	for _, name := range names {
		require.Zero(t, s.count(t, "SELECT count(*) FROM "+name), name)
	}
}

func TestAFlowIsNotDeletedDuringATransactionThatStartsItsTask(t *testing.T) {
	s := openShop(t)
	// locks that other members hold while this one joins are released sooner
	s.dsn += "&lock_timeout=1000"
	impatient := s.member(t)
	tx := s.begin(t)
	_, err := s.StartTx(t.Context(), tx, "shipping", nil)
	require.NoError(t, err)
	_, err = impatient.DeleteFlow(t.Context(), "shipping", true)
	require.ErrorIs(t, err, ErrConflict)
	require.ErrorContains(t, err, "a transaction in which a task of it was started (StartTx) is "+
		"still open: commit it or roll it back, and delete the flow again")
	require.NoError(t, tx.Rollback(t.Context()))
	_, err = impatient.DeleteFlow(t.Context(), "shipping", true)
	require.NoError(t, err)
}

func TestAKeyMeansTheSameTaskInAndOutsideOfTransactions(t *testing.T) {
	s := openShop(t)
	tx := s.begin(t)
	id, err := s.StartTx(t.Context(), tx, "shipping", nil, WithKey("order 7"))
	require.NoError(t, err)
	again, err := s.StartTx(t.Context(), tx, "shipping", nil, WithKey("order 7"))
	require.NoError(t, err)
	require.Equal(t, id, again)
	_, err = s.StartTx(t.Context(), tx, "shipping", map[string]int{"n": 1}, WithKey("order 7"))
	require.ErrorIs(t, err, ErrConflict)
	require.NoError(t, tx.Commit(t.Context()))
	started, err := s.Start(t.Context(), "shipping", nil, WithKey("order 7"))
	require.NoError(t, err)
	require.Equal(t, id, started)
	_, err = s.Wait(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, id, <-s.ran)
	require.NoError(t, s.Publish(t.Context(), "shipping", []byte(`{"inputs":{"n":"int"},"start":"a","nodes":{"a":{"func":"ship"}}}`)))
	tx = s.begin(t)
	again, err = s.StartTx(t.Context(), tx, "shipping", nil, WithKey("order 7"))
	require.NoError(t, err, "the newest version takes other inputs")
	require.Equal(t, id, again)
	_, err = s.StartTx(t.Context(), tx, "shipping", nil, WithKey("order 8"))
	require.ErrorIs(t, err, ErrInvalid)
	require.NoError(t, tx.Commit(t.Context()))
	require.Empty(t, s.ran)
}

func TestATransactionContinuesAfterARejectedStart(t *testing.T) {
	s := openShop(t)
	tx := s.begin(t)
	_, err := s.StartTx(t.Context(), tx, "nope", nil)
	require.ErrorIs(t, err, ErrNotFound)
	_, err = s.StartTx(t.Context(), tx, "shipping", []int{1})
	require.ErrorIs(t, err, ErrInvalid, "params of a graph are an object")
	id, err := s.StartTx(t.Context(), tx, "shipping", nil)
	require.NoError(t, err)
	require.NoError(t, tx.Commit(t.Context()))
	require.Equal(t, id, <-s.ran)
}

func TestTasksOfATransactionWaitForKeysLikeOthers(t *testing.T) {
	s := openShop(t)
	require.NoError(t, s.Publish(t.Context(), "one",
		[]byte(`{"concurrency":{"limit":1},"start":"ask","nodes":{"ask":{"kind":"approval","params":{"approval_key":"$shared.ok"}}}}`)))
	tx := s.begin(t)
	var ids []string
	for range 3 {
		id, err := s.StartTx(t.Context(), tx, "one", nil)
		require.NoError(t, err)
		ids = append(ids, id)
	}
	require.NoError(t, tx.Commit(t.Context()))
	for range ids { // in the order in which they were started
		var running []string
		require.Eventually(t, func() bool {
			running = nil
			for _, id := range ids {
				task, err := s.Task(t.Context(), id)
				require.NoError(t, err)
				if task.Node == "ask" && len(task.Active) > 0 && task.EndedAt.IsZero() {
					running = append(running, id)
				}
			}
			require.LessOrEqual(t, len(running), 1)
			return len(running) == 1
		}, 30*time.Second, 5*time.Millisecond)
		require.NoError(t, s.Signal(t.Context(), running[0], "ok", true))
		_, err := s.Wait(t.Context(), running[0])
		require.NoError(t, err)
	}
}

func TestTasksOfATransactionAreCountedOnceByTheirOwner(t *testing.T) {
	s := openShop(t)
	other := s.member(t)
	_, err := other.Member(t.Context())
	require.NoError(t, err)
	require.NoError(t, s.Publish(t.Context(), "one", []byte(`{"concurrency":{"limit":1},"start":"a","nodes":{"a":{"func":"ship"}}}`)))
	const each = 10
	var ids []string
	tx := s.begin(t)
	for range each {
		// all tasks of the flow one, except the first, wait at first
		for _, flow := range []string{"shipping", "one"} {
			id, err := s.StartTx(t.Context(), tx, flow, nil)
			require.NoError(t, err)
			ids = append(ids, id)
		}
	}
	require.NoError(t, tx.Commit(t.Context()))
	for _, id := range ids {
		_, err := s.Wait(t.Context(), id)
		require.NoError(t, err)
	}
	require.Equal(t, 2.*each, startedAt(t, s.Engine)+startedAt(t, other))
	for _, flow := range []string{"shipping", "one"} {
		var told *FlowStats
		require.Eventually(t, func() bool {
			told, err = s.FlowStats(t.Context(), flow, StatsOf{Window: "1h"})
			require.NoError(t, err)
			return told.Tasks.Completed == each
		}, 30*time.Second, 50*time.Millisecond)
		require.EqualValues(t, each, told.Tasks.Started, flow)
	}
}

// startedAt returns how many tasks a member has started, by its metrics.
func startedAt(t *testing.T, e *Engine) (n float64) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(e.member.Collectors()...)
	all, err := registry.Gather()
	require.NoError(t, err)
	for _, family := range all {
		if family.GetName() == "troupe_tasks_started_total" {
			for _, m := range family.GetMetric() {
				n += m.GetCounter().GetValue()
			}
		}
	}
	return n
}

func TestASuccessorStartsATaskIfTheMemberIsKilledAfterTheCommit(t *testing.T) {
	s := openShop(t)
	tx := s.begin(t)
	id, err := s.StartTx(t.Context(), tx, "shipping", nil)
	require.NoError(t, err)
	successor := s.member(t)
	killed, err := s.localMember(t.Context())
	require.NoError(t, err)
	s.end() // so that it does not start a new life
	killed.Kill()
	require.NoError(t, tx.Commit(t.Context()))
	result, err := waitFor(t.Context(), successor, id)
	require.NoError(t, err)
	require.Equal(t, flow.TaskCompleted, result.Status)
	require.Equal(t, id, <-s.ran)
	require.Empty(t, s.ran)
}

// waitFor waits for a task whose owner is dead but not fenced yet.
func waitFor(ctx context.Context, e *Engine, id string) (*Result, error) {
	for {
		result, err := e.Wait(ctx, id)
		if !errors.Is(err, ErrBusy) {
			return result, err
		}
	}
}

func TestStartTxRejectsATransactionOnAnotherDatabase(t *testing.T) {
	s, other := openShop(t), pgtest.DSN(t)
	conn, err := pgx.Connect(t.Context(), other)
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(context.Background())) }()
	tx, err := conn.Begin(t.Context())
	require.NoError(t, err)
	_, err = s.StartTx(t.Context(), tx, "shipping", nil)
	require.ErrorContains(t, err, "the transaction is on a database that has no tables of Troupe in schema")
	require.NoError(t, tx.Rollback(t.Context()))

	lite := open(t, "sqlite:"+filepath.Join(t.TempDir(), "x.db"))
	defer func() { require.NoError(t, lite.Close()) }()
	_, err = lite.StartTx(t.Context(), nil, "shipping", nil)
	require.ErrorIs(t, err, errors.ErrUnsupported)
	require.ErrorContains(t, err, "use a store of PostgreSQL")
}

func TestLargeParamsOfStartTxAreInTheBucketBeforeTheCommit(t *testing.T) {
	store, folder := pgtest.DSN(t), t.TempDir()
	e := making(t, Config{Store: store, PayloadThreshold: 500, Retention: -1, PayloadStore: "file://" + filepath.ToSlash(folder)})
	conn, err := pgx.Connect(t.Context(), store)
	require.NoError(t, err)
	defer conn.Close(context.Background())
	begin := func() (string, pgx.Tx) {
		tx, err := conn.Begin(t.Context())
		require.NoError(t, err)
		id, err := e.StartTx(t.Context(), tx, "make", map[string]string{"text": long, "small": "x"})
		require.NoError(t, err)
		require.Len(t, objectsOf(t, folder, id), 1)
		return id, tx
	}
	id, tx := begin()
	require.NoError(t, tx.Commit(t.Context()))
	result, err := e.Wait(t.Context(), id)
	require.NoError(t, err)
	require.EqualValues(t, flow.TaskCompleted, result.Status, result.Error)
	sizes, err := e.stores.Newest.Sizes(t.Context(), []string{id})
	require.NoError(t, err)
	require.Less(t, sizes[0], int64(3000))
	task, err := e.Task(t.Context(), id)
	require.NoError(t, err)
	require.Contains(t, string(must(json.Marshal(task.Params))), "long and")

	never, tx := begin()
	require.NoError(t, tx.Rollback(t.Context()))
	_, err = e.stores.Values.Sweep(t.Context(), time.Now().Add(time.Minute).UnixMilli())
	require.NoError(t, err)
	require.Empty(t, objectsOf(t, folder, never), "nothing refers to it")
	require.NotEmpty(t, objectsOf(t, folder, id))
}
