package postgres

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// originTimeout is how long a server may take to say what it is when a setting names several.
const originTimeout = time.Second

// hostList are the servers of a setting, each with the ways to reach it (with TLS, without), in the
// setting's order.
type hostList [][]*pgconn.FallbackConfig

// hostsOf returns the servers of a setting.
func hostsOf(config *pgconn.Config) (all hostList) {
	at := map[string]int{}
	for _, way := range append([]*pgconn.FallbackConfig{{Host: config.Host, Port: config.Port, TLSConfig: config.TLSConfig}}, config.Fallbacks...) {
		address := hostAddress(way.Host, way.Port)
		i, known := at[address]
		if !known {
			i = len(all)
			at[address], all = i, append(all, nil)
		}
		all[i] = append(all[i], way)
	}
	return all
}

// preferPrimary has a connection try the primary first, where a setting names several servers. All
// are asked at once: so an old primary that has come back is recognized before anything is written
// to it, and one that does not answer delays nobody for longer than originTimeout.
func (g *serverGuard) preferPrimary(ctx context.Context, config *pgx.ConnConfig) error {
	all := hostsOf(&config.Config)
	if len(all) < 2 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, originTimeout)
	defer cancel()
	origins := make([]serverOrigin, len(all))
	var asked sync.WaitGroup
	for i := range all {
		asked.Go(func() { origins[i] = askOrigin(ctx, &config.Config, all[i]) })
	}
	asked.Wait()
	g.mu.Lock()
	g.several = true
	g.mu.Unlock()
	best := 0
	for i, o := range origins {
		if o.timeline > origins[best].timeline {
			best = i
		}
	}
	if origins[best].timeline == 0 {
		return nil // nobody has said to be a primary
	}
	g.learnOne(origins[best])
	ways := all[best]
	for i, more := range all {
		if i != best {
			ways = append(ways, more...)
		}
	}
	config.Host, config.Port, config.TLSConfig, config.Fallbacks = ways[0].Host, ways[0].Port, ways[0].TLSConfig, ways[1:]
	return nil
}

// learnOne learns of a server unless it belongs to another database cluster than those seen before:
// admit refuses it then.
func (g *serverGuard) learnOne(o serverOrigin) {
	g.mu.Lock()
	foreign := g.newest.system != "" && g.newest.system != o.system
	g.mu.Unlock()
	if !foreign {
		g.recordOrigin(o)
	}
}

// askOrigin returns the origin of a primary; zero when the server is none, or does not answer.
func askOrigin(ctx context.Context, config *pgconn.Config, ways []*pgconn.FallbackConfig) (o serverOrigin) {
	one := config.Copy()
	one.Host, one.Port, one.TLSConfig, one.Fallbacks = ways[0].Host, ways[0].Port, ways[0].TLSConfig, ways[1:]
	one.ValidateConnect, one.AfterConnect = nil, nil
	conn, err := pgconn.ConnectConfig(ctx, one)
	if err != nil {
		return serverOrigin{}
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }() // what was asked is known
	if found, standby, err := readOriginOf(ctx, conn); err == nil && !standby {
		return found
	}
	return serverOrigin{}
}
