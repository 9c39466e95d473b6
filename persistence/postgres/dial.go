package postgres

import (
	"net"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	// connectTime is how long a connection may take to be made. One that was begun while nothing
	// arrived is answered late, or never, when the network is back, and has a place in its pool
	// meanwhile.
	connectTime = 5 * time.Second
	// deafTime is how long what was sent may stay without a sign that it has arrived: then the
	// connection has died. Its kernel gives that sign, also for a server that is slow, or frozen.
	deafTime = 5 * time.Second
	// pingTime is how long a connection that was idle may take to answer before another one is
	// used.
	pingTime = 2 * time.Second
)

// configureTimeouts has connections that die without a word noticed: nobody would tell, and whoever
// waits for an answer would wait for all of his time.
func configureTimeouts(config *pgxpool.Config) {
	if config.ConnConfig.ConnectTimeout == 0 { // a DSN may say something else
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
