package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/host"
	"github.com/troupe-engine/troupe/persistence"
)

// Views provides the views of the cluster.
type Views interface {
	// Current returns the newest view, never nil.
	Current() *View
	// Changed returns a channel that is closed when the generation of the view differs from after.
	Changed(after int64) <-chan struct{}
	// Look requests a newer view from the store, without waiting.
	Look()
}

// Journals is the part of the store that the router reads when a task's owner is unreachable.
type Journals interface {
	Task(ctx context.Context, id string) (*persistence.TaskRow, error)
	Rows(ctx context.Context, task string, after int64, p persistence.Part) ([]persistence.Row, error)
}

// Lines sends requests to other members. Peers is the implementation for production.
type Lines interface {
	// Ask sends a request to another member and returns the response. It returns ErrAway if the
	// member is unreachable, or was lost before it answered. A refusal is also an error.
	Ask(ctx context.Context, to persistence.MemberRow, q engine.Message) (engine.Message, error)
	// Tell sends another member a message without a response. It never blocks, and the message may
	// be lost.
	Tell(to persistence.MemberRow, m engine.Message)
	// Watch returns the rows of a journal from another member as they are written. The sequence
	// ends when that member ends it, or with an error if the member is lost.
	Watch(ctx context.Context, to persistence.MemberRow, q engine.Follow) iter.Seq2[engine.Row, error]
	// Keep closes the connections to members that are not alive.
	Keep(alive func(incarnation string) bool)
	// Close closes all connections and waits for their goroutines.
	Close()
}

// Plans finds the plan of a version.
type Plans interface {
	Plan(ctx context.Context, version string) (*flow.Plan, error)
}

// RouterConfig configures a Router. All fields but TTL, Patience and Host are required.
type RouterConfig struct {
	Peers    Lines
	Journals Journals
	Plans    Plans
	Log      *slog.Logger
	// TTL is the TTL of leases; 0 means DefaultTTL.
	TTL time.Duration
	// Patience is how long the router tries to reach an owner for a caller without a deadline.
	// Default 10 s.
	Patience time.Duration
	Host     host.Host
}

// Router is the engine of the whole cluster. It sends each request to the member that owns the
// task.
type Router struct {
	cfg         RouterConfig
	place       atomic.Pointer[localMember] // nil before Start
	started     chan struct{}
	clusterSeen atomic.Bool // the cluster was whole at some time since this member joined
	ctx         context.Context
	cancel      context.CancelFunc
	work        host.Group

	forwards forwardCounter

	mu     sync.Mutex
	guards map[*ownerGuard]struct{} // guards of requests that end when the owner of a task changes

	unresponsive unresponsiveMembers
	unreachable  unreachableMembers
}

// localMember is the member on this host.
type localMember struct {
	me    string // incarnation of the member
	local engine.Engine
	views Views
	ttl   time.Duration // TTL of leases
	// first seen lease end of other incarnations; 0 means that hasMet is known to be true
	leaseSightings sync.Map
}

var _ engine.Engine = (*Router)(nil)

// NewRouter returns a router that answers nothing before Start. The local member needs the router
// for its own creation.
func NewRouter(cfg RouterConfig) *Router {
	cfg.Patience, cfg.TTL = cmp.Or(cfg.Patience, 10*time.Second), cmp.Or(cfg.TTL, DefaultTTL)
	r := &Router{cfg: cfg, started: make(chan struct{}), forwards: newForwards(),
		guards:       map[*ownerGuard]struct{}{},
		unresponsive: unresponsiveMembers{until: map[string]time.Time{}},
		unreachable:  unreachableMembers{next: map[string]time.Time{}}}
	r.work.Host = &r.cfg.Host
	r.ctx, r.cancel = context.WithCancel(context.Background())
	return r
}

// Start sets the local member, its incarnation and its views. Call it before the member owns
// anything.
func (r *Router) Start(me string, local engine.Engine, views Views) {
	r.place.Store(&localMember{me: me, local: local, views: views, ttl: r.cfg.TTL})
	first := views.Current()
	close(r.started)
	r.work.Run(func() { r.followViews(views, first) })
}

// Close ends all waits for other members, and closes the connections.
func (r *Router) Close() {
	r.cancel()
	r.work.Wait()
	r.checkGuards()
	r.cfg.Peers.Close()
}

// followViews makes the guards check their owners when the view changes, and closes connections to
// members that are gone.
func (r *Router) followViews(views Views, v *View) {
	for r.ctx.Err() == nil {
		r.cfg.Peers.Keep(v.Lives)
		r.unreachable.forgetGone(v.Lives)
		changed := views.Changed(v.Generation)
		r.cfg.Host.Wait(func() bool { return host.Closed(changed) || r.ctx.Err() != nil })
		select {
		case <-changed:
		case <-r.ctx.Done():
		}
		v = views.Current()
		r.checkGuards()
	}
}

// checkGuards makes every guard check the owner of its task.
func (r *Router) checkGuards() {
	r.mu.Lock()
	guards := slices.Collect(maps.Keys(r.guards))
	r.mu.Unlock()
	for _, g := range guards {
		g.checkOwner()
	}
}

