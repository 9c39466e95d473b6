package postgres

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// poolerTime limits the time to answer on a second connection while the first one is open.
const poolerTime = 2 * time.Second

var errShared = errors.New("a pooler between this program and the server shares connections " +
	"between transactions (PgBouncer's pool_mode = transaction or statement). " +
	"Settings, prepared statements and locks belong to a connection, so nothing would be safe: " +
	"use pool_mode = session, or connect to the server directly")

// poolerSetting is the setting that PgBouncer needs; see Open and configureLanes.
const poolerSetting = "ignore_startup_parameters = statement_timeout, lock_timeout, " +
	"idle_in_transaction_session_timeout, default_transaction_isolation, " +
	"plan_cache_mode, jit, enable_seqscan, enable_hashjoin, enable_mergejoin"

// checkPooler refuses a pooler that does not keep one server connection per client. It opens two
// connections. With a suitable pooler they always have the same two server processes.
func checkPooler(ctx context.Context, config *pgx.ConnConfig) error {
	first, err := pgconn.ConnectConfig(ctx, &config.Config)
	if err != nil {
		return explainPooler(err)
	}
	// the answer is known; closing may fail
	defer func() { _ = first.Close(context.WithoutCancel(ctx)) }()
	one, err := processOf(ctx, first)
	if err != nil || one == first.PID() {
		return explainPooler(err)
	}
	ctx, cancel := context.WithTimeout(ctx, poolerTime)
	defer cancel()
	second, err := pgconn.ConnectConfig(ctx, &config.Config)
	if err != nil {
		return nil // there is no second connection, so the first one is reserved for this client
	}
	defer func() { _ = second.Close(context.WithoutCancel(ctx)) }() // as above
	for range 2 {
		two, err := processOf(ctx, second)
		if err != nil {
			return nil // the second connection waits for the first one
		}
		again, err := processOf(ctx, first)
		if err != nil || two == one || again != one {
			return errors.Join(errShared, err)
		}
	}
	return nil
}

// processOf returns the id of the answering server process. It uses its own transaction and no
// prepared statements.
func processOf(ctx context.Context, conn *pgconn.PgConn) (uint32, error) {
	results, err := conn.Exec(ctx, "BEGIN; SELECT pg_backend_pid()::int4; COMMIT").ReadAll()
	if err != nil {
		return 0, err
	}
	pid := uint32(0)
	for _, r := range results {
		for _, row := range r.Rows {
			for _, digit := range row[0] {
				pid = pid*10 + uint32(digit-'0')
			}
		}
	}
	return pid, nil
}

// explainPooler adds advice to errors that only poolers return.
func explainPooler(err error) error {
	e := new(pgconn.PgError)
	switch {
	case !errors.As(err, &e) || e.Code != protocolViolation:
		return err
	case strings.Contains(e.Message, "statement pooling mode"):
		return errors.Join(errShared, err)
	case strings.Contains(e.Message, "unsupported startup parameter"):
		return errors.Join(errors.New("a pooler between this program and the server refuses a "+
			"setting: let it pass those of a member (PgBouncer: pool_mode = session, "+
			poolerSetting+"), or connect to the server directly"), err)
	}
	return err
}
