package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
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

// stage is a cluster of members whose engines are fakes, on real listeners. Who owns what is the truth, which the views of
// members need not tell.
type stage struct {
	t       testing.TB
	truth   atomic.Pointer[View]
	journal *journal
	members map[string]*actorless
	ahead   time.Duration // of this host's clock, the store's
	log     lines
}

var ours = Identity{Cluster: "test", Secret: "secret"}

// newStage has members by name, and whoever owns what at the beginning.
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
		t.Cleanup(m.router.Close) // before the servers, which wait for those who ask
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
	m.router = NewRouter(RouterConfig{Peers: peers, Journals: s.journal, Plans: plans{}, Log: s.logger(), Patience: 10 * time.Second})
	peers.Now = m.router.Now
	s.members[name] = m
	s.t.Cleanup(m.server.Close)
}

func (s *stage) logger() *slog.Logger { return slog.New(slog.NewTextHandler(&s.log, nil)) }

// view of all members of the stage.
func (s *stage) view(generation int64, owners []string) *View {
	c := &persistence.Cluster{Generation: generation, Owners: owners}
	for name, m := range s.members {
		c.Members = append(c.Members, persistence.MemberRow{Incarnation: name, Name: name, URL: m.server.URL, JoinedAt: 1000, Until: 9000})
	}
	return NewView(c)
}

// move has a task belong to somebody else from now on. No view tells.
func (s *stage) move(task, to string) {
	v := s.truth.Load()
	owners := slices.Clone(v.Owners)
	owners[persistence.ShardOf(task)] = to
	next := *v
	next.Generation, next.Owners = v.Generation+1, owners
	s.truth.Store(&next)
}

// taskOf finds an id that belongs to a member.
func (s *stage) taskOf(name string) string {
	for i := 0; ; i++ {
		id := fmt.Sprintf("task-%s-%d", name, i)
		if to, _ := s.truth.Load().OwnerOf(id); to.Incarnation == name {
			return id
		}
	}
}

// lying are views that need not be true. When somebody looks for a better one they become so, unless they are stubborn.
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

// actorless is a member that does what is asked without any actors, for the tasks that it really owns.
type actorless struct {
	s      *stage
	name   string
	server *httptest.Server
	router *Router
	views  *lying

	mu      sync.Mutex
	done    map[string]engine.Outcome // by request
	effects []engine.Order
	asked   int // how often
	busy    int // how often it will say so
	before  func(ctx context.Context)
	after   func()
	errands engine.Errands
	credits []engine.Credits
	stirred []string
	offered []engine.Offer
	heard   []engine.News
}

func (m *actorless) owns(task string) error {
	if to, _ := m.s.truth.Load().OwnerOf(task); to.Incarnation != m.name {
		return flow.Errorf(flow.Moved, "task %s has moved to another member: ask again", task)
	}
	return nil
}

func (m *actorless) with(f func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f()
}

func (m *actorless) StartTask(ctx context.Context, n engine.NewTask) (engine.Started, error) {
	id, err := n.TaskID(flowID)
	if err == nil {
		err = m.owns(id)
	}
	if err != nil {
		return engine.Started{}, err
	}
	started := engine.Started{Task: id, Created: m.s.journal.begin(id)}
	m.hooks(ctx)
	return started, nil
}

func (m *actorless) hooks(ctx context.Context) {
	var before func(context.Context)
	var after func()
	m.with(func() { before, after = m.before, m.after })
	if before != nil {
		before(ctx)
	}
	if after != nil {
		after()
	}
}

func (m *actorless) Do(ctx context.Context, o engine.Order) (engine.Outcome, error) {
	if err := m.owns(o.Task); err != nil {
		return engine.Outcome{}, err
	}
	if m.tooMuch() {
		return engine.Outcome{}, flow.Errorf(flow.Busy, "too much to do")
	}
	if _, refused := o.Command.(flow.RetryTask); refused {
		return engine.Outcome{}, flow.Errorf(flow.Conflict, "it has not failed")
	}
	out := m.carryOut(o)
	m.hooks(ctx)
	return out, ctx.Err()
}

func (m *actorless) tooMuch() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.busy--
	return m.busy >= 0
}

// die is the end of a member's host.
func (m *actorless) die() {
	m.server.Listener.Close()
	m.server.CloseClientConnections()
}

func (m *actorless) carryOut(o engine.Order) engine.Outcome {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asked++
	if out, known := m.done[o.Request]; known {
		return out
	}
	m.effects = append(m.effects, o)
	out := engine.Outcome{First: len(m.effects)}
	if o.Request != "" {
		m.done[o.Request] = out
	}
	return out
}

