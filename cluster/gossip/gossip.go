package gossip

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/memberlist"
	"github.com/prometheus/client_golang/prometheus"
)

// Config configures a member's gossip.
type Config struct {
	// Cluster is the name of the cluster; messages from another cluster are refused.
	Cluster string
	// Listen is HOST:PORT, for TCP and UDP. Port 0 chooses a free one.
	Listen string
	// Fallback uses a free port if that of Listen is in use; otherwise that is an error.
	Fallback bool
	// Advertise is the host that other members are given. "" = that of Listen.
	Advertise string
	// Seeds are the first members to contact, as HOST:PORT; a host with several addresses stands
	// for several members.
	Seeds []string
	// Known returns the addresses of the members in the store. The gossip contacts those that it
	// has not heard from. So members find each other without seeds, and the halves of a partition
	// find each other again. nil = none.
	Known func() []string
	// Keys encrypt messages with AES-GCM: the first key encrypts, and all of them decrypt. None =
	// messages are not encrypted, and encrypted ones are not understood.
	Keys [][]byte
	// Profile sets how soon a silent member is noticed: ProfileFast (the default) or ProfileLAN.
	Profile string
	// Resolve returns the addresses of a host. nil = the system's resolver.
	Resolve func(ctx context.Context, host string) ([]netip.Addr, error)
	// Log receives messages for operators. nil = slog.Default().
	Log *slog.Logger

	// time between two attempts to join members not heard from; 0 = set by the profile
	retry time.Duration
}

// The profiles of gossip. ProfileFast notices a killed member after about 2 s, ProfileLAN after
// about 6 s.
const (
	ProfileFast = "fast"
	ProfileLAN  = "lan"
)

// gossipFormat is the version of the messages, which members send each other. A member must not
// send an older one messages that it does not know.
const gossipFormat = 1

// Peer is another member known by gossip.
type Peer struct {
	Incarnation string
	Address     string // HOST:PORT of its gossip
	Format      int
}

// Gossip tracks the reachable members. It decides nothing: its events are hints to read the store.
type Gossip struct {
	cfg           Config
	host          string // IP address given to other members
	transport     *gossipTransport
	ctx           context.Context
	cancel        context.CancelFunc
	work          sync.WaitGroup
	hints         chan struct{}
	announcements atomic.Int64 // number of announcements received
	joiner        gossipJoiner

	mu     sync.Mutex
	closed bool
	list   *memberlist.Memberlist // nil before Start
	peers  map[string]Peer
}

