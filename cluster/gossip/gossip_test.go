package gossip

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// openGossip opens gossip on a free port of loopback.
func openGossip(t *testing.T, edit ...func(*Config)) *Gossip {
	t.Helper()
	cfg := Config{Cluster: "test", Listen: "127.0.0.1:0", Log: slog.New(slog.DiscardHandler)}
	for _, e := range edit {
		e(&cfg)
	}
	g, err := Listen(cfg)
	require.NoError(t, err)
	t.Cleanup(g.Close)
	return g
}

// startGossip opens gossip and starts it under a name.
func startGossip(t *testing.T, name string, edit ...func(*Config)) *Gossip {
	t.Helper()
	g := openGossip(t, edit...)
	require.NoError(t, g.Start(name))
	return g
}

func withSeeds(of ...*Gossip) func(*Config) {
	return func(c *Config) {
		for _, g := range of {
			c.Seeds = append(c.Seeds, g.Address())
		}
	}
}

// until waits until a condition about g is true.
func until(t *testing.T, g *Gossip, what string, cond func() bool) {
	t.Helper()
	limit := time.After(20 * time.Second)
	for !cond() {
		select {
		case <-g.Hints():
		case <-limit:
			require.FailNow(t, "did not come: "+what, "peers: %v", g.Peers())
		}
	}
}

func untilPeers(t *testing.T, g *Gossip, names ...string) {
	t.Helper()
	until(t, g, fmt.Sprint("peers ", names), func() bool { return slices.Equal(names, peerNames(g)) })
}

func peerNames(g *Gossip) []string {
	var names []string
	for _, p := range g.Peers() {
		names = append(names, p.Incarnation)
	}
	return names
}

func TestThreeMembersFindEachOtherThroughOneSeed(t *testing.T) {
	a := startGossip(t, "a")
	b := startGossip(t, "b", withSeeds(a))
	c := startGossip(t, "c", withSeeds(a))
	untilPeers(t, a, "b", "c")
	untilPeers(t, b, "a", "c")
	untilPeers(t, c, "a", "b")
	require.Equal(t, []Peer{{"a", a.Address(), gossipFormat}, {"b", b.Address(), gossipFormat}}, c.Peers())
}

func TestMembersFindEachOtherThroughTheRowsOfMembers(t *testing.T) {
	var rows rows
	a := startGossip(t, "a", rows.setKnown)
	rows.add(a.Address())
	b := startGossip(t, "b", rows.setKnown)
	untilPeers(t, a, "b")
	untilPeers(t, b, "a")

	// Both are running when the row of the third member is added, and the third one knows no other.
	c := startGossip(t, "c")
	rows.add(c.Address())
	untilPeers(t, c, "a", "b")
	untilPeers(t, b, "a", "c")
}

// rows holds the addresses of members in the store.
type rows struct {
	mu    sync.Mutex
	addrs []string
}

func (r *rows) add(addr string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.addrs = append(r.addrs, addr)
}

func (r *rows) setKnown(c *Config) {
	c.retry = 10 * time.Millisecond
	c.Known = func() []string {
		r.mu.Lock()
		defer r.mu.Unlock()
		return slices.Clone(r.addrs)
	}
}

func TestASeedMayBeADNSName(t *testing.T) {
	a := startGossip(t, "a")
	b := startGossip(t, "b", func(c *Config) { c.Seeds = []string{net.JoinHostPort("localhost", port(t, a))} })
	untilPeers(t, b, "a")

	// A name may stand for several members, one of which does not run.
	c := startGossip(t, "c", func(c *Config) {
		c.Seeds = []string{net.JoinHostPort("members.test", port(t, a))}
		c.Resolve = func(_ context.Context, host string) ([]netip.Addr, error) {
			require.Equal(t, "members.test", host)
			return []netip.Addr{netip.MustParseAddr("127.1.2.3"), netip.MustParseAddr("127.0.0.1")}, nil
		}
	})
	untilPeers(t, c, "a", "b")
}

func TestANameThatIsNotKnownYetIsAskedAgain(t *testing.T) {
	a := startGossip(t, "a")
	var log buffer
	asked := 0
	b := startGossip(t, "b", log.setLogger, func(c *Config) {
		c.retry = 10 * time.Millisecond
		c.Seeds = []string{net.JoinHostPort("later.test", port(t, a))}
		c.Resolve = func(context.Context, string) ([]netip.Addr, error) {
			if asked++; asked < 3 {
				return nil, &net.DNSError{Err: "no such host", Name: "later.test", IsNotFound: true}
			}
			return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
		}
	})
	untilPeers(t, b, "a")
	require.Equal(t, 1, strings.Count(log.String(), "level=WARN"), log.String())
}

