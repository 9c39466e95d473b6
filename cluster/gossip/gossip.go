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
	// Cluster is the name of the cluster. Messages from another cluster are refused.
	Cluster string
	// Listen is HOST:PORT for TCP and UDP. Port 0 selects a free port.
	Listen string
	// Fallback selects a free port if the port of Listen is in use. Otherwise Listen fails.
	Fallback bool
	// Advertise is the host that other members use; "" means the host of Listen.
	Advertise string
	// Seeds are the first members to contact, as HOST:PORT; a host with several addresses stands
	// for several members.
	Seeds []string
	// Known returns the addresses of the members in the store; nil means none. Gossip contacts
	// those from which it has heard nothing. So members find each other without seeds, and after a
	// partition.
	Known func() []string
	// Keys encrypt messages with AES-GCM. The first key encrypts, and all keys decrypt. Without
	// keys, messages are not encrypted, and encrypted messages are refused.
	Keys [][]byte
	// Profile determines how soon a silent member is detected: ProfileFast (default) or ProfileLAN.
	Profile string
	// Resolve returns the addresses of a host; nil means the system's resolver.
	Resolve func(ctx context.Context, host string) ([]netip.Addr, error)
	// Log receives messages for operators; nil means slog.Default().
	Log *slog.Logger

	// time between attempts to join silent members; 0 means that the profile sets it
	retry time.Duration
}

// These are the profiles. ProfileFast detects a killed member after about 2 s, ProfileLAN after
// about 6 s.
const (
	ProfileFast = "fast"
	ProfileLAN  = "lan"
)

// gossipFormat is the version of the messages, which members exchange. A member must not send
// messages to an older one that does not know them.
const gossipFormat = 1

// Peer is another member known by gossip.
type Peer struct {
	Incarnation string
	Address     string // HOST:PORT of the peer's gossip
	Format      int
}

// Gossip tracks the reachable members. Its events are only hints to read the store.
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

// Listen opens the port, so that Address can be stored in the member's row. Gossip begins with
// Start.
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

// resolveAddress returns one IP address of a host, preferably IPv4. "" means all interfaces.
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

// gossipTimeout limits the wait for a name server or another member.
const gossipTimeout = 2 * time.Second

// Address returns the gossip address of this member for other members.
func (g *Gossip) Address() string {
	return net.JoinHostPort(g.host, strconv.Itoa(g.transport.GetAutoBindPort()))
}

// Start begins gossip under an incarnation, and looks for other members.
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
		// Cannot fail, because the keys were checked.
		c.Keyring, _ = memberlist.NewKeyring(g.cfg.Keys, g.cfg.Keys[0])
	}
	d := gossipDelegate{g, incarnation}
	c.Delegate, c.Events = d, d
	c.Logger = log.New(&gossipLog{log: g.cfg.Log, logged: map[string]bool{}}, "", 0)
	return c
}

// Hints returns a channel that receives a value when the store may have changed, because a member
// came, left or announced a change. Several hints may be combined.
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

// Announce sends the other members a hint that the store has changed. The message may be lost.
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

// announcement is the message type for changes of the store.
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

// Leave notifies the other members that this member leaves. It waits up to a second until the
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

// Close ends gossip without notifying the other members.
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

// gossipDelegate receives the library's events. Its methods must not call the library, which holds
// a lock.
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

// metaFormat returns the message format of a member; 0 means unknown.
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
