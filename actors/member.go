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

// Config says how a member works. Only Store is needed.
type Config struct {
	Store  persistence.Store
	Reader *persistence.Reader // nil = one of its own
	// Name of the member in logs and in the store.
	Name string
	// Cluster it belongs to, by name; URL, where its other members reach this one, and Gossip,
	// where its gossip is heard (host and port). The store tells them of all three, and of the
	// Version of the program.
	Cluster, URL, Gossip, Version string
	// Seal is the same for members who have the same secret; others are refused by the store.
	Seal string
	// Others reaches what other members own and carry; nil = there are none, and the member owns
	// all tasks. With it, a member whose store others can use too owns none until Gain.
	Others Others
	// Heard is called with what another member tells that is remembered outside of the actors; nil
	// = nothing is.
	Heard func(engine.News)
	// Gained is called when the member owns more shards; it must not block. nil = nobody wants to
	// know.
	Gained func()
	// Changed is called when a renewal of the lease tells that members, or owners of shards, have
	// changed. It must not block.
	Changed func(persistence.Pulse)
	Limits  flow.Limits
	// Carriers carry out jobs on this member, by exec type. Jobs of a type without one fail.
	Carriers map[flow.ExecType]Carrier
	// Relay hands on the jobs for workers that are attached: those of type remote, and those of
	// type http for which it has somebody. nil = there is none, and jobs of type remote fail.
	Relay Relay
	// Trackers look after work outside that attempts wait for, by service. That of a service
	// without one fails.
	Trackers map[string]Tracker
	// Concurrency is how many jobs of a type are carried out at once. Default 256.
	Concurrency map[flow.ExecType]int
	// Workers that live keep their claims, also without a heartbeat for each. nil = nobody does.
	Workers Liveness
	// Outranked reports whether a worker gets no jobs of a service, since others offer it. nil =
	// none is.
	Outranked func(worker, service string) bool
	// Visibility is how long a poller may hold a claim without a heartbeat. Default 60 s.
	Visibility time.Duration
	// IdleAfter is how long a task that only waits stays in memory. Default 3 s.
	IdleAfter time.Duration
	// Lease is how long the member may be silent before another may take over. Default 2 s.
	Lease time.Duration
	// Retention is how long ended tasks are kept. Default 30 days; negative = for ever.
	Retention time.Duration
	// Chores are done again and again, by one member of the cluster.
	Chores []Chore
	// Payloads keeps large values elsewhere than in the store. nil = they are all there.
	Payloads Payloads
	// ValuesAt is where they are then, for people.
	ValuesAt string
	// MaxUncommitted bounds the commits that wait for the store and the requests that wait for
	// their answers, MaxReady the jobs that wait in memory for this member's carriers; beyond them
	// new work is refused as busy, and what frees work, such as a report, beyond four times as
	// much. As many jobs for pollers are kept in memory, more wait in the store. Defaults 20,000
	// and 100,000.
	MaxUncommitted, MaxReady int
	// MaxWaiting bounds the bytes of the values in requests that wait for their answers, likewise.
	// Default 256 MiB.
	MaxWaiting int
	Tracing    Tracing
	// NodeMetrics: attempts are also counted by the nodes that they were of.
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
	for to, or := range map[*time.Duration]time.Duration{&c.Visibility: time.Minute, &c.IdleAfter: 3 * time.Second, &c.Lease: 2 * time.Second} {
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

// Member is one running member: its actors and what they share.
type Member struct {
	cfg         Config
	store       persistence.Store
	reader      *persistence.Reader
	log         *slog.Logger
	system      *actor.ActorSystem
	incarnation string
	owned       shardOwnership
	format      atomic.Int64 // that journals are written in

	tasks          *actor.PID
	sessions       *actor.PID
	queue          atomic.Pointer[queue] // of the sessions
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
	goneMembers    map[string]flow.Departure // other members, by incarnation: when this one was told that they are

	ctx             context.Context // of everything the member does by itself
	cancel          context.CancelFunc
	stopping        atomic.Bool
	workMu          sync.Mutex
	closed          bool           // no background work begins any more
	backgroundWork  sync.WaitGroup // background work that Kill waits for
	backgroundCount atomic.Int64   // how much of it there is

	stoppedJobs atomic.Pointer[map[jobKey]*activeJob] // what was when the sessions ended

	failed bounded.Lines // in the log, of tasks

	taskActors       atomic.Int64 // that live
	stepActors       atomic.Int64 // likewise
	steps            atomic.Int64
	ready            atomic.Int64 // jobs in line for this member's carriers
	queued           atomic.Int64 // jobs in memory for pollers
	messages         atomic.Int64 // requests without an answer …
	waitingBytes     atomic.Int64 // … and what their values have
	uncommitted      atomic.Int64
	unstoredAttempts atomic.Int64 // attempts that were decided upon and are not stored
	recoveries       atomic.Int64 // tasks that are being taken up because they were under way
	rested           atomic.Int64
}

// maxIdle is how many goroutines wait for work that may block.
const maxIdle = 256

// Start joins the store and begins to work: tasks that were under way are taken up again.
func Start(ctx context.Context, cfg Config) (*Member, error) {
	cfg = cfg.orDefault()
	pool, dispatcher := goroutines.New(maxIdle), newDispatcher()
	cfg.Host = cfg.Host.orDefault(pool, dispatcher)
	clock := newEndingClock(cfg.Host.Clock)
	cfg.Host.Clock = clock
	m := &Member{cfg: cfg, goroutines: pool, dispatcher: dispatcher, clock: clock, store: cfg.Store, reader: cfg.Reader, log: cfg.Logger, hub: newHub(), goneMembers: map[string]flow.Departure{},
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

// joinStore takes a place among the members of the store, and a lease. Who has no others owns
// everything.
func (m *Member) joinStore(ctx context.Context) error {
	cfg := &m.cfg
	incarnation, err := m.store.Join(ctx, persistence.Joining{Name: cfg.Name, Cluster: cfg.Cluster, URL: cfg.URL, Gossip: cfg.Gossip, Version: cfg.Version, Format: flow.Format, Seal: cfg.Seal, Values: cfg.ValuesAt, TTL: cfg.Lease})
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
		// Whoever was the last to write to an actor that has gone leaves a goroutine for this long.
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

// nowMillis is the store's time in Unix milliseconds.
func (m *Member) nowMillis() int64 { return m.lease.now().UnixMilli() }

// Now is the store's time.
func (m *Member) Now() time.Time { return m.lease.now() }

// Incarnation names this life of the member in the store.
func (m *Member) Incarnation() string { return m.incarnation }

// runBackground runs work that may block; Kill waits for it. After Kill there is none.
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

// Ready reports whether the member can do its work: it is there, and what it writes is stored.
func (m *Member) Ready() error {
	reason, err := m.unavailableReason()
	if reason != "" {
		return errStoreAway(reason)
	}
	return err
}

var errStopping = flow.Errorf(flow.Busy, "the member is shutting down")

// checkAvailable reports why the member takes no requests; nil = it does.
func (m *Member) checkAvailable() error {
	reason, err := m.unavailableReason()
	if reason != "" {
		return errNotBegun(reason)
	}
	return err
}

// unavailableReason returns why the store is away ("" = it is not), or another error that keeps the
// member from its work.
func (m *Member) unavailableReason() (reason string, err error) {
	if m.stopping.Load() {
		return "", errStopping
	}
	held := m.lease.isHeld()
	if !held {
		m.watchdog.checkHealth()
	}
	if reason, _ = m.watchdog.awayState(); reason == "" && !held {
		err = errOutOfTouch
	}
	return reason, err
}

// errOutOfTouch is the answer of a member without a lease: other members may do what this one
// cannot.
var errOutOfTouch = engine.Unable(flow.Errorf(flow.Busy, "the member has lost its lease on the store: ask another one, or again in a moment"))

// Held is for how long the member has held its lease without trouble: no renewal has failed, or
// come late. After an outage of the store others deserve as long before they are taken for dead.
func (m *Member) Held() time.Duration { return m.lease.heldFor() }

// Lost is closed when the member was fenced off and has to end.
func (m *Member) Lost() <-chan struct{} { return m.lease.lostChannel() }

// restGrace bounds how long tasks may take to go to rest when the member stops, and countGrace how
// long the store may take to hear what was counted.
const (
	restGrace  = 5 * time.Second
	countGrace = 2 * time.Second
)

// Settle waits until none of the jobs that this member itself carries out is under way, or ctx
// ends. A member that has handed over its tasks waits like that while it still answers for the
// others; one that has not may wait in vain.
func (m *Member) Settle(ctx context.Context) {
	settled := make(chan struct{})
	m.sendMessage(m.sessions, awaitSettled{done: func() { close(settled) }})
	m.waitDone(ctx, settled)
}

// Stop takes no more work, lets what is committing finish, puts every task to rest and leaves.
// ctx bounds how long jobs on this member may take to finish; what does not is carried out again
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
	for !(m.limiter.isIdle() && m.orderForwarder.isEmpty() && m.statistics.sending.Load() == 0) && resting.Err() == nil && m.sleepFor(restRecheck) {
	}
	m.lease.markGivenUp()
	leaving, cancel := m.detachedTimeout(ctx, m.cfg.Lease) // then it has run out by itself
	defer cancel()
	err := m.store.Leave(leaving, m.incarnation)
	m.Kill()
	if err != nil && !errors.Is(err, persistence.ErrFenced) {
		return fmt.Errorf("leaving the store: %w", err)
	}
	return nil
}

// detachedTimeout is a context of its own time, whatever is left of ctx.
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

// Kill ends everything at once, as a crash would: nothing is put to rest and the lease runs out by
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

// Stats tells what the member is doing.
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
