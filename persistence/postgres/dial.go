package postgres

import (
	"net"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	// connectTime limits the time for making a connection. A connection begun while the network is
	// down is answered late or never, and takes a place in its pool meanwhile.
	connectTime = 5 * time.Second
	// deafTime is how long sent data may stay unacknowledged before the connection counts as dead.
	// The server's kernel acknowledges it, even for a server that is slow or frozen.
	deafTime = 5 * time.Second
	// pingTime is how long an idle connection may take to answer before another one is used.
	pingTime = 2 * time.Second
)

// configureTimeouts makes dead connections fail. Without it nothing would report them, and a caller
// would wait for its whole timeout.
func configureTimeouts(config *pgxpool.Config) {
	if config.ConnConfig.ConnectTimeout == 0 { // a DSN may set its own
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
