package actors

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/bounded"
	"github.com/troupe-engine/troupe/internal/goroutines"
	"github.com/troupe-engine/troupe/internal/tenure"
	"github.com/troupe-engine/troupe/persistence"
)

// Config configures a member. Only Store is required.
type Config struct {
	Store  persistence.Store
	Reader *persistence.Reader // a new one if nil
	// Name is the member's name in logs and in the store.
	Name string
	// Cluster is the name of the member's cluster. URL is where other members reach this one.
	// Gossip is its gossip address (host and port). The store shows all three and the program's
	// Version to the other members.
	Cluster, URL, Gossip, Version string
	// Seal is equal for members with the same secret. The store refuses members with another one.
	Seal string
	// Others reaches the tasks and jobs of other members. If nil, there are none and the member
	// owns all tasks. If set and the store can be shared, the member owns no task before Gain.
	Others Others
	// Heard receives news from other members that is kept outside the actors. May be nil.
	Heard func(engine.News)
	// Gained is called when the member owns more shards; it must not block. May be nil.
	Gained func()
	// Changed is called when a renewal of the lease shows that members, or owners of shards, have
	// changed. It must not block.
	Changed func(persistence.Pulse)
	Limits  flow.Limits
	// Carriers carry out jobs on this member, by exec type. Jobs of a type without a carrier fail.
	Carriers map[flow.ExecType]Carrier
	// Relay sends jobs to attached workers: those of type remote, and those of type http for which
	// a worker is attached. If nil, jobs of type remote fail.
	Relay Relay
	// Trackers poll and cancel the external work that attempts wait for, by service. Work of a
	// service without a tracker fails.
	Trackers map[string]Tracker
	// Concurrency is how many jobs of a type run at once. Default 256.
	Concurrency map[flow.ExecType]int
	// Workers knows which workers are alive. Those keep their claims without a heartbeat per claim.
	// May be nil.
	Workers Liveness
	// Outranked reports whether a worker gets no jobs of a service because others offer it. If nil,
	// no worker is outranked.
	Outranked func(worker, service string) bool
	// Visibility is how long a poller may hold a claim without a heartbeat. Default 60 s.
	Visibility time.Duration
	// IdleAfter is how long a task that only waits stays in memory. Default 3 s.
	IdleAfter time.Duration
	// Lease is how long the member may be silent before another one may replace it. Default 2 s.
	Lease time.Duration
	// Retention is how long ended tasks are kept. Default 30 days; negative means forever.
	Retention time.Duration
	// Chores are repeated periodically, by one member of the cluster.
	Chores []Chore
	// Payloads stores large values outside the store. If nil, all values are in the store.
	Payloads Payloads
	// ValuesAt describes the place of these values, for operators.
	ValuesAt string
	// MaxUncommitted bounds the commits that wait for the store, and the requests that wait for
	// answers. MaxReady bounds the jobs that wait in memory for this member's carriers. Beyond
	// these bounds, new work is refused as busy; commands that free capacity, such as reports, are
	// refused beyond four times as much. MaxReady also bounds the poller jobs in memory; more wait
	// in the store. Defaults are 20,000 and 100,000.
	MaxUncommitted, MaxReady int
	// MaxWaiting bounds the bytes of values in requests that wait for answers, in the same way.
	// Default 256 MiB.
	MaxWaiting int
	Tracing    Tracing
	// NodeMetrics enables counts of attempts by node.
	NodeMetrics bool
	Logger      *slog.Logger
	Host        Host
}

