package cluster

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// stage is a cluster of members with fake engines and real listeners. truth has the real owners;
// the views of members may differ from it.
type stage struct {
	t       testing.TB
	truth   atomic.Pointer[View]
	journal *journal
	members map[string]*actorless
	ahead   time.Duration // difference between the store's clock and this host's
	log     lines
}

var ours = Identity{Cluster: "test", Secret: "secret"}

// newStage returns a stage with named members, and random owners of shards.
func newStage(t testing.TB, names ...string) *stage {
	s := &stage{t: t, journal: &journal{tasks: map[string]*stored{}}, members: map[string]*actorless{}}
	for _, name := range names {
		s.join(name)
	}
	owners := make([]string, persistence.Shards)
	for i := range owners {
		owners[i] = names[i%len(names)]
	}
	s.truth.Store(s.view(1, owners))
	for _, m := range s.members {
		m.views.show(s.truth.Load())
		m.router.Start(m.name, m, m.views)
		t.Cleanup(m.router.Close) // before the servers, which wait for their clients
	}
	return s
}

func (s *stage) join(name string) {
	m := &actorless{s: s, name: name, done: map[string]engine.Outcome{}, views: &lying{s: s, changed: make(chan struct{})}}
	id := ours
	id.Incarnation = name
	service := NewService(m, id, s.logger())
	m.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { service.ServeHTTP(w, r) }))
	m.server.Config.Protocols = new(http.Protocols)
	m.server.Config.Protocols.SetHTTP1(true)
	m.server.Config.Protocols.SetUnencryptedHTTP2(true)
	m.server.Start()
	peers := NewPeers(ours, nil, s.logger())
	m.router = NewRouter(RouterConfig{Peers: peers, Journals: s.journal, Plans: plans{}, Log: s.logger(), Patience: time.Minute})
	peers.Now = m.router.Now
	s.members[name] = m
	s.t.Cleanup(m.server.Close)
}

func (s *stage) logger() *slog.Logger { return slog.New(slog.NewTextHandler(&s.log, nil)) }

// view returns a view of all members of the stage.
func (s *stage) view(generation int64, owners []string) *View {
	c := &persistence.Cluster{Generation: generation, Owners: owners}
	for name, m := range s.members {
		c.Members = append(c.Members, persistence.MemberRow{Incarnation: name, Name: name, URL: m.server.URL, JoinedAt: 1000, Until: 9000})
	}
	return NewView(c)
}

// move changes the owner of a task without changing any view.
func (s *stage) move(task, to string) {
	v := s.truth.Load()
	owners := slices.Clone(v.Owners)
	owners[persistence.ShardOf(task)] = to
	next := *v
	next.Generation, next.Owners = v.Generation+1, owners
	s.truth.Store(&next)
}

// taskOf returns the id of a task that a member owns.
func (s *stage) taskOf(name string) string {
	for i := 0; ; i++ {
		id := fmt.Sprintf("task-%s-%d", name, i)
		if to, _ := s.truth.Load().OwnerOf(id); to.Incarnation == name {
			return id
		}
	}
}

// lying is a Views with views that may be wrong. They are corrected when a newer view is requested,
// unless they are stubborn.
type lying struct {
	s        *stage
	mu       sync.Mutex
	v        *View
	changed  chan struct{}
	stubborn bool
}

func (l *lying) show(v *View) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.v = v
	close(l.changed)
	l.changed = make(chan struct{})
}

func (l *lying) Current() *View {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.v
}

func (l *lying) Changed(after int64) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.v.Generation > after {
		now := make(chan struct{})
		close(now)
		return now
	}
	return l.changed
}

func (l *lying) Look() {
	l.mu.Lock()
	stubborn, v := l.stubborn, l.v
	l.mu.Unlock()
	if truth := l.s.truth.Load(); !stubborn && truth.Generation > v.Generation {
		l.show(truth)
	}
}

const flowID = "flow"

// lines collects the lines of a log.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lines) count(what string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Count(l.text.Bytes(), []byte(what))
}

func signal(task string) engine.Order {
	return engine.Order{Task: task, Command: flow.Signal{Key: "k", Value: []byte("1")}}
}

// soon returns a context that fails a hanging test.
func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithCancelCause(t.Context())
	timer := time.AfterFunc(time.Minute, func() { cancel(fmt.Errorf("it took too long")) })
	t.Cleanup(func() { timer.Stop(); cancel(nil) })
	return ctx
}

func eventually(t *testing.T, cond func() bool) {
	t.Helper()
	require.Eventually(t, cond, 20*time.Second, time.Millisecond)
}
