// Package postgres implements the Store on PostgreSQL.
//
// A batch is one statement: one implicit transaction, one round trip, one flush. It takes a share
// lock on the row of the sending incarnation. A takeover changes that row first, so nothing of a
// fenced member is written afterwards. The statement writes the whole batch or nothing. A batch
// that cannot be written as a whole is split in a transaction.
//
// All tables are in a separate schema, which every statement names. If the server has no free
// connection, the store waits. SHAPES.md has the costs of the statements and of alternatives.
package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/troupe-engine/troupe/persistence"
	"github.com/troupe-engine/troupe/persistence/internal/lru"
)

// Options configures the use of a database. The zero value is useful.
type Options struct {
	// Lanes is the number of batches written at the same time; 0 means 2. A server with few
	// connections gets fewer.
	Lanes int
	// Connections is the number of connections for everything except batches, the lease and shard
	// ownership; 0 means 7.
	Connections int
	// Schema is the schema of all tables, which is created if needed; "" means DefaultSchema. Each
	// schema is a separate store.
	Schema string
	// Log receives messages for operators about the store's servers; nil means slog.Default().
	Log *slog.Logger
}

// patience holds the server's timeouts for a connection.
var patience = map[string]time.Duration{
	"statement_timeout":                   30 * time.Second,
	"lock_timeout":                        10 * time.Second,
	"idle_in_transaction_session_timeout": 10 * time.Second,
}

// frozen is how long a lane, or a decision about a key, may be idle within a transaction. Until
// then the member cannot be fenced, or the key cannot be decided.
const frozen = 2 * time.Second

// store is the whole Store. Its parts share one database.
type store struct {
	*database
	approvalStore
	journalStore
	externalStore
	flowStore
	holdStore
	hookStore
	logStore
	memberStore
	permitStore
	queueStore
	scheduleStore
	statStore
	streamStore
	taskStore
	tokenStore
	viewStore
	workerStore
}

func newStore(d *database) *store {
	return &store{
		d, approvalStore{d}, journalStore{d}, externalStore{d}, flowStore{d}, holdStore{d},
		hookStore{d}, logStore{d}, memberStore{d}, permitStore{d}, queueStore{d},
		scheduleStore{d}, statStore{d}, streamStore{d}, taskStore{d}, tokenStore{d}, viewStore{d}, workerStore{d},
	}
}

// database is a database with its pools of connections.
type database struct {
	// There are four pools. A batch must not wait for a slow listing. The lease and shard ownership
	// must not wait for either. The lease must not wait for operations that wait for other members.
	lanes   *connPool
	pool    *connPool
	leases  *connPool
	keeper  *connPool // for members and their shards
	schema  schemaName
	options Options
	types   typeIDs

	statements sync.Map // statements used so far, by shape
	memory     lastRowCache
	larges     snapshotCache
	guard      serverGuard
	witness    historyChecker
}

