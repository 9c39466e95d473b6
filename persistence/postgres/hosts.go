package postgres

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// originTimeout limits the query for a server's origin when a setting names several servers.
const originTimeout = time.Second

// hostList holds the servers of a setting in order. Each server has its connection variants, with
// and without TLS.
type hostList [][]*pgconn.FallbackConfig

// hostsOf returns the servers of a setting.
func hostsOf(config *pgconn.Config) (all hostList) {
	at := map[string]int{}
	for _, way := range append([]*pgconn.FallbackConfig{{Host: config.Host, Port: config.Port,
		TLSConfig: config.TLSConfig}}, config.Fallbacks...) {
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

// preferPrimary makes a connection try the primary first if a setting names several servers. It
// asks all servers at once. So an old primary is recognized before anything is written to it, and a
// silent server delays a connection by at most originTimeout.
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
		return nil // no server is known to be a primary
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

// learnOne records the origin of a server. It ignores a server of another database cluster, which
// checkServer refuses later.
func (g *serverGuard) learnOne(o serverOrigin) {
	g.mu.Lock()
	foreign := g.newest.system != "" && g.newest.system != o.system
	g.mu.Unlock()
	if !foreign {
		g.recordOrigin(o)
	}
}

// askOrigin returns the origin of a primary; zero if the server is a standby or does not answer.
func askOrigin(ctx context.Context, config *pgconn.Config, ways []*pgconn.FallbackConfig) (o serverOrigin) {
	one := config.Copy()
	one.Host, one.Port, one.TLSConfig, one.Fallbacks = ways[0].Host, ways[0].Port, ways[0].TLSConfig, ways[1:]
	one.ValidateConnect, one.AfterConnect = nil, nil
	conn, err := pgconn.ConnectConfig(ctx, one)
	if err != nil {
		return serverOrigin{}
	}
	// the answer is known; closing may fail
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if found, standby, err := readOriginOf(ctx, conn); err == nil && !standby {
		return found
	}
	return serverOrigin{}
}
