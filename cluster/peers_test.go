package cluster

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
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
			before := s.log.count("another member was refused")
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
				require.LessOrEqual(t, s.log.count("another member was refused"), before+1)
			}
		})
	}
	require.Equal(t, 3, s.log.count("another member was refused"), "each reason once: %s", s.log.text.String())
	require.NotContains(t, s.log.text.String(), "guessed")
	require.Empty(t, a.effects)
	require.Empty(t, a.credits)
}

func TestMembersDoNotTalkOverOldHTTP(t *testing.T) {
	s := newStage(t, "a")
	req := post(t, s.members["a"].server.URL+deliverPath)
	ours.introduce(req.Header, "a", time.Now())
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

func TestAProofLetsInOnceAndAtItsTime(t *testing.T) {
	s := newStage(t, "a")
	s.ahead = 24 * time.Hour
	now := time.Now().Add(s.ahead)
	over := peerTransport(nil)
	defer over.CloseIdleConnections()
	ask := func(h http.Header) int {
		req := post(t, s.members["a"].server.URL+deliverPath)
		for name, value := range h {
			req.Header[name] = value
		}
		return sent(t, over, req)
	}
	said := http.Header{}
	ours.introduce(said, "a", now)
	require.Equal(t, http.StatusOK, ask(said))
	require.Equal(t, http.StatusUnauthorized, ask(said), "who overheard it does not get in with it")
	require.Equal(t, 1, s.log.count("was used before"))
	for _, wrong := range []time.Duration{-2 * proofAge, 2 * proofAge, -s.ahead} {
		said = http.Header{}
		ours.introduce(said, "a", now.Add(wrong))
		require.Equal(t, http.StatusUnauthorized, ask(said), wrong)
	}
	for _, header := range []string{clusterHeader, toHeader, onceHeader, proofHeader} {
		said = http.Header{}
		ours.introduce(said, "a", now)
		said.Set(header, said.Get(header)+"x")
		require.Equal(t, http.StatusUnauthorized, ask(said), header)
	}
	require.Empty(t, s.members["a"].effects)
}

func TestUsedProofsAreRememberedForAsLongAsTheyAreGood(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	o := newOnce(func() time.Time { return now })
	said := http.Header{}
	ours.introduce(said, "a", now.Add(proofAge)) // of one whose time is ahead
	require.True(t, o.first(said.Get(onceHeader)))
	for range 6 {
		now = now.Add(proofAge / 3)
		for range 100 {
			said := http.Header{}
			ours.introduce(said, "a", now)
			require.True(t, o.first(said.Get(onceHeader)))
		}
		require.False(t, o.first(said.Get(onceHeader)))
	}
	now = now.Add(10 * proofAge)
	for range 2 {
		ours.introduce(said, "a", now)
		require.True(t, o.first(said.Get(onceHeader)))
		now = now.Add(3 * proofAge)
	}
	require.LessOrEqual(t, len(o.young)+len(o.old), 3, "others are forgotten")
}

func TestNobodyIsBelievedWhereThereIsNoSecret(t *testing.T) {
	s := newStage(t, "a")
	id := Identity{Cluster: "test", Incarnation: "a"}
	server := httptest.NewUnstartedServer(NewService(s.members["a"], id, s.logger()))
	server.Config.Protocols = new(http.Protocols)
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Start()
	defer server.Close()
	peers := NewPeers(id, nil, s.logger())
	defer peers.Close()
	_, err := peers.Ask(soon(t), persistence.MemberRow{Incarnation: "a", URL: server.URL}, &engine.Orders{signal(s.taskOf("a"))})
	require.ErrorContains(t, err, "wrong or missing")
}

// An impostor has an address that a member had, and answers as if it were one.
func TestAnImpostorIsAskedNothingAndBelievedNothing(t *testing.T) {
	s := newStage(t, "a", "b")
	var mu sync.Mutex
	var heard bytes.Buffer
	for name, answer := range map[string]func(w http.ResponseWriter, r *http.Request){
		"as a member": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", r.Header.Get("Content-Type"))
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush()
			body, _ := io.ReadAll(r.Body)
			mu.Lock()
			defer mu.Unlock()
			_ = r.Header.Write(&heard)
			heard.Write(body)
		},
		"with the asker's own proof": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", r.Header.Get("Content-Type"))
			w.Header().Set(proofHeader, r.Header.Get(proofHeader))
		},
		"by sending it elsewhere": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, s.members["b"].server.URL+r.URL.Path, http.StatusTemporaryRedirect)
		},
	} {
		t.Run(name, func(t *testing.T) {
			impostor := httptest.NewUnstartedServer(http.HandlerFunc(answer))
			impostor.Config.Protocols = new(http.Protocols)
			impostor.Config.Protocols.SetUnencryptedHTTP2(true)
			impostor.Start()
			defer impostor.Close()
			peers := NewPeers(ours, nil, s.logger())
			defer peers.Close()
			to := persistence.MemberRow{Incarnation: "b", Name: "b", URL: impostor.URL}
			order := signal(s.taskOf("b"))
			order.Command = flow.Signal{Key: "confidential", Value: []byte("1")}
			_, err := peers.Ask(soon(t), to, &engine.Orders{order})
			require.ErrorIs(t, err, ErrAway)
			for _, err := range peers.Watch(soon(t), to, engine.Follow{Task: "t"}) {
				require.ErrorIs(t, err, ErrAway)
			}
		})
	}
	require.Empty(t, s.members["b"].effects)
	require.NotEmpty(t, heard.String())
	require.NotContains(t, heard.String(), ours.Secret)
	require.NotContains(t, heard.String(), "confidential")
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
	first, err := peers.line(to)
	require.NoError(t, err)
	second, err := peers.line(to)
	require.NoError(t, err)
	require.Same(t, first, second)
	peers.Keep(func(string) bool { return false })
	<-first.over
	third, err := peers.line(to)
	require.NoError(t, err)
	require.NotSame(t, first, third)
}