func (c Config) orDefault() Config {
	c.Limits = c.Limits.OrDefault()
	if c.Reader == nil {
		c.Reader = persistence.NewReader(c.Store, c.Limits)
	}
	if c.Name == "" {
		c.Name = "member"
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	for to, or := range map[*time.Duration]time.Duration{&c.Visibility: time.Minute,
		&c.IdleAfter: 3 * time.Second, &c.Lease: 2 * time.Second} {
		if *to <= 0 {
			*to = or
		}
	}
	if c.Retention == 0 {
		c.Retention = 30 * 24 * time.Hour
	}
	for to, or := range map[*int]int{&c.MaxUncommitted: 20_000, &c.MaxReady: 100_000, &c.MaxWaiting: 256 << 20} {
		if *to <= 0 {
			*to = or
		}
	}
	return c
}

// Member is one running member: its actors and their shared parts.
type Member struct {
	cfg         Config
	store       persistence.Store
	reader      *persistence.Reader
	log         *slog.Logger
	system      *actor.ActorSystem
	incarnation string
	owned       shardOwnership
	format      atomic.Int64 // format of new journal rows

	tasks          *actor.PID
	sessions       *actor.PID
	queue          atomic.Pointer[queue] // the queue of the sessions actor
	committer      *committer
	snapshots      snapshotBudget
	timers         *timerQueue
	loader         *loader
	hub            *journalNotifier
	lease          *lease
	watchdog       *watchdog
	metrics        *memberMetrics
	statistics     *taskStatistics
	goroutines     *goroutines.Pool
	dispatcher     *dispatcher
	orderForwarder *orderForwarder
	clock          *endingClock
	claimForwarder *claimForwarder
	limiter        *limiter
	externals      *externalWatcher
	jobForwarder   *jobForwarder
	migratedJobs   migratedJobs
	outages        storeOutages
	goneMu         sync.Mutex
	// departed members, by incarnation, with the time of the notice
	goneMembers map[string]flow.Departure

	ctx             context.Context // context of the member's own work
	cancel          context.CancelFunc
	stopping        atomic.Bool
	workMu          sync.Mutex
	closed          bool           // no more background work may start
	backgroundWork  sync.WaitGroup // the work that Kill waits for
	backgroundCount atomic.Int64   // number of pieces of background work

	stoppedJobs atomic.Pointer[map[jobKey]*activeJob] // active jobs when the sessions actor ended

	failed bounded.Lines // limits the log lines about failed tasks

	taskActors       atomic.Int64 // task actors in memory
	stepActors       atomic.Int64 // step actors in memory
	steps            atomic.Int64
	ready            atomic.Int64 // jobs that wait for this member's carriers
	queued           atomic.Int64 // poller jobs in memory
	messages         atomic.Int64 // requests without an answer …
	waitingBytes     atomic.Int64 // … and the bytes of their values
	uncommitted      atomic.Int64
	unstoredAttempts atomic.Int64 // attempts that are decided and not stored yet
	recoveries       atomic.Int64 // unfinished tasks that are being loaded
	rested           atomic.Int64
}

// maxIdle is how many idle goroutines are kept for work that may block.
const maxIdle = 256

// Start joins the store and starts the member. Unfinished tasks are loaded and continue.
func Start(ctx context.Context, cfg Config) (*Member, error) {
	cfg = cfg.orDefault()
	pool, dispatcher := goroutines.New(maxIdle), newDispatcher()
	cfg.Host = cfg.Host.orDefault(pool, dispatcher)
	clock := newEndingClock(cfg.Host.Clock)
	cfg.Host.Clock = clock
	m := &Member{cfg: cfg, goroutines: pool, dispatcher: dispatcher, clock: clock, store: cfg.Store,
		reader: cfg.Reader, log: cfg.Logger, hub: newHub(), goneMembers: map[string]flow.Departure{},
		outages: storeOutages{log: cfg.Logger, byMessage: map[string]*storeOutage{}}}
	if err := m.joinStore(ctx); err != nil {
		return nil, err
	}
	if p := cfg.Payloads; p != nil {
		p.Aside(dispatcher.runAside)
	}
	m.timers = &timerQueue{now: m.nowMillis, clock: cfg.Host.Clock}
	m.loader = &loader{m: m}
	m.orderForwarder, m.claimForwarder = newOrderForwarder(m), newClaimForwarder(m)
	m.limiter = newLimiter(m)
	m.externals = newExternals(m)
	m.metrics, m.statistics = newMetrics(m), newStatistics(m)
	m.jobForwarder = &jobForwarder{m: m, lineByCarrier: map[string]*jobLine{}}
	m.spawnActors()
	m.lease.keepRenewing()
	if m.owned.ownsAll {
		m.recoverUnfinished(nil)
		m.limiter.enqueueShards(nil)
	}
	m.limiter.sweepKeys()
	m.externals.triggerRead()
	m.lookForWakes()
	m.doChores()
	m.statistics.sendPeriodically()
	m.forgetDeliveries()
	return m, nil
}

// joinStore registers the member in the store and takes a lease. A member without others owns
// everything.
func (m *Member) joinStore(ctx context.Context) error {
	cfg := &m.cfg
	incarnation, err := m.store.Join(ctx, persistence.Joining{Name: cfg.Name, Cluster: cfg.Cluster,
		URL: cfg.URL, Gossip: cfg.Gossip, Version: cfg.Version, Format: flow.Format, Seal: cfg.Seal,
		Values: cfg.ValuesAt, TTL: cfg.Lease})
	if err != nil {
		return fmt.Errorf("joining the store: %w", err)
	}
	m.incarnation = incarnation
	m.lease = &lease{m: m}
	m.watchdog = newWatchdog(m)
	m.ctx, m.cancel = context.WithCancel(tenure.With(context.WithoutCancel(ctx), m.lease.isHeld))
	if err := m.lease.renew(ctx); err != nil {
		m.cancel()
		return fmt.Errorf("taking the lease: %w", err)
	}
	if cfg.Others == nil && !m.store.Locked() {
		if err := m.becomeSoleMember(ctx); err != nil {
			m.cancel()
			return err
		}
	}
	if cfg.Others == nil || m.store.Locked() {
		m.owned.ownAll(m.nowMillis())
	}
	return nil
}

func (m *Member) spawnActors() {
	m.system = actor.NewActorSystem(
		libraryLog(m.log),
		// The last sender to a stopped actor leaves a goroutine for this long.
		actor.WithDeadLetterThrottleInterval(time.Millisecond),
	)
	m.sessions = m.spawnActor(func() actor.Actor { return newSessions(m) })
	m.committer = newCommitter(m)
	m.snapshots.m = m
	m.tasks = m.spawnActor(func() actor.Actor { return newTasks(m) })
	m.sendMessage(m.tasks, sweepTasks{})
}

func (m *Member) actorProps(make func() actor.Actor) *actor.Props {
	return actor.PropsFromProducer(make, actor.WithDispatcher(m.cfg.Host.Dispatcher))
}

func (m *Member) spawnActor(make func() actor.Actor) *actor.PID {
	return m.system.Root.Spawn(m.actorProps(make))
}

func (m *Member) sendMessage(pid *actor.PID, message any) { m.system.Root.Send(pid, message) }

// nowMillis returns the store's time in Unix milliseconds.
func (m *Member) nowMillis() int64 { return m.lease.now().UnixMilli() }

// Now returns the store's time.
func (m *Member) Now() time.Time { return m.lease.now() }

// Incarnation returns the id of this run of the member in the store.
func (m *Member) Incarnation() string { return m.incarnation }

// runBackground starts work that may block; Kill waits for it. After Kill it starts nothing.
func (m *Member) runBackground(f func()) {
	m.workMu.Lock()
	defer m.workMu.Unlock()
	if m.closed {
		return
	}
	m.backgroundWork.Add(1)
	m.backgroundCount.Add(1)
	m.cfg.Host.Go(func() {
		defer m.backgroundWork.Done()
		defer m.backgroundCount.Add(-1)
		f()
	})
}

// Ready returns nil if the member can work: it is running and its writes reach the store. Else it
// returns the reason.
func (m *Member) Ready() error {
	if m.stopping.Load() {
		return errStopping
	}
	held := m.lease.isHeld()
	if !held {
		m.watchdog.checkHealth()
	}
	if reason, _ := m.watchdog.awayState(); reason != "" {
		return errStoreAway(reason)
	}
	if !held {
		return errOutOfTouch
	}
	return nil
}

var errStopping = flow.Errorf(flow.Busy, "the member is shutting down")

// checkAvailable returns why the member takes no requests, or nil if it does.
func (m *Member) checkAvailable() error {
	err := m.Ready()
	if errors.Is(err, engine.ErrUnavailable) {
		return engine.NotBegun(err)
	}
	return err
}

// errOutOfTouch is the answer of a member without a lease. Other members may be able to do the
// work.
var errOutOfTouch = engine.Unable(flow.Errorf(flow.Busy, "the member has lost its lease on the store"))

// Held returns how long the member has held its lease without a failed or late renewal. After an
// outage of the store, other members get at least that long before they count as dead.
func (m *Member) Held() time.Duration { return m.lease.heldFor() }

// Lost returns a channel that is closed when the member was fenced and has to end.
func (m *Member) Lost() <-chan struct{} { return m.lease.lostChannel() }

// restGrace bounds how long tasks may take to rest when the member stops. countGrace bounds how
// long the store may take to accept the last statistics.
const (
	restGrace  = 5 * time.Second
	countGrace = 2 * time.Second
)

// Settle waits until the member itself carries out no more jobs, or ctx ends. A member that has
// handed over its tasks waits with it while it still answers the others. For a member that has not,
// new jobs may keep Settle waiting.
func (m *Member) Settle(ctx context.Context) {
	settled := make(chan struct{})
	m.sendMessage(m.sessions, awaitSettled{done: func() { close(settled) }})
	m.waitDone(ctx, settled)
}

// Stop accepts no more work, finishes pending commits, puts every task to rest and leaves the
// store. ctx bounds how long jobs on this member may take to finish; unfinished jobs are repeated
// after the next start.
func (m *Member) Stop(ctx context.Context) error {
	if m.stopping.Swap(true) {
		return nil
	}
	m.log.Info("the member stops: jobs that it carries out may finish, and tasks are put to rest", "tasks_in_memory", m.taskActors.Load())
	drained := make(chan struct{})
	m.sendMessage(m.sessions, drainJobs{done: func() { close(drained) }})
	m.waitDone(ctx, drained)
	dropped := make(chan struct{})
	m.sendMessage(m.sessions, dropAll{done: func() { close(dropped) }})
	rested := make(chan struct{})
	m.sendMessage(m.tasks, restAll{done: func() { close(rested) }})
	resting, cancel := m.detachedTimeout(ctx, restGrace)
	defer cancel()
	m.waitDone(resting, rested)
	m.waitDone(resting, dropped)
	counting, cancel := m.detachedTimeout(ctx, countGrace)
	defer cancel()
	m.statistics.sendCounts(counting)
	for !(m.limiter.isIdle() && m.orderForwarder.isEmpty() && m.statistics.sending.Load() == 0) &&
		resting.Err() == nil && m.sleepFor(restRecheck) {
	}
	m.lease.markGivenUp()
	// by then the lease has expired by itself
	leaving, cancel := m.detachedTimeout(ctx, m.cfg.Lease)
	defer cancel()
	err := m.store.Leave(leaving, m.incarnation)
	m.Kill()
	if err != nil && !errors.Is(err, persistence.ErrFenced) {
		return fmt.Errorf("leaving the store: %w", err)
	}
	return nil
}

// detachedTimeout returns a context with its own timeout, independent of the end of ctx.
func (m *Member) detachedTimeout(ctx context.Context, d time.Duration) (context.Context, func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := m.cfg.Host.Clock.AfterFunc(d, cancel)
	return ctx, func() {
		stop()
		cancel()
	}
}

func (m *Member) waitDone(ctx context.Context, done <-chan struct{}) {
	m.parkUntil(func() bool { return isClosed(done) || ctx.Err() != nil || isClosed(m.Lost()) })
	select {
	case <-done:
	case <-ctx.Done():
	case <-m.Lost():
	}
}

// Kill ends everything at once, as a crash would: no task is put to rest, and the lease expires by
// itself.
func (m *Member) Kill() {
	m.stopping.Store(true)
	m.workMu.Lock()
	killed := m.closed
	m.closed = true
	m.workMu.Unlock()
	if killed {
		return
	}
	m.cancel()
	m.timers.close()
	m.hub.close()
	m.system.Root.Stop(m.tasks)
	m.system.Root.Stop(m.sessions)
	m.awaitBackground()
	m.goroutines.Close()
	m.dispatcher.close()
	m.system.Shutdown()
	m.clock.close()
}

// Stats returns counts of the member's current work.
func (m *Member) Stats() Stats {
	return Stats{
		Actors:      map[string]int64{"task": m.taskActors.Load(), "step": m.stepActors.Load()},
		Steps:       m.steps.Load(),
		Ready:       m.ready.Load() + m.queued.Load(),
		Messages:    m.messages.Load(),
		Uncommitted: m.uncommitted.Load(),
		Resting:     m.rested.Load(),
	}
}