// Listen opens the port, so that Address can be stored in the member's row. The member takes
// part after Start.
func Listen(cfg Config) (*Gossip, error) {
	if err := cfg.checkConfig(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	g := &Gossip{cfg: cfg, ctx: ctx, cancel: cancel, hints: make(chan struct{}, 1), peers: map[string]Peer{}}
	g.joiner = gossipJoiner{g: g, answered: map[string]bool{}, logged: map[string]bool{}}
	if err := g.openTransport(); err != nil {
		cancel()
		return nil, err
	}
	return g, nil
}

// checkConfig sets defaults and returns an error for invalid settings.
func (c *Config) checkConfig() error {
	if c.Cluster == "" || len(c.Cluster) > memberlist.LabelMaxSize {
		return fmt.Errorf("cluster: a cluster has a name of 1 to %d bytes, not of %d", memberlist.LabelMaxSize, len(c.Cluster))
	}
	for _, key := range c.Keys {
		if err := memberlist.ValidateKey(key); err != nil {
			return fmt.Errorf("cluster: a gossip key has 16, 24 or 32 bytes, not %d", len(key))
		}
	}
	switch c.Profile {
	case "":
		c.Profile = ProfileFast
	case ProfileFast, ProfileLAN:
	default:
		return fmt.Errorf("cluster: there is no gossip profile %q: there are %s and %s", c.Profile, ProfileFast, ProfileLAN)
	}
	if c.Resolve == nil {
		c.Resolve = func(ctx context.Context, host string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		}
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	return nil
}

func (g *Gossip) openTransport() error {
	host, port, err := splitHostPort(g.cfg.Listen)
	if err != nil {
		return fmt.Errorf("cluster: gossip cannot listen on %s: %w", g.cfg.Listen, err)
	}
	bind, err := g.resolveAddress(host)
	if err != nil {
		return fmt.Errorf("cluster: gossip cannot listen on %s: %w", g.cfg.Listen, err)
	}
	told := bind
	if g.cfg.Advertise != "" {
		if told, err = g.resolveAddress(g.cfg.Advertise); err != nil {
			return fmt.Errorf("cluster: the host that gossip tells others: %w", err)
		}
	}
	if told.IsUnspecified() {
		return fmt.Errorf("cluster: gossip listens on all addresses (%s): it needs a host that others reach it by, too", g.cfg.Listen)
	}
	g.host = told.String()
	g.transport, err = openTransport(g.ctx, bind.String(), port)
	if err != nil && g.cfg.Fallback {
		var again error
		if g.transport, again = openTransport(g.ctx, bind.String(), 0); again == nil {
			g.cfg.Log.Warn("gossip port is in use, using another one", "address", g.Address(), "error", err)
			return nil
		}
	}
	if err != nil {
		return fmt.Errorf("cluster: gossip cannot listen on %s: %w; choose another address with --gossip", g.cfg.Listen, err)
	}
	return nil
}

// splitHostPort parses HOST:PORT.
func splitHostPort(addr string) (host string, port int, err error) {
	host, text, err := net.SplitHostPort(addr)
	if err != nil {
		return "", 0, fmt.Errorf("%q is no HOST:PORT", addr)
	}
	number, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return "", 0, fmt.Errorf("%q is no HOST:PORT", addr)
	}
	return host, int(number), nil
}

// resolveAddress returns one IP address of a host, preferably IPv4; "" stands for all addresses.
func (g *Gossip) resolveAddress(host string) (netip.Addr, error) {
	if host == "" {
		return netip.IPv4Unspecified(), nil
	}
	all, err := g.resolveAddresses(host)
	if err != nil {
		return netip.Addr{}, err
	}
	if i := slices.IndexFunc(all, netip.Addr.Is4); i >= 0 {
		return all[i], nil
	}
	return all[0], nil
}

// resolveAddresses returns the addresses of a host, at least one.
func (g *Gossip) resolveAddresses(host string) ([]netip.Addr, error) {
	if ip, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{ip.Unmap()}, nil
	}
	ctx, cancel := context.WithTimeout(g.ctx, gossipTimeout)
	defer cancel()
	all, err := g.cfg.Resolve(ctx, host)
	if err != nil {
		return nil, fmt.Errorf("find the address of %s: %w", host, err)
	}
	for i := range all {
		all[i] = all[i].Unmap()
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("find the address of %s: it has none", host)
	}
	return all, nil
}

// gossipTimeout limits the time for an answer of a name server or another member.
const gossipTimeout = 2 * time.Second

// Address returns the address of this member's gossip for others.
func (g *Gossip) Address() string {
	return net.JoinHostPort(g.host, strconv.Itoa(g.transport.GetAutoBindPort()))
}

// Start makes the member take part under its incarnation, and starts to look for other members.
func (g *Gossip) Start(incarnation string) error {
	list, err := memberlist.Create(g.memberlistConfig(incarnation))
	if err != nil {
		return fmt.Errorf("cluster: start to gossip: %w", err)
	}
	g.mu.Lock()
	g.list = list
	g.mu.Unlock()
	g.work.Go(g.joiner.retryJoins)
	return nil
}

// memberlistConfig returns the settings for the library.
func (g *Gossip) memberlistConfig(incarnation string) *memberlist.Config {
	c := memberlist.DefaultLANConfig()
	c.TCPTimeout = gossipTimeout
	if g.cfg.Profile == ProfileFast {
		c.ProbeInterval, c.ProbeTimeout, c.SuspicionMult = 300*time.Millisecond, 150*time.Millisecond, 3
		c.GossipInterval, c.PushPullInterval = 100*time.Millisecond, 10*time.Second
	}
	c.Name, c.Label, c.Transport = incarnation, g.cfg.Cluster, g.transport
	c.AdvertiseAddr, c.AdvertisePort = g.host, g.transport.GetAutoBindPort()
	if len(g.cfg.Keys) > 0 {
		c.SecretKey = g.cfg.Keys[0]
		// The keys were checked, and nothing else can fail.
		c.Keyring, _ = memberlist.NewKeyring(g.cfg.Keys, g.cfg.Keys[0])
	}
	d := gossipDelegate{g, incarnation}
	c.Delegate, c.Events = d, d
	c.Logger = log.New(&gossipLog{log: g.cfg.Log, logged: map[string]bool{}}, "", 0)
	return c
}