// Open opens the database of a DSN or URL and migrates its schema.
func Open(ctx context.Context, dsn string, o Options) (persistence.Store, error) {
	if o.Lanes <= 0 {
		o.Lanes = 2
	}
	if o.Connections <= 0 {
		o.Connections = 7
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	name, err := newSchema(o.Schema)
	if err != nil {
		return nil, fmt.Errorf("open the store: %w", err)
	}
	s := &database{schema: name, options: o, larges: snapshotCache{kept: lru.New[*cachedSnapshot](
		keptSnapshots)}, guard: serverGuard{log: o.Log, refused: map[string]bool{}}}
	if err := s.openStore(ctx, dsn); err != nil {
		_ = s.Close() // Close never fails
		return nil, fmt.Errorf("open the store: %w", err)
	}
	return newStore(s), nil
}

func (s *database) openStore(ctx context.Context, dsn string) error {
	config, err := s.parseGuarded(dsn)
	if err != nil {
		return err
	}
	if err := s.guard.preferPrimary(ctx, config.ConnConfig); err != nil {
		return err
	}
	for name := range patience {
		// no timeout, because large tables take long
		orElse(config.ConnConfig.RuntimeParams, name, 0)
	}
	if err := retryWhileFull(ctx, func() error { return checkPooler(ctx, config.ConnConfig) }); err != nil {
		return err
	}
	given, err := readConnectionLimit(ctx, config.ConnConfig)
	if err != nil {
		return err
	}
	size, err := s.options.splitConnections(given)
	if err != nil {
		return err
	}
	if err := retryWhileFull(ctx, func() error { return migrateSchema(ctx, config.ConnConfig, s.schema) }); err != nil {
		return err
	}
	if err := s.connectPools(ctx, dsn, size); err != nil {
		return err
	}
	return s.readTypes(ctx)
}

func (s *database) connectPools(ctx context.Context, dsn string, size poolSizes) (err error) {
	s.options.Lanes = size.lanes
	if size.reads > 0 {
		if s.pool, err = s.newPool(ctx, dsn, size.reads, nil, nil); err != nil {
			return err
		}
	}
	if s.lanes, err = s.newPool(ctx, dsn, size.lanes, s.pool, s.configureLanes); err != nil {
		return err
	}
	if s.leases, err = s.newPool(ctx, dsn, 1, s.pool, s.configureLeases); err != nil {
		return err
	}
	if size.keeper > 0 {
		if s.keeper, err = s.newPool(ctx, dsn, size.keeper, s.pool, s.configureLeases); err != nil {
			return err
		}
	}
	s.pool = cmp.Or(s.pool, s.lanes)
	s.keeper = cmp.Or(s.keeper, s.pool)
	return nil
}

// readTypes reads the ids of the row types of batches, which differ between databases.
func (s *database) readTypes(ctx context.Context) error {
	return s.pool.withConn(ctx, func(conn *pgxpool.Conn) error {
		for kind, k := range kinds {
			if err := conn.QueryRow(ctx, "SELECT $1::text::regtype::oid", s.schema.qualify(k.name)).Scan(&s.types[kind]); err != nil {
				return fmt.Errorf("read the type %s: %w", k.name, err)
			}
		}
		return nil
	})
}

// configureLanes configures the connections of lanes. The plan of a batch must fit any table size,
// even if it was made for a small table (see planAge). So it always uses the index, never
// statistics, and is never compiled.
func (s *database) configureLanes(config *pgxpool.Config) {
	maps.Copy(config.ConnConfig.RuntimeParams, map[string]string{"plan_cache_mode": "force_generic_plan", "jit": "off",
		"enable_seqscan": "off", "enable_hashjoin": "off", "enable_mergejoin": "off"})
	params := config.ConnConfig.RuntimeParams
	orElse(params, "idle_in_transaction_session_timeout", frozen)
	config.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		s.memory.forgetAll()
		s.larges.clearAll()
		return s.checkConnection(ctx, conn, true)
	}
}

// orElse sets a timeout unless the DSN has set it. Defaults of the role or database are ignored,
// because they are meant for other programs.
func orElse(params map[string]string, name string, patience time.Duration) {
	if params[name] == "" {
		params[name] = fmt.Sprint(patience.Milliseconds())
	}
}

// configureLeases allows one more connection while the driver closes a dead one, which takes up to
// 15 s. A lease may last only 2 s.
func (s *database) configureLeases(config *pgxpool.Config) {
	config.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error { return s.checkConnection(ctx, conn, false) }
	config.MaxConns++
	config.MaxConnIdleTime = time.Minute
}

// parseGuarded parses a setting. Its connections refuse servers that must not be written to.
func (s *database) parseGuarded(dsn string) (*pgxpool.Config, error) {
	config, err := parseDSN(dsn)
	if err != nil {
		return nil, err
	}
	wanted := config.ConnConfig.ValidateConnect // from target_session_attrs
	config.ConnConfig.ValidateConnect = func(ctx context.Context, conn *pgconn.PgConn) error {
		if wanted != nil {
			if err := wanted(ctx, conn); err != nil {
				return err
			}
		}
		return s.guard.checkServer(ctx, conn)
	}
	config.BeforeConnect = s.guard.preferPrimary
	config.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error { return s.checkConnection(ctx, conn, true) }
	config.PrepareConn = func(_ context.Context, conn *pgx.Conn) (bool, error) { return s.witness.leadsThere(conn), nil }
	return config, nil
}

