package postgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"sync"

	"github.com/jackc/pgx/v5/pgconn"
)

// serverOrigin identifies the server of a connection and its timeline. It is zero if the server
// does not report these, like some databases that only resemble PostgreSQL.
type serverOrigin struct {
	system   string // identifier of the database cluster; standbys have the same one
	timeline int64  // grows by one with each promotion of a standby
}

// readOrigin is a query that every role may run. The timeline is the beginning of the name of a WAL
// file.
const readOrigin = `SELECT pg_is_in_recovery(), (SELECT system_identifier FROM pg_control_system())::text,
	CASE WHEN NOT pg_is_in_recovery() THEN ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::bigint END::text`

// originOf is the key for the origin in the data of a connection.
const originOf = "troupe: origin"

// readOriginOf returns the origin of a new connection, and whether the server is a standby.
func readOriginOf(ctx context.Context, conn *pgconn.PgConn) (o serverOrigin, standby bool, err error) {
	result := conn.ExecParams(ctx, readOrigin, nil, nil, nil, nil).Read()
	if e := new(pgconn.PgError); errors.As(result.Err, &e) && (e.Code == undefinedFunction ||
		e.Code == notSupported || e.Code == notPermitted) {
		return serverOrigin{}, false, nil
	}
	if result.Err != nil || len(result.Rows) != 1 {
		return serverOrigin{}, false, fmt.Errorf("ask the server what it is: %w", result.Err)
	}
	row := result.Rows[0]
	if string(row[0]) == "t" {
		return serverOrigin{system: string(row[1])}, true, nil
	}
	timeline, err := strconv.ParseInt(string(row[2]), 10, 64)
	return serverOrigin{string(row[1]), timeline}, false, err
}

// refusedServer is the error of a connection to a server that must not be written to.
type refusedServer struct{ error }

// serverGuard refuses connections to servers that must not be written to. It is safe for concurrent
// use.
type serverGuard struct {
	log *slog.Logger

	mu      sync.Mutex
	newest  serverOrigin
	several bool            // the setting names several servers
	refused map[string]bool // refusals logged so far
}

// recordOrigin records a server that may be written to. It keeps the newest timeline of a database
// cluster.
func (g *serverGuard) recordOrigin(o serverOrigin) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if o.system != g.newest.system || o.timeline > g.newest.timeline {
		g.newest = o
	}
}

// checkServer reads the origin of a new connection and refuses a standby or an old primary. The
// driver then tries the next server of the setting.
func (g *serverGuard) checkServer(ctx context.Context, conn *pgconn.PgConn) error {
	o, standby, err := readOriginOf(ctx, conn)
	if err != nil {
		return err
	}
	if standby {
		return refusedServer{fmt.Errorf("%s is a standby: nothing can be written there before it is promoted", serverOf(conn))}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if why := g.refusalReason(o); why != "" {
		err := refusedServer{fmt.Errorf("%s is not used: %s", serverOf(conn), why)}
		if text := err.Error(); !g.refused[text] {
			g.refused[text] = true
			g.log.Error("store server rejected", "server", serverOf(conn), "error", why)
		}
		return err
	}
	conn.CustomData()[originOf] = o
	return nil
}

// refusalReason returns the reason why a server must not be written to, or "".
func (g *serverGuard) refusalReason(o serverOrigin) string {
	switch {
	case o.system == g.newest.system && o.timeline < g.newest.timeline:
		return fmt.Sprintf("it is an old primary, on timeline %d, and the store has gone on without it, on timeline %d. "+
			"Make it a standby of the newer primary (pg_rewind, pg_basebackup), or stop it", o.timeline, g.newest.timeline)
	case g.several && g.newest.system != "" && o.system != g.newest.system:
		return "it is no copy of the other servers that the store's setting names: it has " +
			"another system identifier. Name one primary and its standbys only"
	}
	return ""
}

// originOfConn returns the origin of a connection that checkServer has read.
func originOfConn(conn *pgconn.PgConn) serverOrigin {
	o, _ := conn.CustomData()[originOf].(serverOrigin)
	return o
}

// serverOf returns the address of a connection's server for display.
func serverOf(conn *pgconn.PgConn) string {
	if addr := conn.Conn().RemoteAddr(); addr != nil && addr.String() != "" {
		return addr.String()
	}
	return "the server"
}

// hostAddress returns the address of a server.
func hostAddress(host string, port uint16) string {
	return net.JoinHostPort(host, strconv.Itoa(int(port)))
}