func (m *actorless) DoAll(ctx context.Context, orders engine.Orders) (engine.Outcomes, error) {
	outcomes := make(engine.Outcomes, len(orders))
	for i, o := range orders {
		out, err := m.Do(ctx, o)
		out.Err = err
		outcomes[i] = out
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		return nil, ctx.Err()
	}
	return outcomes, nil
}

func (m *actorless) Poll(context.Context, engine.Poll) (engine.Jobs, error) {
	return engine.Jobs{{Token: m.name}}, nil
}

func (m *actorless) Watch(ctx context.Context, task string, after int64) iter.Seq2[engine.Row, error] {
	return func(yield func(engine.Row, error) bool) {
		if err := m.owns(task); err != nil {
			yield(engine.Row{}, err)
			return
		}
		for {
			rows, ended, grown := m.s.journal.read(task, after)
			for _, row := range rows {
				if after = row.Seq; !yield(engine.Row(row), nil) {
					return
				}
			}
			if ended {
				return
			}
			select {
			case <-grown:
			case <-ctx.Done():
				return
			}
		}
	}
}

func (m *actorless) Await(ctx context.Context, task string) (flow.TaskStatus, error) {
	for {
		if err := m.owns(task); err != nil {
			return "", err
		}
		_, ended, grown := m.s.journal.read(task, 0)
		if ended {
			return flow.TaskCompleted, nil
		}
		select {
		case <-grown:
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}

func (m *actorless) Appears(ctx context.Context, task string) error {
	for {
		rows, _, grown := m.s.journal.read(task, 0)
		if len(rows) > 0 {
			return nil
		}
		select {
		case <-grown:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (m *actorless) Now() time.Time { return time.Now().Add(m.s.ahead) }
func (m *actorless) Ready() error   { return nil }

func (m *actorless) Carry(_ context.Context, errands engine.Errands) error {
	m.with(func() { m.errands = append(m.errands, errands...) })
	return nil
}
func (m *actorless) Credited(c *engine.Credits) {
	m.with(func() { m.credits = append(m.credits, *c) })
}
func (m *actorless) Heard(news engine.News) {
	m.with(func() { m.heard = append(m.heard, news) })
}
func (m *actorless) Stirred(keys []string) {
	m.with(func() { m.stirred = append(m.stirred, keys...) })
}
func (m *actorless) Offered(jobs []engine.Offer) {
	m.with(func() { m.offered = append(m.offered, jobs...) })
}

const flowID = "flow"

type plans struct{ err error }

func (p plans) Plan(context.Context, string) (*flow.Plan, error) {
	return &flow.Plan{FlowID: flowID}, p.err
}

// journal is what all members share: rows of tasks.
type journal struct {
	mu    sync.Mutex
	tasks map[string]*stored
}

type stored struct {
	rows  []persistence.Row
	ended bool
	grown chan struct{}
}

// task is called with the lock.
func (j *journal) task(id string) *stored {
	if j.tasks[id] == nil {
		j.tasks[id] = &stored{grown: make(chan struct{})}
	}
	return j.tasks[id]
}

// begin says whether there was no such task.
func (j *journal) begin(id string) bool {
	j.mu.Lock()
	begun := len(j.task(id).rows) > 0
	j.mu.Unlock()
	if !begun {
		j.add(id, false)
	}
	return !begun
}

func (j *journal) add(id string, end bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	t := j.task(id)
	t.rows = append(t.rows, persistence.Row{Seq: int64(len(t.rows) + 1), At: 7, Events: []byte("event")})
	t.ended = end
	close(t.grown)
	t.grown = make(chan struct{})
}

func (j *journal) read(id string, after int64) (rows []persistence.Row, ended bool, grown <-chan struct{}) {
	j.mu.Lock()
	defer j.mu.Unlock()
	t := j.task(id)
	return slices.Clone(t.rows[min(after, int64(len(t.rows))):]), t.ended, t.grown
}

func (j *journal) Rows(_ context.Context, task string, after int64, _ persistence.Part) ([]persistence.Row, error) {
	rows, _, _ := j.read(task, after)
	return rows, nil
}

func (j *journal) Task(_ context.Context, id string) (*persistence.TaskRow, error) {
	rows, ended, _ := j.read(id, 0)
	if len(rows) == 0 {
		return nil, persistence.ErrNotFound
	}
	row := &persistence.TaskRow{ID: id}
	if row.Status = string(flow.TaskRunning); ended {
		row.Status = string(flow.TaskCompleted)
	}
	return row, nil
}

// lines are those of a log.
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

// soon fails a test that would hang.
func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithCancelCause(t.Context())
	timer := time.AfterFunc(20*time.Second, func() { cancel(fmt.Errorf("it took too long")) })
	t.Cleanup(func() { timer.Stop(); cancel(nil) })
	return ctx
}

func eventually(t *testing.T, cond func() bool) {
	t.Helper()
	require.Eventually(t, cond, 20*time.Second, time.Millisecond)
}