// errNobody reports that a task has no owner at the moment, because its shard is moving.
var errNobody = errors.New("no member has it for the moment")

// findOwner returns the known owner of a task. here reports whether this member is the owner.
func (p *localMember) findOwner(task string) (to persistence.MemberRow, here bool, err error) {
	v := p.views.Current()
	to, known := v.OwnerOf(task)
	if !known || to.Incarnation != p.me && !p.hasMet(v, to) {
		return to, false, errNobody
	}
	return to, to.Incarnation == p.me, nil
}

// hasMet reports whether another member joined this store, or renewed its lease, after this member
// joined. A restored copy of a store lists members that live on the original, and these must get no
// requests. The result stays true, even if the store's clock is set back.
func (p *localMember) hasMet(v *View, other persistence.MemberRow) bool {
	first, known := p.leaseSightings.LoadOrStore(other.Incarnation, other.Until)
	if known && first == int64(0) {
		return true
	}
	me, _ := v.Member(p.me)
	met := first != other.Until || other.JoinedAt > me.JoinedAt || other.Until > me.JoinedAt+p.ttl.Milliseconds()
	if met {
		p.leaseSightings.Store(other.Incarnation, int64(0))
	}
	return met
}

// awaitStart waits until Start was called.
func (r *Router) awaitStart(ctx context.Context) (*localMember, error) {
	if p := r.place.Load(); p != nil {
		return p, nil
	}
	r.cfg.Host.Wait(func() bool { return host.Closed(r.started) || r.ctx.Err() != nil || ctx.Err() != nil })
	select {
	case <-r.started:
		return r.place.Load(), nil
	case <-r.ctx.Done():
		return nil, errLeaving
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

var errLeaving = flow.Errorf(flow.Busy, "the member is shutting down")

// errUnable reports that the owner cannot work at the moment.
var errUnable = errors.New("the member that has it cannot do its work for the moment")

// ofAnother adds errUnable to an ErrUnavailable from another member, so that the call is retried. A
// member that cannot reach its store will hand its tasks to another one.
func ofAnother(err error) error {
	if errors.Is(err, engine.ErrUnavailable) {
		return fmt.Errorf("%w: %w", errUnable, err)
	}
	return err
}

// isRetryable reports whether a failure is worth another try. The task may have another owner soon,
// or a wait of the other member was cut short.
func isRetryable(err error) bool {
	return err != nil && (flow.ErrorKindOf(err) == flow.Moved || errors.Is(err, ErrAway) ||
		errors.Is(err, errNobody) || errors.Is(err, errUnable) ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded))
}

// These are the delays between two tries. A new view ends a delay early.
const (
	firstPause = 10 * time.Millisecond
	mostPause  = 500 * time.Millisecond
	// latePause is the longest delay for a caller that has tried for eagerFor, such as one that
	// waits for the end of a task. Each try also reads the store.
	latePause = 5 * time.Second
	eagerFor  = time.Minute
)

// retryBackoff computes the delays of one caller, which double each time.
type retryBackoff struct {
	startedAt time.Time
	last      time.Duration
}

// nextDelay returns the next delay.
func (p *retryBackoff) nextDelay(now time.Time) time.Duration {
	if p.startedAt.IsZero() {
		p.startedAt = now
	}
	most := mostPause
	if now.Sub(p.startedAt) > eagerFor {
		most = latePause
	}
	p.last = min(max(2*p.last, firstPause), most)
	return p.last
}

// waitForView requests a newer view, and waits for a view or for the next delay. It returns false
// if ctx or the router has ended.
func (r *Router) waitForView(ctx context.Context, p *localMember, seen int64, of *retryBackoff) bool {
	p.views.Look()
	over, stop := r.cfg.Host.Timer(of.nextDelay(r.cfg.Host.Now()))
	defer stop()
	changed := p.views.Changed(seen)
	r.cfg.Host.Wait(func() bool {
		return host.Closed(over) || host.Closed(changed) || ctx.Err() != nil || r.ctx.Err() != nil
	})
	select {
	case <-over:
	case <-changed:
	case <-ctx.Done():
	case <-r.ctx.Done():
	}
	return ctx.Err() == nil && r.ctx.Err() == nil
}

// Now returns the store's time.
func (r *Router) Now() time.Time {
	if p := r.place.Load(); p != nil {
		return p.local.Now()
	}
	return time.Now()
}

// Ready returns nil if the member on this host can work. After a join, the cluster must have been
// whole once, because tasks of a dead member may have no owner before. A rolling restart waits for
// this.
func (r *Router) Ready() error {
	p := r.place.Load()
	if p == nil {
		return flow.Errorf(flow.Busy, "the member is starting")
	}
	if !r.clusterSeen.Load() {
		if !p.views.Current().Whole(p.me) {
			return flow.Errorf(flow.Busy, "the member has just joined, and tasks of one that died wait for the end of its lease")
		}
		r.clusterSeen.Store(true)
	}
	return p.local.Ready()
}

// Poll claims jobs of tasks of any member for a poller of this member.
func (r *Router) Poll(ctx context.Context, q engine.Poll) (engine.Jobs, error) {
	p, err := r.awaitStart(ctx)
	if err != nil {
		return nil, err
	}
	return p.local.Poll(ctx, q)
}