func TestAQuestionThatNobodyWaitsForAnyLongerIsDropped(t *testing.T) {
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

func TestALargeValueGetsThere(t *testing.T) {
	s := newStage(t, "a", "b")
	large := signal(s.taskOf("b"))
	large.Command = flow.Signal{Key: "k", Value: []byte(`"` + strings.Repeat("x", 10<<20) + `"`)}
	_, err := s.members["a"].router.Do(soon(t), large)
	require.NoError(t, err)
	require.Equal(t, large.Command, s.members["b"].effects[0].Command)
}

// huge is more than a line carries at once.
func huge() []byte { return []byte(`"` + strings.Repeat("x", mostRead) + `"`) }

func TestWhatIsTooLargeForALineIsRefusedByItself(t *testing.T) {
	s := newStage(t, "a", "b")
	a, b := s.members["a"].router, s.members["b"]
	waits, task := make(chan struct{}), s.taskOf("b")
	b.before = func(context.Context) { <-waits }
	beside := make(chan error)
	go func() {
		_, err := a.Do(soon(t), signal(task))
		beside <- err
	}()
	eventually(t, func() bool { b.mu.Lock(); defer b.mu.Unlock(); return len(b.effects) == 1 })

	large := engine.Order{Task: task, Command: flow.Signal{Key: "k", Value: huge()}}
	_, err := a.Do(soon(t), large)
	require.Equal(t, flow.Limit, flow.ErrorKindOf(err))
	require.ErrorContains(t, err, "67108") // bytes
	outcomes, err := a.DoAll(soon(t), engine.Orders{large})
	require.NoError(t, err)
	require.Equal(t, flow.Limit, flow.ErrorKindOf(outcomes[0].Err))
	close(waits)
	require.NoError(t, <-beside, "the line is the same")
	require.Zero(t, s.log.count("a line to another member was lost"))
}

func TestAnAnswerThatIsTooLargeForALineIsRefusedByItself(t *testing.T) {
	s := newStage(t, "a", "b")
	a, task := s.members["a"].router, s.taskOf("b")
	job := func(size int) *engine.Claimed {
		return &engine.Claimed{Token: "t", Job: engine.Job{Input: []byte(`"` + strings.Repeat("x", size) + `"`)}}
	}
	orders := engine.Orders{signal(task), signal(task), signal(task), signal(task)}
	for i := range orders {
		orders[i].Request = fmt.Sprint(i)
	}
	s.members["b"].with(func() {
		for i, size := range []int{1, mostRead, mostRead * 2 / 3, mostRead / 2} {
			s.members["b"].done[fmt.Sprint(i)] = engine.Outcome{Job: job(size)}
		}
	})
	outcomes, err := a.DoAll(soon(t), orders)
	require.NoError(t, err)
	require.NoError(t, outcomes[0].Err)
	require.Equal(t, flow.Limit, flow.ErrorKindOf(outcomes[1].Err), "by itself it is too large")
	require.NoError(t, outcomes[2].Err)
	require.Equal(t, flow.Busy, flow.ErrorKindOf(outcomes[3].Err), "with the others it is: asked for again it is answered")
	again, err := a.DoAll(soon(t), orders[3:])
	require.NoError(t, err)
	require.Len(t, again[0].Job.Job.Input, mostRead/2+2)
	require.Zero(t, s.log.count("a line to another member was lost"))
}

func TestAnOutboxIsBounded(t *testing.T) {
	o := newOutbox()
	for range mostItems {
		require.True(t, o.offer(item{number: 1}))
	}
	require.False(t, o.offer(item{number: 2}))
	waiting, cancel := context.WithCancel(t.Context())
	cancel()
	require.False(t, o.room(waiting))
	f, ok := o.next(t.Context())
	require.True(t, ok)
	require.True(t, o.room(waiting))
	require.True(t, o.offer(item{number: 3}))
	sent := len(f)
	for sent < mostItems+1 {
		f, ok = o.next(t.Context())
		require.True(t, ok)
		sent += len(f)
	}
	require.Equal(t, int64(3), f[len(f)-1].number)

	o = newOutbox()
	big := make([]byte, mostBytes/2)
	require.True(t, o.offer(item{bytes: big}))
	require.True(t, o.offer(item{bytes: big}))
	require.False(t, o.offer(item{}))
	f, _ = o.next(t.Context())
	require.Len(t, f, 1, "what is large goes alone")
}

func TestFramesArriveAsTheyWereSent(t *testing.T) {
	sent := &frame{{number: 1, left: 5, bytes: []byte("question")}, {number: 1 << 40}, {bytes: []byte("told")}}
	b, err := frames{}.Marshal(sent)
	require.NoError(t, err)
	var got frame
	require.NoError(t, frames{}.Unmarshal(b, &got))
	require.Equal(t, *sent, got)
	require.ErrorContains(t, frames{}.Unmarshal(b[:len(b)-1], &got), "cannot be read")
	require.ErrorContains(t, frames{}.Unmarshal(append(b, 0), &got), "something follows its end")
}

// BenchmarkForwardedOrder is what it takes to have another member carry out an order that costs nothing itself.
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
