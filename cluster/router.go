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

// Views is who tells the router how the cluster looks.
type Views interface {
	// Current is the newest view that is known; never nil.
	Current() *View
	// Changed is closed when there is a view of another generation than that.
	Changed(after int64) <-chan struct{}
	// Look has the store asked for a newer view soon; it does not wait.
	Look()
}

// Journals is what the router reads itself when a task's owner cannot be asked.
type Journals interface {
	Task(ctx context.Context, id string) (*persistence.TaskRow, error)
	Rows(ctx context.Context, task string, after int64, p persistence.Part) ([]persistence.Row, error)
}

// Lines is how other members are asked. Peers are the real ones.
type Lines interface {
	// Ask asks another member, and waits for its answer. ErrAway: it could not be reached, or was
	// lost before it answered. What it refuses is an error.
	Ask(ctx context.Context, to persistence.MemberRow, q engine.Message) (engine.Message, error)
	// Tell tells another member something that it does not answer; best effort, it never blocks.
	Tell(to persistence.MemberRow, m engine.Message)
	// Watch reads the rows of a journal that another member tells as it grows. It ends when that
	// one says so, by an error when it is lost before.
	Watch(ctx context.Context, to persistence.MemberRow, q engine.Follow) iter.Seq2[engine.Row, error]
	// Keep ends the lines to all but those who live.
	Keep(alive func(incarnation string) bool)
	// Close ends all lines and waits for what they did.
	Close()
}

// Plans finds the plan of a version.
type Plans interface {
	Plan(ctx context.Context, version string) (*flow.Plan, error)
}

// RouterConfig says what a router asks. All but TTL, Patience and Host is needed.
type RouterConfig struct {
	Peers    Lines
	Journals Journals
	Plans    Plans
	Log      *slog.Logger
	// TTL is that of leases. 0 = DefaultTTL
	TTL time.Duration
	// Patience is how long it is tried to reach a task's owner for a caller who sets no deadline.
	// Default 10 s.
	Patience time.Duration
	Host     host.Host
}

// Router is the engine of a whole cluster: what is asked of it goes to the member that owns the
// task, this one or another.
type Router struct {
	cfg         RouterConfig
	place       atomic.Pointer[localMember] // nil before Start
	started     chan struct{}
	clusterSeen atomic.Bool // the cluster has been, since this member joined
	ctx         context.Context
	cancel      context.CancelFunc
	work        host.Group

	forwards forwardCounter

	mu     sync.Mutex
	guards map[*ownerGuard]struct{} // what ends when somebody else owns a task

	unresponsive unresponsiveMembers
	unreachable  unreachableMembers
}

// localMember is where the router is.
type localMember struct {
	me             string // incarnation of the member on this host
	local          engine.Engine
	views          Views
	ttl            time.Duration // of leases
	leaseSightings sync.Map      // when the leases of other incarnations ran out, as first seen; 0 = they were met
}

var _ engine.Engine = (*Router)(nil)

// NewRouter makes a router that answers nothing before Start: the member that it asks on this host
// has to know it first.
func NewRouter(cfg RouterConfig) *Router {
	cfg.Patience, cfg.TTL = cmp.Or(cfg.Patience, 10*time.Second), cmp.Or(cfg.TTL, DefaultTTL)
	r := &Router{cfg: cfg, started: make(chan struct{}), forwards: newForwards(), guards: map[*ownerGuard]struct{}{}, unresponsive: unresponsiveMembers{until: map[string]time.Time{}}, unreachable: unreachableMembers{next: map[string]time.Time{}}}
	r.work.Host = &r.cfg.Host
	r.ctx, r.cancel = context.WithCancel(context.Background())
	return r
}

// Start tells the router which incarnation of a member it asks on this host, and who tells it of
// the others. It comes before that member owns anything.
func (r *Router) Start(me string, local engine.Engine, views Views) {
	r.place.Store(&localMember{me: me, local: local, views: views, ttl: r.cfg.TTL})
	first := views.Current()
	close(r.started)
	r.work.Run(func() { r.followViews(views, first) })
}

// Close ends what waits for other members.
func (r *Router) Close() {
	r.cancel()
	r.work.Wait()
	r.checkGuards()
	r.cfg.Peers.Close()
}

// followViews has those who wait look again whenever the view has changed, and ends lines to
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

// checkGuards has everybody look whose question is for the owner of a task alone.
func (r *Router) checkGuards() {
	r.mu.Lock()
	guards := slices.Collect(maps.Keys(r.guards))
	r.mu.Unlock()
	for _, g := range guards {
		g.checkOwner()
	}
}

// errNobody: nobody owns the task for the moment, because its shard is changing hands.
var errNobody = errors.New("no member has it for the moment")

// findOwner is who owns a task as far as it is known here.
func (p *localMember) findOwner(task string) (to persistence.MemberRow, here bool, err error) {
	v := p.views.Current()
	to, known := v.OwnerOf(task)
	if !known || to.Incarnation != p.me && !p.hasMet(v, to) {
		return to, false, errNobody
	}
	return to, to.Incarnation == p.me, nil
}

// hasMet reports whether another member came, or renewed its lease, on this store since this one
// came. A store that was restored from a copy names members that live on the original, and would
// carry out there what is asked of them. Who was met once stays so, also when the store's clock is
// put back.
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

// awaitStart waits until the router has been started.
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

// errUnable: the member that was asked cannot do its work for now.
var errUnable = errors.New("the member that has it cannot do its work for the moment")

// ofAnother is what an error of another member means here: one that has lost the store loses its
// tasks, too.
func ofAnother(err error) error {
	if errors.Is(err, engine.ErrUnavailable) {
		return fmt.Errorf("%w: %w", errUnable, err)
	}
	return err
}

// isRetryable reports whether what failed is worth another try: somebody else may own the task now,
// or soon does, or the one who was asked has stopped waiting.
func isRetryable(err error) bool {
	return err != nil && (flow.ErrorKindOf(err) == flow.Moved || errors.Is(err, ErrAway) || errors.Is(err, errNobody) || errors.Is(err, errUnable) ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded))
}

// The pauses between two tries. A new view ends them.
const (
	firstPause = 10 * time.Millisecond
	mostPause  = 500 * time.Millisecond
	// latePause is the longest one of who has tried for longer than eagerFor, as those do who wait
	// for the end of a task. Each time they also ask the store.
	latePause = 5 * time.Second
	eagerFor  = time.Minute
)

// retryBackoff are those of one caller, each twice as long as the one before.
type retryBackoff struct {
	startedAt time.Time
	last      time.Duration
}

// nextDelay is how long the next one is.
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

// waitForView has a newer view looked for, and waits for one, or for a while. False: ctx has ended,
// or the router.
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

// Now is the store's time.
func (r *Router) Now() time.Time {
	if p := r.place.Load(); p != nil {
		return p.local.Now()
	}
	return time.Now()
}

// Ready reports whether the member on this host can do its work. One that has just joined is ready
// when the cluster was whole once: until then tasks of one that died may be nobody's, and whoever
// restarts members one after the other has to wait.
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

// Poll claims jobs of any member's tasks for a poller of this one.
func (r *Router) Poll(ctx context.Context, q engine.Poll) (engine.Jobs, error) {
	p, err := r.awaitStart(ctx)
	if err != nil {
		return nil, err
	}
	return p.local.Poll(ctx, q)
}