// newPool returns a pool of connections.
func (s *database) newPool(ctx context.Context, dsn string, size int, lender *connPool, change func(*pgxpool.Config)) (*connPool, error) {
	config, err := s.parseGuarded(dsn)
	if err != nil {
		return nil, err
	}
	config.MaxConns = int32(size)
	if change != nil {
		change(config)
	}
	params := config.ConnConfig.RuntimeParams
	for name, patience := range patience {
		orElse(params, name, patience)
	}
	params["default_transaction_isolation"] = "read committed" // required by the fence
	conns, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	return newPool(conns, size, lender), nil
}

func (s *database) Ping(ctx context.Context) error {
	return wrapError("ping the store", s.pool.withConn(ctx, func(conn *pgxpool.Conn) error { return conn.Ping(ctx) }))
}

func (s *database) Lanes() int { return s.options.Lanes }

// Close closes all pools after the operations in progress.
func (s *database) Close() error {
	for _, p := range []*connPool{s.lanes, s.pool, s.leases, s.keeper} {
		if p != nil {
			p.conns.Close()
		}
	}
	return nil
}

// Classes and codes of errors; see appendix A of PostgreSQL's manual.
const (
	connectionException  = "08"
	dataException        = "22"
	noResources          = "53"
	operatorIntervention = "57P"
	systemError          = "58"
	programLimitExceeded = "54"
	uniqueViolation      = "23505"
	divisionByZero       = "22012"
	lockNotAvailable     = "55P03"
	queryCanceled        = "57014" // statement_timeout was exceeded
	readOnly             = "25006"
	idleTooLong          = "25P03" // idle within a transaction
	tooManyConnections   = "53300"
	diskFull             = "53100"
	outOfMemory          = "53200"
	protocolViolation    = "08P01"
	undefinedFunction    = "42883"
	notSupported         = "0A000"
	notPermitted         = "42501"
)

// wrapError adds the attempted operation to err. It marks refused values as ErrRefused, and an
// unavailable server as an Outage.
func wrapError(what string, err error) error {
	if err == nil {
		return nil
	}
	if reason := outageReason(err); reason != "" {
		return fmt.Errorf("%s: %w", what, &persistence.Outage{Reason: reason, Err: err})
	}
	if e := new(pgconn.PgError); errors.As(err, &e) {
		switch {
		case e.Code[:2] == dataException, e.Code[:2] == programLimitExceeded:
			return fmt.Errorf("%s: %w: %w", what, persistence.ErrRefused, err)
		case e.Code == uniqueViolation:
			return fmt.Errorf("%s: %w", what, persistence.ErrDuplicate)
		}
	}
	return fmt.Errorf("%s: %w", what, err)
}

// reasons maps a PostgreSQL error code, or a class of codes, to the reason why the server is
// unavailable.
var reasons = map[string]string{
	diskFull:             "its disk is full",
	outOfMemory:          "it has no memory left",
	tooManyConnections:   "it has no connection to give",
	readOnly:             "it is read-only",
	lockNotAvailable:     "another transaction has locked what is to be written",
	queryCanceled:        "it did not finish in time",
	idleTooLong:          "it ended a transaction that stood still",
	connectionException:  "its connection broke",
	noResources:          "it lacks a resource",
	operatorIntervention: "it is starting or shutting down",
	systemError:          "its disk or its system reports an error",
}

// outageReason returns why the server is unavailable: unreachable, gone, full, read-only, or
// blocked for too long. It returns "" for any other error.
func outageReason(err error) string {
	if e := new(pgconn.PgError); errors.As(err, &e) {
		for _, code := range []string{e.Code, e.Code[:min(len(e.Code), 2)], e.Code[:min(len(e.Code), 3)]} {
			if reason := reasons[code]; reason != "" {
				return reason
			}
		}
		return ""
	}
	var server refusedServer
	var refused *pgconn.ConnectError
	var broken *net.OpError
	switch {
	case errors.As(err, &server):
		return server.Error()
	case errors.As(err, &refused):
		return "it cannot be reached"
	case errors.As(err, &broken), pgconn.SafeToRetry(err), errors.Is(err, io.ErrUnexpectedEOF):
		return reasons[connectionException]
	}
	return ""
}
