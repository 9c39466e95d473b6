// Package membership makes a member one of a cluster: it opens the listeners for other members,
// joins them, and hands everything over when the member leaves.
//
// A nil Membership is that of a member whose store has room for one only. Its methods do nothing.
package membership

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
	"github.com/troupe-engine/troupe/api/transport"
	"github.com/troupe-engine/troupe/cluster"
	"github.com/troupe-engine/troupe/cluster/gossip"
	"github.com/troupe-engine/troupe/persistence"
)

// Options are the settings of a member in a cluster.
type Options struct {
	ID     cluster.Identity // with the secret of the cluster
	Lease  time.Duration    // 0 = the default
	Gossip gossip.Config

	URL    string // where other members reach the API of this one; "" if it does not listen
	Serves bool   // the API listens, or soon will; otherwise members get a listener of their own
	Scheme string // of that listener, http or https
	Listen string // address of the API, whose host the listener uses

	Store  persistence.Store
	Reader *persistence.Reader
	TLS    *transport.Certificates
	Logger *slog.Logger
}

// Membership holds the parts that make a member one of a cluster.
type Membership struct {
	id       cluster.Identity
	ttl      time.Duration // duration of leases; 0 = the default
	url      string        // where other members reach this one
	log      *slog.Logger
	gossip   *gossip.Gossip
	router   *cluster.Router
	keeper   *cluster.Keeper
	service  *cluster.Service
	listener net.Listener // listener for other members, if the API does not serve them
	tls      *transport.Certificates

	joined chan struct{} // closed when there is a keeper
	stop   context.CancelFunc
	work   sync.WaitGroup
}

// Open opens the listeners for other members. The member is started afterwards, because it needs
// the result.
func Open(o Options) (*Membership, error) {
	c := &Membership{id: o.ID, ttl: o.Lease, url: o.URL, log: o.Logger, tls: o.TLS, joined: make(chan struct{})}
	if err := c.openListeners(&o); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	peers := cluster.NewPeers(c.id, o.TLS.Client, c.log)
	c.router = cluster.NewRouter(cluster.RouterConfig{Peers: peers, Journals: o.Store, Plans: o.Reader, TTL: o.Lease})
	peers.Now = c.router.Now
	return c, nil
}

func (c *Membership) openListeners(o *Options) (err error) {
	if c.url == "" || !o.Serves {
		if err = c.openDoor(o); err != nil {
			return fmt.Errorf("listening for other members: %w", err)
		}
	}
	o.Gossip.Known = c.knownGossip
	c.gossip, err = gossip.Listen(o.Gossip)
	return err
}

// URL returns the address where other members reach this one.
func (c *Membership) URL() string { return c.url }

// GossipAddress returns the address of the member's gossip.
func (c *Membership) GossipAddress() string { return c.gossip.Address() }

// ID returns the cluster of the member, and its incarnation once it has joined.
func (c *Membership) ID() cluster.Identity { return c.id }

// Router returns the engine that asks the owner of each task.
func (c *Membership) Router() *cluster.Router { return c.router }

// openDoor listens for other members on a free port of the API's host. A member advertises only an
// address where it listens.
func (c *Membership) openDoor(o *Options) error {
	told, err := url.Parse(cmp.Or(c.url, o.Scheme+"://127.0.0.1"))
	if err != nil {
		return err
	}
	host, _, err := net.SplitHostPort(cmp.Or(o.Listen, "127.0.0.1:0"))
	if err != nil {
		return err
	}
	if c.listener, err = net.Listen("tcp", net.JoinHostPort(host, "0")); err != nil {
		return err
	}
	// the address of a listener is well formed
	_, port, _ := net.SplitHostPort(c.listener.Addr().String())
	c.url = o.Scheme + "://" + net.JoinHostPort(told.Hostname(), port)
	return nil
}

// knownGossip returns the gossip addresses that the store knows.
func (c *Membership) knownGossip() (addresses []string) {
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

// ForwardPulse passes the result of a lease renewal to the keeper.
func (c *Membership) ForwardPulse(p persistence.Pulse) {
	select {
	case <-c.joined:
		c.keeper.Pulse(p)
	default: // the keeper reads the store when it starts
	}
}

// Join adds a member to the cluster: from now on it owns shards.
func (c *Membership) Join(member *actors.Member, store persistence.Members) error {
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
			c.log.Warn("member stopped maintaining its part of the cluster", "error", err)
		}
	})
	return c.gossip.Start(c.id.Incarnation)
}

// serveMembers answers other members if the API does not.
func (c *Membership) serveMembers(ctx context.Context) {
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
		c.log.Error("other members can no longer reach this one", "error", err)
	}
}

// Collectors returns the metrics of the cluster as this member sees it; none if the member is
// alone.
func (c *Membership) Collectors() []prometheus.Collector {
	if c == nil {
		return nil
	}
	return slices.Concat(c.keeper.Collectors(), c.router.Collectors(), c.gossip.Collectors())
}

// Routes returns the routes for other members on the API's listener; none if the member is
// alone.
func (c *Membership) Routes() map[string]http.Handler {
	if c == nil {
		return nil
	}
	return map[string]http.Handler{cluster.Path: c.service}
}

// leaveGrace is how long the hand-off to other members may take.
const leaveGrace = 5 * time.Second

// Leave hands over everything that the member owns while it still answers, so that clients
// notice nothing. It reports whether the member owns nothing any more.
func (c *Membership) Leave() (handedOver bool) {
	if c == nil {
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), leaveGrace)
	defer cancel()
	if err := c.keeper.Leave(ctx); err != nil {
		c.log.Warn("handover incomplete: other members take over the rest when they notice that this member is gone", "error", err)
	}
	return c.keeper.OwnsNothing()
}

// Close releases everything. The member has left.
func (c *Membership) Close() error {
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
