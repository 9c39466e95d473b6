package cluster

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/persistence"
)

func TestStrangersAreRefusedAndChangeNothing(t *testing.T) {
	s := newStage(t, "a")
	a := s.members["a"]
	row := persistence.MemberRow{Incarnation: "a", Name: "a", URL: a.server.URL}
	former := row
	former.Incarnation = "before"
	for name, tt := range map[string]struct {
		id   Identity
		to   persistence.MemberRow
		want string
	}{
		"a wrong secret":      {Identity{Cluster: "test", Secret: "guessed"}, row, "the secret of the cluster is wrong or missing"},
		"no secret":           {Identity{Cluster: "test"}, row, "the secret of the cluster is wrong or missing"},
		"another cluster":     {Identity{Cluster: "other", Secret: "secret"}, row, "this member belongs to the cluster test"},
		"another incarnation": {ours, former, "another member than the one that is meant answers here now"},
	} {
		t.Run(name, func(t *testing.T) {
			before := s.log.count("member rejected")
			for range 3 {
				peers := NewPeers(tt.id, nil, s.logger())
				_, err := peers.Ask(soon(t), tt.to, &engine.Orders{signal(s.taskOf("a"))})
				require.ErrorIs(t, err, ErrAway)
				require.ErrorContains(t, err, tt.want)
				peers.Tell(tt.to, &engine.Credits{Member: "x"})
				for _, err := range peers.Watch(soon(t), tt.to, engine.Follow{Task: "t"}) {
					require.ErrorIs(t, err, ErrAway)
				}
				peers.Close()
			}
			if name == "no secret" { // the same reason from the same host
				require.LessOrEqual(t, s.log.count("member rejected"), before+1)
			}
		})
	}
	require.Equal(t, 3, s.log.count("member rejected"), "each reason once: %s", s.log.text.String())
	require.NotContains(t, s.log.text.String(), "guessed")
	require.Empty(t, a.effects)
	require.Empty(t, a.credits)
}

func TestMembersDoNotTalkOverOldHTTP(t *testing.T) {
	s := newStage(t, "a")
	req := post(t, s.members["a"].server.URL+deliverPath)
	ours.signRequest(req.Header, "a", time.Now())
	require.Equal(t, http.StatusHTTPVersionNotSupported, sent(t, http.DefaultTransport, req))
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	require.Equal(t, 1, s.log.count("over HTTP/2"))
}

func post(t *testing.T, url string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, http.NoBody)
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/connect+troupe")
	return req
}

func sent(t *testing.T, over http.RoundTripper, req *http.Request) (status int) {
	t.Helper()
	res, err := over.RoundTrip(req)
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	return res.StatusCode
}

func TestMembersTalkOverTLS(t *testing.T) {
	s := newStage(t, "a")
	a := s.members["a"]
	id := ours
	id.Incarnation = "a"
	server := httptest.NewUnstartedServer(NewService(a, id, s.logger()))
	server.EnableHTTP2 = true
	server.Config.ErrorLog = slog.NewLogLogger(s.logger().Handler(), slog.LevelWarn)
	server.StartTLS()
	defer server.Close()
	trusted := x509.NewCertPool()
	trusted.AddCert(server.Certificate())
	to := persistence.MemberRow{Incarnation: "a", URL: server.URL}

	peers := NewPeers(ours, func() *tls.Config { return &tls.Config{RootCAs: trusted} }, s.logger())
	defer peers.Close()
	_, err := peers.Ask(soon(t), to, &engine.Orders{signal(s.taskOf("a"))})
	require.NoError(t, err)
	require.Len(t, a.effects, 1)

	var now atomic.Pointer[tls.Config]
	now.Store(&tls.Config{})
	doubtful := NewPeers(ours, func() *tls.Config { return now.Load().Clone() }, s.logger())
	defer doubtful.Close()
	_, err = doubtful.Ask(soon(t), to, &engine.Orders{signal(s.taskOf("a"))})
	require.ErrorIs(t, err, ErrAway)
	now.Store(&tls.Config{RootCAs: trusted})
	_, err = doubtful.Ask(soon(t), to, &engine.Orders{signal(s.taskOf("a"))})
	require.NoError(t, err, "each connection is made with the trust of its time")
	to.URL = strings.Replace(to.URL, "https:", "http:", 1)
	plain := NewPeers(ours, nil, s.logger())
	defer plain.Close()
	_, err = plain.Ask(soon(t), to, &engine.Orders{signal(s.taskOf("a"))})
	require.ErrorIs(t, err, ErrAway, "a plain line to a port with TLS")
}

func TestALineIsKeptAsLongAsItsMemberLives(t *testing.T) {
	s := newStage(t, "a", "b")
	peers := s.members["a"].router.cfg.Peers.(*Peers)
	to, _ := s.truth.Load().OwnerOf(s.taskOf("b"))
	first, err := peers.connTo(to)
	require.NoError(t, err)
	second, err := peers.connTo(to)
	require.NoError(t, err)
	require.Same(t, first, second)
	peers.Keep(func(string) bool { return false })
	<-first.closed
	third, err := peers.connTo(to)
	require.NoError(t, err)
	require.NotSame(t, first, third)
}

func TestAnAbandonedRequestIsDropped(t *testing.T) {
	s := newStage(t, "a", "b")
	begun, dropped := make(chan struct{}), make(chan struct{})
	s.members["b"].before = func(ctx context.Context) {
		close(begun)
		<-ctx.Done()
		close(dropped)
	}
	ctx, cancel := context.WithCancel(soon(t))
	go func() {
		<-begun
		cancel()
	}()
	_, err := s.members["a"].router.Do(ctx, signal(s.taskOf("b")))
	require.ErrorIs(t, err, context.Canceled)
	<-dropped
}

func TestFramesArriveAsTheyWereSent(t *testing.T) {
	sent := &frame{{number: 1, remaining: 5, bytes: []byte("question")}, {number: 1 << 40}, {bytes: []byte("told")}}
	b, err := frameCodec{}.Marshal(sent)
	require.NoError(t, err)
	var got frame
	require.NoError(t, frameCodec{}.Unmarshal(b, &got))
	require.Equal(t, *sent, got)
	require.ErrorContains(t, frameCodec{}.Unmarshal(b[:len(b)-1], &got), "cannot be read")
	require.ErrorContains(t, frameCodec{}.Unmarshal(append(b, 0), &got), "something follows its end")
}

// BenchmarkForwardedOrder measures an order that another member carries out at no cost of its own.
func BenchmarkForwardedOrder(b *testing.B) {
	for name, parallel := range map[string]int{"one caller": 0, "64 callers": 32} {
		b.Run(name, func(b *testing.B) {
			s := newStage(b, "a", "b")
			order := signal(s.taskOf("b"))
			order.Request = "the same"
			router := s.members["a"].router
			b.ReportAllocs()
			if parallel == 0 {
				for b.Loop() {
					forwarded(b, router, order)
				}
				return
			}
			b.SetParallelism(parallel)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					forwarded(b, router, order)
				}
			})
		})
	}
}

func forwarded(b *testing.B, r *Router, o engine.Order) {
	if _, err := r.Do(b.Context(), o); err != nil {
		b.Error(err)
	}
}
