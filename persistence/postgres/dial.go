package postgres

import (
	"net"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	// connectTime limits the time for a new connection. A connection that begins while the network
	// is down may never be answered, and takes a place in its pool.
	connectTime = 5 * time.Second
	// deafTime is how long sent data may stay unacknowledged before the connection counts as dead.
	// The kernel of the server acknowledges data even if PostgreSQL is slow or frozen.
	deafTime = 5 * time.Second
	// pingTime is how long an idle connection may take to answer before another connection is used.
	pingTime = 2 * time.Second
)

// configureTimeouts makes dead connections fail. Without these timeouts, a caller would wait for
// its whole own timeout.
func configureTimeouts(config *pgxpool.Config) {
	if config.ConnConfig.ConnectTimeout == 0 { // a DSN may set its own timeout
		config.ConnConfig.ConnectTimeout = connectTime
	}
	config.PingTimeout = pingTime
	dialer := &net.Dialer{
		Timeout:         config.ConnConfig.ConnectTimeout,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 2 * deafTime, Interval: deafTime, Count: 3},
		Control:         setUserTimeout,
	}
	config.ConnConfig.DialFunc = dialer.DialContext
}
