package workers_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/carriers/workers"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// names is a DNS server that returns one address, or none, for every name. During the test, this
// process uses no other.
type names struct{ atomic.Pointer[netip.Addr] }

func newNames(t *testing.T) *names {
	n := &names{}
	before := net.DefaultResolver
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go n.answer(theirs) // until the resolver closes its side
		return ours, nil
	}}
	t.Cleanup(func() { net.DefaultResolver = before })
	return n
}

func (n *names) now(addr string) {
	a := netip.MustParseAddr(addr)
	n.Store(&a)
}

// answer implements DNS over TCP: messages with a length prefix.
func (n *names) answer(c net.Conn) {
	defer c.Close()
	for {
		var length [2]byte
		if _, err := io.ReadFull(c, length[:]); err != nil {
			return
		}
		query := make([]byte, binary.BigEndian.Uint16(length[:]))
		if _, err := io.ReadFull(c, query); err != nil {
			return
		}
		reply := n.reply(query)
		if _, err := c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(reply))), reply...)); err != nil {
			return
		}
	}
}

const jobHeader, ipv4 = 12, 1

func (n *names) reply(query []byte) []byte {
	end := jobHeader + bytes.IndexByte(query[jobHeader:], 0) + 5 // after the only question
	r := bytes.Clone(query[:end])
	addr := n.Load()
	copy(r[2:], []byte{0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0}) // an answer to one question
	switch {
	case addr == nil:
		r[3] |= 3 // no such name
	case binary.BigEndian.Uint16(query[end-4:]) == ipv4:
		r[7] = 1
		r = append(r, 0xc0, jobHeader, 0, ipv4, 0, 1, 0, 0, 0, 0, 0, 4)
		r = append(r, addr.AsSlice()...)
	}
	return r
}

func TestAWorkerMayRegisterBeforeItsNameIsKnown(t *testing.T) {
	dns := newNames(t)
	asked := make(chan string, 100)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.Host
		_, _ = io.WriteString(w, `{"result":1}`)
	}))
	defer s.Close()
	u, err := url.Parse(s.URL)
	require.NoError(t, err)
	var logged bytes.Buffer
	r := open(t, newStore(t), workers.Options{Logger: slog.New(slog.NewTextHandler(&logged, nil))})
	w := persistence.Worker{ID: "w", URL: "http://worker.test:" + u.Port(), Services: []string{"s"}}
	require.NoError(t, r.Register(t.Context(), w))
	require.Contains(t, logged.String(), "worker.test")
	require.Equal(t, "all workers failed", r.Carry(t.Context(), job("s")).Error)
	dns.now("127.0.0.1")
	require.Eventually(t, func() bool { // the DNS lookup may be too slow
		return string(r.Carry(t.Context(), job("s")).Output) == `1`
	}, patience, time.Millisecond)
	require.Equal(t, "worker.test:"+u.Port(), <-asked)
}

func TestANameInAForbiddenNetworkIsNotCalled(t *testing.T) {
	dns := newNames(t)
	var refused refusals
	allow := func(network string) *workers.Registry {
		return open(t, newStore(t), workers.Options{Allow: []netip.Prefix{netip.MustParsePrefix(network)}, Logger: refused.logger()})
	}
	r, narrow := allow("0.0.0.0/0"), allow("192.0.2.0/24")
	w := persistence.Worker{ID: "w", URL: "http://worker.test:9", Services: []string{"s"}}
	for _, registry := range []*workers.Registry{r, narrow} {
		require.NoError(t, registry.Register(t.Context(), w)) // the name is not resolvable yet
	}
	for addr, registry := range map[string]*workers.Registry{"169.254.169.254": r, "0.0.0.0": r, "198.51.100.7": narrow} {
		dns.now(addr)
		require.Eventually(t, func() bool { // the DNS lookup may be too slow
			return registry.Carry(t.Context(), job("s")).Error == "all workers failed" &&
				strings.Contains(refused.String(), "connect to "+addr+":9: workers are not allowed there")
		}, patience, time.Millisecond, addr)
		require.Eventually(t, func() bool {
			return flow.ErrorKindOf(registry.Register(t.Context(), w)) == flow.Invalid
		}, patience, time.Millisecond, addr)
	}
}

func TestAnEmbeddedAddressDeterminesAccess(t *testing.T) {
	everywhere := workers.Options{Allow: []netip.Prefix{netip.MustParsePrefix("::/0"), netip.MustParsePrefix("0.0.0.0/0")}}
	r := open(t, newStore(t), everywhere)
	register := func(host string) error {
		return r.Register(t.Context(), persistence.Worker{ID: "w", URL: "http://[" + host + "]:9", Services: []string{"s"}})
	}
	for name, host := range map[string]string{
		"NAT64":                          "64:ff9b::169.254.169.254",
		"NAT64 of a local prefix":        "64:ff9b:1::169.254.169.254",
		"6to4":                           "2002:a9fe:a9fe::1",
		"mapped":                         "::ffff:169.254.169.254",
		"compatible":                     "::169.254.169.254",
		"translated":                     "::ffff:0:169.254.169.254",
		"Teredo":                         "2001:0:4136:e378:8000:63bf:5601:5601",
		"ISATAP":                         "2001:db8::5efe:169.254.169.254",
		"ISATAP with a universal number": "2001:db8::200:5efe:169.254.169.254",
		"6to4 of nothing":                "2002::1",
		"NAT64 of a group":               "64:ff9b::224.0.0.1",
		"link-local":                     "fe80::1",
	} {
		require.Equal(t, flow.Invalid, flow.ErrorKindOf(register(host)), name)
	}
	for _, host := range []string{"64:ff9b::192.0.2.7", "2002:c000:207::1", "2001:db8::1", "fd12::7", "::1"} {
		require.NoError(t, register(host), host)
	}
}

func TestAnEmbeddedAddressMustBeAllowedToo(t *testing.T) {
	narrow := open(t, newStore(t), workers.Options{Allow: []netip.Prefix{netip.MustParsePrefix("::/0")}})
	for _, host := range []string{"64:ff9b::192.0.2.7", "2002:c000:207::1", "64:ff9b::127.0.0.1"} {
		err := narrow.Register(t.Context(), persistence.Worker{ID: "w", URL: "http://[" + host + "]:9", Services: []string{"s"}})
		require.Equal(t, flow.Invalid, flow.ErrorKindOf(err), host)
	}
}

// refusals collects the log of a registry about refused calls.
type refusals struct{ bytes.Buffer }

func (r *refusals) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(r, &slog.HandlerOptions{Level: slog.LevelDebug}))
}
