package troupe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/troupe-engine/troupe/actors"
	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/cluster"
	"github.com/troupe-engine/troupe/persistence"
)

// clusterMembership holds the parts that make a member one of a cluster.
type clusterMembership struct {
	id       cluster.Identity
	ttl      time.Duration // duration of leases; 0 = the default
	url      string        // where other members reach this one
	log      *slog.Logger
	gossip   *cluster.Gossip
	router   *cluster.Router
	keeper   *cluster.Keeper
	service  *cluster.Service
	listener net.Listener // listener for other members, if the API does not serve them
	tls      *api.Certificates

	joined chan struct{} // closed when there is a keeper
	stop   context.CancelFunc
	work   sync.WaitGroup
}

// newMembership opens the listeners for other members. The member is started afterwards, because it
// needs the result.
func (e *Engine) newMembership(ctx context.Context) (*clusterMembership, error) {
	c := &clusterMembership{id: cluster.Identity{Cluster: e.cfg.clusterName()}, ttl: e.cfg.Lease,
		log: e.cfg.Logger, tls: e.tls, joined: make(chan struct{})}
	if err := c.openCluster(ctx, e); err != nil {
		return nil, errors.Join(err, c.close())
	}
	peers := cluster.NewPeers(c.id, e.tls.Client, c.log)
	c.router = cluster.NewRouter(cluster.RouterConfig{Peers: peers, Journals: e.store, Plans: e.reader, TTL: e.cfg.Lease})
	peers.Now = c.router.Now
	return c, nil
}

func (c *clusterMembership) openCluster(ctx context.Context, e *Engine) (err error) {
	if c.id.Secret, err = e.cfg.clusterSecret(ctx, e.store); err != nil {
		return err
	}
	if c.url, err = e.cfg.advertiseURL(); err != nil {
		return err
	}
	if c.url == "" || !e.serves {
		if err = c.openDoor(&e.cfg); err != nil {
			return fmt.Errorf("listening for other members: %w", err)
		}
	}
	settings, err := e.cfg.gossipConfig()
	if err != nil {
		return err
	}
	settings.Known = c.knownGossip
	c.gossip, err = cluster.ListenGossip(settings)
	return err
}

// openDoor listens for other members on a free port of the API's host. A member advertises only an
// address where it listens.
func (c *clusterMembership) openDoor(cfg *Config) error {
	told, err := url.Parse(cmp.Or(c.url, cfg.Scheme()+"://127.0.0.1"))
	if err != nil {
		return err
	}
	host, _, err := net.SplitHostPort(cmp.Or(cfg.Listen, "127.0.0.1:0"))
	if err != nil {
		return err
	}
	if c.listener, err = net.Listen("tcp", net.JoinHostPort(host, "0")); err != nil {
		return err
	}
	// the address of a listener is well formed
	_, port, _ := net.SplitHostPort(c.listener.Addr().String())
	c.url = cfg.Scheme() + "://" + net.JoinHostPort(told.Hostname(), port)
	return nil
}

// knownGossip returns the gossip addresses that the store knows.
func (c *clusterMembership) knownGossip() (addresses []string) {
	select {
	case <-c.joined:
	default:
		return nil
	}
	for _, m := range c.keeper.Current().Living() {
		if m.Gossip != "" {
			addresses = append(addresses, m.Gossip)
		}
	}
	return addresses
}

// forwardPulse passes the result of a lease renewal to the keeper.
func (c *clusterMembership) forwardPulse(p persistence.Pulse) {
	select {
	case <-c.joined:
		c.keeper.Pulse(p)
	default: // the keeper reads the store when it starts
	}
}

// joinCluster adds a member to the cluster: from now on it owns shards.
func (c *clusterMembership) joinCluster(member *actors.Member, store persistence.Members) error {
	c.id.Incarnation = member.Incarnation()
	c.keeper = cluster.NewKeeper(cluster.KeeperConfig{Store: store, Local: member, TTL: c.ttl,
		Hints: c.gossip.Hints(), Announce: c.gossip.Announce, Log: c.log})
	c.service = cluster.NewService(member, c.id, c.log)
	c.router.Start(c.id.Incarnation, member, c.keeper)
	close(c.joined)
	ctx, stop := context.WithCancel(context.Background())
	c.stop = stop
	if c.listener != nil {
		c.work.Go(func() { c.serveMembers(ctx) })
	}
	c.work.Go(func() {
		if err := c.keeper.Run(ctx); err != nil { // the member itself ends when its lease runs out
			c.log.Warn("the member keeps its part of the cluster no longer", "error", err)
		}
	})
	return c.gossip.Start(c.id.Incarnation)
}

// serveMembers answers other members if the API does not.
func (c *clusterMembership) serveMembers(ctx context.Context) {
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	members := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c.tls.Lacks(r) {
			http.Error(w, "a client certificate is needed", http.StatusForbidden)
			return
		}
		c.service.ServeHTTP(w, r)
	})
	srv := &http.Server{Handler: members, Protocols: &protocols, ReadHeaderTimeout: 10 * time.Second,
		HTTP2:    &http.HTTP2Config{SendPingTimeout: 10 * time.Second, PingTimeout: 10 * time.Second},
		ErrorLog: slog.NewLogLogger(c.log.Handler(), slog.LevelWarn), BaseContext: func(net.Listener) context.Context { return ctx }}
	// connected members notice at once that this one is gone
	defer context.AfterFunc(ctx, func() { _ = srv.Close() })()
	serve := srv.Serve
	if c.tls.Serves() {
		srv.TLSConfig = c.tls.Server()
		serve = func(l net.Listener) error { return srv.ServeTLS(l, "", "") }
	}
	if err := serve(c.listener); err != nil && ctx.Err() == nil {
		c.log.Error("other members cannot reach this one any longer", "error", err)
	}
}

// metricCollectors returns the metrics of the cluster as this member sees it; none if the member is
// alone.
func (c *clusterMembership) metricCollectors() []prometheus.Collector {
	if c == nil {
		return nil
	}
	return slices.Concat(c.keeper.Collectors(), c.router.Collectors(), c.gossip.Collectors())
}

// memberRoutes returns the routes for other members on the API's listener; none if the member is
// alone.
func (c *clusterMembership) memberRoutes() map[string]http.Handler {
	if c == nil {
		return nil
	}
	return map[string]http.Handler{cluster.Path: c.service}
}

// leaveGrace is how long the hand-off to other members may take.
const leaveGrace = 5 * time.Second

// leaveCluster hands over everything that the member owns while it still answers, so that clients
// notice nothing. It reports whether the member owns nothing any more.
func (c *clusterMembership) leaveCluster() (handedOver bool) {
	if c == nil {
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), leaveGrace)
	defer cancel()
	if err := c.keeper.Leave(ctx); err != nil {
		c.log.Warn("not everything was handed over: the others take it when they see that this member has gone", "error", err)
	}
	return c.keeper.OwnsNothing()
}

// close releases everything. The member has left.
func (c *clusterMembership) close() error {
	if c == nil {
		return nil
	}
	if c.gossip != nil {
		c.gossip.Leave()
		c.gossip.Close()
	}
	if c.stop != nil {
		c.stop()
	}
	if c.router != nil {
		c.router.Close()
	}
	c.work.Wait()
	if c.listener == nil {
		return nil
	}
	if err := c.listener.Close(); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}