func port(t *testing.T, g *Gossip) string {
	t.Helper()
	_, p, err := net.SplitHostPort(g.Address())
	require.NoError(t, err)
	return p
}

// buffer is a log that several goroutines write.
type buffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
	new chan struct{}
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.new != nil {
		select {
		case b.new <- struct{}{}:
		default:
		}
	}
	return b.buf.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

func (b *buffer) setLogger(c *Config) {
	b.new = make(chan struct{}, 1)
	c.Log = slog.New(slog.NewTextHandler(b, nil))
}

// untilLogged waits for a text in the log.
func untilLogged(t *testing.T, b *buffer, text string) {
	t.Helper()
	limit := time.After(20 * time.Second)
	for !strings.Contains(b.String(), text) {
		select {
		case <-b.new:
		case <-limit:
			require.FailNow(t, "not logged: "+text, b.String())
		}
	}
}

var (
	key      = []byte("0123456789abcdef")
	otherKey = []byte("fedcba9876543210")
)

func withKeys(k ...[]byte) func(*Config) { return func(c *Config) { c.Keys = k } }

func TestAStrangerIsRefusedAndLoggedOnce(t *testing.T) {
	for name, tt := range map[string]struct {
		ours, theirs func(*Config)
		want         string // in the log of the refusing member
	}{
		"a wrong key":      {withKeys(key), withKeys(otherKey), "a key that is not in the ring"},
		"no key":           {withKeys(key), withKeys(), "a key that is not in the ring"},
		"a key too many":   {withKeys(), withKeys(key), "is encrypted, but this member has no key"},
		"another cluster":  {withKeys(), func(c *Config) { c.Cluster = "another" }, "another cluster"},
		"and another key":  {withKeys(key), func(c *Config) { c.Cluster, c.Keys = "another", [][]byte{otherKey} }, "another cluster"},
		"with the one key": {withKeys(key), func(c *Config) { c.Cluster, c.Keys = "another", [][]byte{key} }, "another cluster"},
	} {
		t.Run(name, func(t *testing.T) {
			var log, theirLog buffer
			a := startGossip(t, "a", tt.ours, log.setLogger)
			b := startGossip(t, "b", tt.ours, withSeeds(a))
			untilPeers(t, a, "b")
			untilPeers(t, b, "a")
			attempts := make(chan struct{})
			stranger := startGossip(t, "stranger", tt.theirs, theirLog.setLogger, withSeeds(a), func(c *Config) {
				c.retry = time.Millisecond
				c.Known = func() []string {
					select {
					case attempts <- struct{}{}:
					case <-t.Context().Done():
					}
					return nil
				}
			})
			for range 5 {
				<-attempts
			}
			untilLogged(t, &log, tt.want)
			untilLogged(t, &theirLog, "joining gossip failed")
			require.Equal(t, []string{"b"}, peerNames(a))
			require.Equal(t, []string{"a"}, peerNames(b))
			require.Empty(t, stranger.Peers())
			require.Equal(t, 1, strings.Count(log.String(), "level=WARN"), log.String())
			require.Equal(t, 1, strings.Count(theirLog.String(), "joining gossip failed"), theirLog.String())
		})
	}
}

func TestKeysAreExchangedOneMemberAfterTheOther(t *testing.T) {
	a := startGossip(t, "a", withKeys(key))
	b := startGossip(t, "b", withKeys(key, otherKey), withSeeds(a))
	c := startGossip(t, "c", withKeys(otherKey, key), withSeeds(b))
	untilPeers(t, b, "a", "c")
	untilPeers(t, c, "a", "b")
}

func TestABusyPortFallsBackToAFreeOne(t *testing.T) {
	a := startGossip(t, "a")
	b := startGossip(t, "b", withSeeds(a), func(c *Config) { c.Listen, c.Fallback = a.Address(), true })
	require.NotEqual(t, a.Address(), b.Address())
	untilPeers(t, a, "b")

	_, err := Listen(Config{Cluster: "test", Listen: a.Address(), Log: slog.New(slog.DiscardHandler)})
	require.ErrorContains(t, err, "gossip cannot listen on "+a.Address())
}

