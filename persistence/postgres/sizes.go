package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// poolSizes holds the number of connections of each pool, except the one for the lease. With 0,
// reads use the connections of the lanes, and the keeper uses those of reads.
type poolSizes struct{ lanes, keeper, reads int }

// leastConnections is the minimum: one connection for reads and writes, and one for the lease.
const leastConnections = 2

// splitConnections divides the available connections among the pools, up to the numbers of the
// options.
func (o Options) splitConnections(given int) (poolSizes, error) {
	if given < leastConnections {
		return poolSizes{}, fmt.Errorf("the server gives %d connections to this user, and a "+
			"member needs %d: raise max_connections, or the limit of the role or database",
			given, leastConnections)
	}
	given-- // one connection is for the lease
	keeper := 0
	if given >= 3 {
		keeper = 1
	}
	lanes := min(o.Lanes, max(1, (given-keeper)/2))
	return poolSizes{lanes, keeper, min(o.Connections, given-keeper-lanes)}, nil
}

// readConnectionLimit returns the maximum number of connections that the server allows this user,
// in use or not.
func readConnectionLimit(ctx context.Context, config *pgx.ConnConfig) (given int, err error) {
	err = retryWhileFull(ctx, func() error {
		conn, err := pgx.ConnectConfig(ctx, config.Copy())
		if err != nil {
			return err
		}
		defer func() { _ = conn.Close(ctx) }() // the answer is known; closing may fail
		return conn.QueryRow(ctx, `SELECT least(
				current_setting('max_connections')::int - CASE WHEN rolsuper THEN 0 ELSE
					current_setting('superuser_reserved_connections')::int + coalesce(current_setting('reserved_connections', true)::int, 0) END,
				nullif(CASE WHEN rolsuper THEN -1 ELSE rolconnlimit END, -1),
				nullif(CASE WHEN rolsuper THEN -1 ELSE datconnlimit END, -1))
			FROM pg_roles, pg_database WHERE rolname = current_user AND datname = current_database()`).Scan(&given)
	})
	return given, err
}

// retryWhileFull retries while the server has no free connection.
func retryWhileFull(ctx context.Context, try func() error) error {
	for begun := time.Now(); ; {
		err := try()
		if !isFull(err) || time.Since(begun) > fullTime || sleepContext(ctx, fullPause) != nil {
			return err
		}
	}
}