// Hints returns a channel that receives a value when the store may have changed: a member came,
// left or announced a change. Several hints may be combined into one.
func (g *Gossip) Hints() <-chan struct{} { return g.hints }

func (g *Gossip) sendHint() {
	select {
	case g.hints <- struct{}{}:
	default:
	}
}

// Peers returns the other known members, in order of their incarnations.
func (g *Gossip) Peers() []Peer {
	g.mu.Lock()
	defer g.mu.Unlock()
	var all []Peer
	for _, p := range g.peers {
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b Peer) int { return strings.Compare(a.Incarnation, b.Incarnation) })
	return all
}

// Announce sends the other members a hint that the store has changed. The message may get lost.
func (g *Gossip) Announce() {
	list := g.runningList()
	if list == nil {
		return
	}
	for _, p := range g.Peers() {
		to, err := netip.ParseAddrPort(p.Address)
		if err != nil {
			continue
		}
		node := &memberlist.Node{Name: p.Incarnation, Addr: to.Addr().AsSlice(), Port: to.Port(), PMax: memberlist.ProtocolVersionMax}
		if err := list.SendBestEffort(node, []byte{announcement}); err != nil {
			g.cfg.Log.Debug("notifying a member of a store change failed", "member", p.Incarnation, "error", err)
		}
	}
}

// announcement is the message that the store has changed.
const announcement = 1

// runningList returns the library's member list; nil before Start and after Close.
func (g *Gossip) runningList() *memberlist.Memberlist {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil
	}
	return g.list
}

// Leave informs the other members that this member leaves. It waits up to a second until the
// message is sent.
func (g *Gossip) Leave() {
	list := g.runningList()
	if list == nil {
		return
	}
	if err := list.Leave(time.Second); err != nil {
		g.cfg.Log.Debug("announcing the departure of this member failed", "error", err)
	}
}

// Close ends the gossip without informing the other members.
func (g *Gossip) Close() {
	list := g.runningList()
	g.mu.Lock()
	begins := !g.closed
	g.closed = true
	g.mu.Unlock()
	if !begins {
		return
	}
	g.cancel()
	g.work.Wait()
	var err error
	if list != nil {
		err = list.Shutdown()
	} else {
		err = g.transport.Shutdown()
	}
	if err != nil && !errors.Is(err, net.ErrClosed) {
		g.cfg.Log.Debug("gossip stopped", "error", err)
	}
}

// gossipDelegate receives the library's events. The library holds a lock meanwhile, so these
// methods must not call it.
type gossipDelegate struct {
	g    *Gossip
	self string
}

func (d gossipDelegate) NotifyJoin(n *memberlist.Node)   { d.recordPeer(n, true) }
func (d gossipDelegate) NotifyUpdate(n *memberlist.Node) { d.recordPeer(n, true) }
func (d gossipDelegate) NotifyLeave(n *memberlist.Node)  { d.recordPeer(n, false) }

func (d gossipDelegate) recordPeer(n *memberlist.Node, lives bool) {
	if n.Name == d.self {
		return
	}
	d.g.mu.Lock()
	if lives {
		d.g.peers[n.Name] = Peer{n.Name, n.Address(), metaFormat(n.Meta)}
	} else {
		delete(d.g.peers, n.Name)
	}
	d.g.mu.Unlock()
	d.g.sendHint()
}

// metaFormat returns the message format of a member; 0 = unknown.
func metaFormat(meta []byte) int {
	if len(meta) == 0 {
		return 0
	}
	return int(meta[0])
}

func (d gossipDelegate) NodeMeta(int) []byte { return []byte{gossipFormat} }

func (d gossipDelegate) NotifyMsg(said []byte) {
	if len(said) == 1 && said[0] == announcement {
		d.g.announcements.Add(1)
		d.g.sendHint()
	}
}

func (gossipDelegate) GetBroadcasts(int, int) [][]byte { return nil }
func (gossipDelegate) LocalState(bool) []byte          { return nil }
func (gossipDelegate) MergeRemoteState([]byte, bool)   {}

// Collectors returns the metrics of gossip for Prometheus.
func (g *Gossip) Collectors() []prometheus.Collector {
	return []prometheus.Collector{prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "troupe_cluster_gossip_peers",
		Help: "Other members that this member sees by gossip."}, func() float64 { return float64(len(g.Peers())) })}
}
