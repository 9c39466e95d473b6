// Package membership makes a member part of a cluster. It opens the listeners for other members,
// joins the cluster, and hands everything over when the member leaves.
//
// A nil Membership belongs to a member whose store supports a single member. Its methods do
// nothing.
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
	ID     cluster.Identity // identity in the cluster, with the secret of the cluster
	Lease  time.Duration    // duration of leases; 0 for the default
	Gossip gossip.Config

	URL string // address of the API for other members; "" if it does not listen

	Serves bool   // the API listens, or soon will; otherwise members get a listener of their own
	Scheme string // scheme of that listener, http or https
	Listen string // address of the API, whose host the listener uses

	Store  persistence.Store
	Reader *persistence.Reader
	TLS    *transport.Certificates
	Logger *slog.Logger
}

// Membership holds the parts that connect a member with its cluster.
type Membership struct {
	id       cluster.Identity
	ttl      time.Duration // duration of leases; 0 for the default
	url      string        // address at which other members reach this member
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

// Open opens the listeners for other members. The member is created afterwards, because it needs
// the Membership.
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

// URL returns the address at which other members reach this member.
func (c *Membership) URL() string { return c.url }

// GossipAddress returns the address of the member's gossip.
func (c *Membership) GossipAddress() string { return c.gossip.Address() }

// ID returns the identity of the member in its cluster. The incarnation is set after Join.
func (c *Membership) ID() cluster.Identity { return c.id }

// Router returns the engine that forwards each request to the owner of its task.
func (c *Membership) Router() *cluster.Router { return c.router }

// openDoor listens for other members on a free port of the API's host. The member advertises only
// an address on which it listens.
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

// knownGossip returns the gossip addresses of the members in the store.
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

// ForwardPulse passes the result of a lease renewal to the keeper. Before Join it does nothing.
func (c *Membership) ForwardPulse(p persistence.Pulse) {
	select {
	case <-c.joined:
		c.keeper.Pulse(p)
	default: // the keeper reads the store when it starts
	}
}

// Join adds the member to the cluster. From then on the member owns shards.
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
		if err := c.keeper.Run(ctx); err != nil { // the member itself ends when its lease expires
			c.log.Warn("member stopped maintaining its part of the cluster", "error", err)
		}
	})
	return c.gossip.Start(c.id.Incarnation)
}

// serveMembers serves other members on a separate listener, if the API does not serve them.
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
	// the connection ends at once, so connected members notice that this member has left
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

// Collectors returns the metrics of the cluster as this member sees it. It returns none for a nil
// Membership.
func (c *Membership) Collectors() []prometheus.Collector {
	if c == nil {
		return nil
	}
	return slices.Concat(c.keeper.Collectors(), c.router.Collectors(), c.gossip.Collectors())
}

// Routes returns the routes for other members on the API's listener. It returns none for a nil
// Membership.
func (c *Membership) Routes() map[string]http.Handler {
	if c == nil {
		return nil
	}
	return map[string]http.Handler{cluster.Path: c.service}
}

// leaveGrace is the maximum time of the hand-off to other members.
const leaveGrace = 5 * time.Second

// Leave hands over everything that the member owns while the member still answers, so that clients
// notice nothing. It reports whether everything was handed over.
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

// Close releases all resources. Call it after Leave.
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