func TestInvalidGossipSettingsAreRefused(t *testing.T) {
	for name, tt := range map[string]struct {
		cfg  Config
		want string
	}{
		"no port": {Config{Cluster: "x", Listen: "127.0.0.1"}, `"127.0.0.1" is no HOST:PORT`},
		"no such host": {Config{Cluster: "x", Listen: "nowhere.invalid:1", Resolve: unknown},
			"nowhere.invalid"},
		"no cluster": {Config{Listen: "127.0.0.1:0"}, "a cluster has a name of 1 to 255 bytes"},
		"a long name": {Config{Cluster: strings.Repeat("x", 256), Listen: "127.0.0.1:0"},
			"a cluster has a name of 1 to 255 bytes"},
		"a short key": {Config{Cluster: "x", Listen: "127.0.0.1:0", Keys: [][]byte{{1}}},
			"16, 24 or 32 bytes"},
		"unknown profile": {Config{Cluster: "x", Listen: "127.0.0.1:0", Profile: "wan"},
			`no gossip profile "wan": there are fast and lan`},
		"nothing concrete": {Config{Cluster: "x", Listen: "0.0.0.0:0"}, "needs a host that others reach"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Listen(tt.cfg)
			require.ErrorContains(t, err, tt.want)
		})
	}
}

func unknown(_ context.Context, host string) ([]netip.Addr, error) {
	return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
}

func TestTheAdvertisedAddressMayDifferFromTheListenAddress(t *testing.T) {
	g := openGossip(t, func(c *Config) { c.Listen, c.Advertise = "0.0.0.0:0", "localhost" })
	require.Equal(t, "127.0.0.1:"+port(t, g), g.Address())
	// It received data before it started, and is closed without having started.
	conn, err := net.Dial("udp", g.Address())
	require.NoError(t, err)
	_, err = conn.Write([]byte("is somebody there?"))
	require.NoError(t, err)
	require.NoError(t, conn.Close())
}

func TestALeaveAndAKillAreNoticed(t *testing.T) {
	a := startGossip(t, "a")
	b := startGossip(t, "b", withSeeds(a))
	c := startGossip(t, "c", withSeeds(a))
	d := startGossip(t, "d", withSeeds(a))
	untilPeers(t, b, "a", "c", "d")
	untilPeers(t, a, "b", "c", "d")
	c.Leave()
	untilPeers(t, a, "b", "d")
	untilPeers(t, b, "a", "d")
	begun := time.Now()
	d.Close() // closes without leaving
	untilPeers(t, a, "b")
	untilPeers(t, b, "a")
	require.Less(t, time.Since(begun), 8*time.Second)
}

func TestAnAnnouncementIsAHintForOtherMembers(t *testing.T) {
	a := startGossip(t, "a")
	b := startGossip(t, "b", withSeeds(a))
	untilPeers(t, a, "b")
	untilPeers(t, b, "a")
	heard := b.announcements.Load()
	a.Announce()
	until(t, b, "the announcement", func() bool { return b.announcements.Load() > heard })
}

func TestGossipStopsWhileASeedDoesNotAnswer(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer silent.Close()
	g := startGossip(t, "a", func(c *Config) { c.Seeds = []string{silent.Addr().String()} })
	conn, err := silent.Accept()
	require.NoError(t, err)
	defer conn.Close()
	g.Close()
	g.Close()
	g.Leave()
	g.Announce()
}

func TestKeysAreRead(t *testing.T) {
	for name, tt := range map[string]struct {
		text string
		want [][]byte
		err  string
	}{
		"one key":            {"MDEyMzQ1Njc4OWFiY2RlZg==\n", [][]byte{key}, ""},
		"several, comments":  {"# new\nMDEyMzQ1Njc4OWFiY2RlZg==\r\n\n  ZmVkY2JhOTg3NjU0MzIxMA==  # old\n", [][]byte{key, otherKey}, ""},
		"nothing":            {"# none\n", nil, "no key in it"},
		"not base64":         {"MDEyMzQ1Njc4OWFiY2RlZg==\nsecret!\n", nil, "line 2 is no base64"},
		"of another length":  {"MDEy\n", nil, "line 1 has 3 bytes: a key has 16, 24 or 32"},
		"no secret is shown": {"c2VjcmV0c2VjcmV0\n", nil, "line 1 has 12 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ParseKeys([]byte(tt.text))
			if tt.err != "" {
				require.ErrorContains(t, err, tt.err)
				require.NotContains(t, err.Error(), "c2VjcmV0")
				return
			}
			require.NoError(t, err)
			require.Equal(t, tt.want, got)
		})
	}
}

func TestAGossipClosedWhileJoiningContactsNoMore(t *testing.T) {
	g, err := Listen(Config{Cluster: "test", Listen: "127.0.0.1:0", Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	require.NoError(t, g.Start("a"))
	g.Close()
	require.NotPanics(t, func() { g.joiner.joinAddress("127.0.0.1:1") })
}
