package actors

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/troupe-engine/troupe/actors/background"
	"github.com/troupe-engine/troupe/actors/chores"
	"github.com/troupe-engine/troupe/actors/externals"
	"github.com/troupe-engine/troupe/actors/forward"
	"github.com/troupe-engine/troupe/actors/journal"
	"github.com/troupe-engine/troupe/actors/lease"
	"github.com/troupe-engine/troupe/actors/limiter"
	"github.com/troupe-engine/troupe/actors/metrics"
	"github.com/troupe-engine/troupe/actors/shards"
	"github.com/troupe-engine/troupe/actors/values"
	"github.com/troupe-engine/troupe/actors/wakes"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/bounded"
	"github.com/troupe-engine/troupe/internal/goroutines"
	"github.com/troupe-engine/troupe/internal/host"
	"github.com/troupe-engine/troupe/internal/tenure"
	"github.com/troupe-engine/troupe/persistence"
)

// Config configures a member. Only Store is required.
type Config struct {
	Store  persistence.Store
	Reader *persistence.Reader // nil means a new reader
	// Name is the member's name in logs and in the store.
	Name string
	// Cluster is the name of the member's cluster. URL is the address at which other members reach
	// this one, and Gossip its gossip address (host and port). Other members read these and Version
	// from the store.
	Cluster, URL, Gossip, Version string
	// Seal identifies the secret of the cluster. The store refuses members with a different seal.
	Seal string
	// Others sends requests to the other members. If nil, this member owns all tasks. If set and
	// the store can be shared, the member owns no task before Gain.
	Others Others
	// Heard receives news of other members that the actors do not handle. May be nil.
	Heard func(engine.News)
	// Gained is called when the member owns more shards; it must not block. nil is allowed.
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
	// Trackers poll and cancel the external work that attempts wait for, by service. Without a
	// tracker for its service, external work fails.
	Trackers map[string]externals.Tracker
	// Concurrency is how many jobs of an exec type run at once. Default 256.
	Concurrency map[flow.ExecType]int
	// Workers tracks which workers are alive. Live workers keep their claims without a heartbeat
	// for each claim. May be nil.
	Workers Liveness
	// Outranked reports whether a worker gets no jobs of a service because preferred workers offer
	// it. If nil, no worker is outranked.
	Outranked func(worker, service string) bool
	// Visibility is how long a poller may hold a claim without a heartbeat. Default 60 s.
	Visibility time.Duration
	// IdleAfter is how long an idle task stays in memory. Default 3 s.
	IdleAfter time.Duration
	// Lease is how long the member may miss renewals before another member may replace it. Default
	// 2 s.
	Lease time.Duration
	// Retention is how long ended tasks are kept. Default 30 days; negative means forever.
	Retention time.Duration
	// Chores are repeated periodically, by one member of the cluster.
	Chores []chores.Chore
	// Payloads stores large values outside the store. If nil, all values are in the store.
	Payloads values.Payloads
	// ValuesAt describes the location of values outside the store. It is shown to operators.
	ValuesAt string
	// MaxUncommitted bounds the commits that wait for the store, and the requests that wait for
	// answers. MaxReady bounds the jobs in memory that wait for this member's carriers, and the
	// poller jobs in memory. Beyond these bounds, new work is refused as busy. Commands that free
	// capacity, such as reports, are refused beyond four times these bounds. More poller jobs wait
	// in the store. Defaults are 20,000 and 100,000.
	MaxUncommitted, MaxReady int
	// MaxWaiting bounds the bytes of values in requests that wait for answers. As for
	// MaxUncommitted, commands that free capacity have four times this bound. Default 256 MiB.
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

// Tracker polls and cancels external work of a service; see externals.Tracker.
type Tracker = externals.Tracker

// Chore is periodic work on data beyond an age; see chores.Chore.
type Chore = chores.Chore

// Payloads stores large values outside the store; see values.Payloads.
type Payloads = values.Payloads

// Member is one running member: its actors and their shared parts.
type Member struct {
	cfg         Config
	log         *slog.Logger
	incarnation string
	owned       shards.Ownership
	stopping    atomic.Bool

	memberRuntime
	memberActors
	storeAccess
	memberForwarders
	limiter    *limiter.Limiter
	externals  *externals.Watcher
	waker      *wakes.Waker
	values     *values.Values
	peers      *otherPeers
	metrics    *metrics.Metrics
	statistics *metrics.Statistics
	counts     memberCounts
	failed     bounded.Lines // limits the log lines about failed tasks
}

// memberRuntime runs the actors and the background work of a member.
type memberRuntime struct {
	system     *actor.ActorSystem
	dispatcher *background.Dispatcher
	goroutines *goroutines.Pool
	clock      *background.EndingClock
	timers     *background.Timers
	work       *background.Work
}

// memberActors are the two top-level actors of a member.
type memberActors struct {
	tasks       *actor.PID
	sessions    *actor.PID
	queue       atomic.Pointer[queue]                        // the queue of the sessions actor
	stoppedJobs atomic.Pointer[map[engine.JobKey]*activeJob] // active jobs when the sessions actor ended
}

// storeAccess is how a member reads and writes its store.
type storeAccess struct {
	store     persistence.Store
	reader    *persistence.Reader
	lease     *lease.Lease
	outages   *lease.Outages
	committer *journal.Committer
	loader    *journal.Loader
	hub       *journal.Notifier
}

// memberForwarders bring orders, claims and jobs to other members.
type memberForwarders struct {
	orderForwarder *forward.Orders
	claimForwarder *forward.Claims
	jobForwarder   *forward.Jobs
}

// maxIdle is how many idle goroutines are kept for work that may block.
const maxIdle = 256

// Start joins the store and starts the member. Unfinished tasks are loaded and continue.
func Start(ctx context.Context, cfg Config) (*Member, error) {
	cfg = cfg.orDefault()
	pool, dispatcher := goroutines.New(maxIdle), background.NewDispatcher()
	cfg.Host = cfg.Host.orDefault(pool, dispatcher)
	clock := background.NewEndingClock(cfg.Host.Clock)
	cfg.Host.Clock = clock
	m := &Member{cfg: cfg, log: cfg.Logger,
		memberRuntime: memberRuntime{goroutines: pool, dispatcher: dispatcher, clock: clock},
		storeAccess:   storeAccess{store: cfg.Store, reader: cfg.Reader, hub: journal.NewNotifier()}}
	if err := m.wirePart().joinStore(ctx); err != nil {
		return nil, err
	}
	if p := cfg.Payloads; p != nil {
		p.Aside(dispatcher.RunAside)
	}
	m.timers = background.NewTimers(m.nowMillis, cfg.Host.Clock)
	m.loader = journal.NewLoader(journal.LoaderConfig{Store: m.store, Fold: m.reader.Fold, Work: m.work, Outages: m.outages,
		FoldsSlowly: cfg.Payloads != nil})
	m.peers = newPeers(m)
	m.values = values.New(values.Config{Payloads: cfg.Payloads, Limits: cfg.Limits, Store: m.store, Now: m.nowMillis, Work: m.work})
	m.wirePart().startForwarders()
	m.limiter = limiter.New(m.wirePart().limiterConfig())
	m.externals = externals.New(externals.Config{Store: m.store, Incarnation: m.incarnation, Shards: &m.owned,
		Now: m.nowMillis, Work: m.work, Outages: m.outages, Log: m.log, IsStopping: m.stopping.Load,
		Trackers: cfg.Trackers, OffloadValue: m.values.Offload, SendOrder: m.sendOrder})
	m.waker = wakes.New(wakes.Config{Store: m.store, Shards: &m.owned, Now: m.nowMillis, Work: m.work, Outages: m.outages,
		IsStopping: m.stopping.Load, Uncommitted: m.counts.uncommitted.Load, MaxUncommitted: int64(cfg.MaxUncommitted / 2),
		Wake: func(tasks []string, onLoaded func()) { m.sendMessage(m.tasks, wakeTasks{tasks, onLoaded}) }})
	m.wirePart().startMetrics()
	m.wirePart().spawnActors()
	m.lease.KeepRenewing()
	if m.owned.OwnsAll() {
		m.waker.RecoverUnfinished(nil)
		m.limiter.EnqueueShards(nil)
	}
	m.limiter.SweepKeys()
	m.externals.TriggerRead()
	m.waker.LookForDue()
	chores.New(chores.Config{Store: m.store, Shards: &m.owned, Now: m.nowMillis, Work: m.work, Log: m.log,
		Retention: cfg.Retention, Others: cfg.Chores}).StartAll()
	m.statistics.SendPeriodically()
	return m, nil
}

// joinStore registers the member in the store and takes a lease. A member without Others owns all
// tasks.
func (m memberWiring) joinStore(ctx context.Context) error {
	cfg := &m.cfg
	incarnation, err := m.store.Join(ctx, persistence.Joining{Name: cfg.Name, Cluster: cfg.Cluster,
		URL: cfg.URL, Gossip: cfg.Gossip, Version: cfg.Version, Format: flow.Format, Seal: cfg.Seal,
		Values: cfg.ValuesAt, TTL: cfg.Lease})
	if err != nil {
		return fmt.Errorf("joining the store: %w", err)
	}
	m.incarnation = incarnation
	m.lease = lease.New(lease.Config{Store: m.store, Incarnation: incarnation, Member: cfg.Name, TTL: cfg.Lease, Log: m.log,
		Changed: cfg.Changed, CancelCalls: func(before time.Time) { m.committer.CancelCallsBefore(before) }})
	m.work = background.New(tenure.With(context.WithoutCancel(ctx), m.lease.IsHeld),
		host.Host{Go: cfg.Host.Go, Clock: cfg.Host.Clock, Park: cfg.Host.Park})
	m.lease.SetWork(m.work)
	m.outages = lease.NewOutages(m.log, m.work)
	if err := m.lease.Renew(ctx); err != nil {
		m.work.Cancel()
		return fmt.Errorf("taking the lease: %w", err)
	}
	if cfg.Others == nil && !m.store.Locked() {
		if err := m.lease.BecomeSoleMember(ctx, m.store); err != nil {
			m.work.Cancel()
			return err
		}
	}
	if cfg.Others == nil || m.store.Locked() {
		m.owned.OwnAll(m.nowMillis())
	}
	return nil
}

func (m memberWiring) spawnActors() {
	m.system = actor.NewActorSystem(
		libraryLog(m.log),
		// the actor library keeps a goroutine for this long after a message to a stopped actor
		actor.WithDeadLetterThrottleInterval(time.Millisecond),
	)
	m.sessions = m.spawnActor(func() actor.Actor { return newSessions(m.Member) })
	m.committer = m.newCommitter()
	m.tasks = m.spawnActor(func() actor.Actor { return newTasks(m.Member) })
	m.sendMessage(m.tasks, sweepTasks{})
}

func (m memberWiring) startForwarders() {
	cfg := forward.Config{Others: m.cfg.Others, Shards: &m.owned, Now: m.nowMillis, Work: m.work, Log: m.log,
		IsAlive: m.peers.isMemberAlive, RecoverTask: func(task string) {
			m.sendMessage(m.tasks, &taskCommand{task: task, command: m.peers.recoverCommand(task)})
		}}
	m.orderForwarder, m.claimForwarder, m.jobForwarder = forward.NewOrders(cfg), forward.NewClaims(cfg), forward.NewJobs(cfg)
}

func (m memberWiring) limiterConfig() limiter.Config {
	cfg := limiter.Config{Store: m.store, Incarnation: m.incarnation, Shards: &m.owned, Now: m.nowMillis,
		Work: m.work, Outages: m.outages, Log: m.log, IsStopping: m.stopping.Load, SendOrder: m.sendOrder}
	if others := m.cfg.Others; others != nil {
		cfg.NotifyKeyOwners, cfg.Forward = others.Stir, m.orderForwarder.Enqueue
	}
	return cfg
}

// sendOrder delivers an order to a task of this member. It calls answered with the task's answer.
func (m *Member) sendOrder(o engine.Order, answered func(err error)) {
	m.sendMessage(m.tasks, &taskCommand{task: o.Task, command: o.Command, reply: func(a commandAnswer) { answered(a.err) }})
}

func (m memberWiring) startMetrics() {
	m.statistics = metrics.NewStatistics(metrics.StatisticsConfig{Store: m.store, Now: m.nowMillis, Work: m.work, Outages: m.outages})
	c := &m.counts
	m.metrics = metrics.New(metrics.Sources{Tasks: c.taskActors.Load, Steps: c.stepActors.Load, Ready: c.waitingInMemory,
		Messages: c.messages.Load, Uncommitted: c.uncommitted.Load, LeaseLeft: m.lease.RemainingTime,
		KeysWaiting: m.limiter.CountPending, StatisticsLag: m.statistics.LagSeconds, StepsEnded: &c.steps, Rested: &c.rested,
		Rulings: &m.limiter.Rulings, FailedRulings: &m.limiter.Failures, Nodes: m.cfg.NodeMetrics})
}

// Collectors returns the member's metrics for Prometheus.
func (m *Member) Collectors() []prometheus.Collector { return m.metrics.Collectors() }

func (m memberWiring) newCommitter() *journal.Committer {
	cfg := journal.CommitterConfig{Store: m.store, Incarnation: m.incarnation, Work: m.work, Health: m.lease.Watchdog,
		Outages: m.outages, Send: m.sendMessage, Uncommitted: &m.counts.uncommitted,
		Observe: func(tasks int, took time.Duration) { m.metrics.ObserveCommit(tasks, took) }}
	if p := m.cfg.Payloads; p != nil {
		cfg.WriteObjects = p.WriteMade
	}
	return journal.NewCommitter(cfg)
}

func (m *Member) actorProps(make func() actor.Actor) *actor.Props {
	return actor.PropsFromProducer(make, actor.WithDispatcher(m.cfg.Host.Dispatcher))
}

func (m memberWiring) spawnActor(make func() actor.Actor) *actor.PID {
	return m.system.Root.Spawn(m.actorProps(make))
}

func (m *Member) sendMessage(pid *actor.PID, message any) { m.system.Root.Send(pid, message) }

// nowMillis returns the store's time in Unix milliseconds.
func (m *Member) nowMillis() int64 { return m.lease.Now().UnixMilli() }

// Now returns the store's time.
func (m *Member) Now() time.Time { return m.lease.Now() }

// Incarnation returns the id of this run of the member in the store.
func (m *Member) Incarnation() string { return m.incarnation }

// Ready returns nil if the member runs, holds its lease and can write to the store. Else it returns
// the reason.
func (m *Member) Ready() error {
	if m.stopping.Load() {
		return errStopping
	}
	held := m.lease.IsHeld()
	if !held {
		m.lease.Watchdog.CheckHealth()
	}
	if reason, _ := m.lease.Watchdog.AwayState(); reason != "" {
		return lease.NewAwayError(reason)
	}
	if !held {
		return errOutOfTouch
	}
	return nil
}

var errStopping = flow.Errorf(flow.Busy, "the member is shutting down")

// checkAvailable returns nil if the member accepts requests, else the reason.
func (m *Member) checkAvailable() error {
	err := m.Ready()
	if errors.Is(err, engine.ErrUnavailable) {
		return engine.NotBegun(err)
	}
	return err
}

// errOutOfTouch is the answer of a member without a lease. The caller may retry at another member.
var errOutOfTouch = engine.Unable(flow.Errorf(flow.Busy, "the member has lost its lease on the store"))

// Held returns how long the member has held its lease without a failed or late renewal. After an
// outage of the store, a member must hold its lease long enough before it may declare others dead.
func (m *Member) Held() time.Duration { return m.lease.HeldFor() }

// Lost returns a channel that is closed when the member was fenced and must end.
func (m *Member) Lost() <-chan struct{} { return m.lease.Lost() }

// Rewind reports that the store lost its recent state; see lease.Rewind.
type Rewind = lease.Rewind

// Rewound returns how the store lost its recent state; nil if the member was not lost, or was lost
// for another reason.
func (m *Member) Rewound() *lease.Rewind { return m.lease.Rewound() }

// restGrace bounds how long tasks may take to rest when the member stops. countGrace bounds the
// last write of statistics.
const (
	restGrace  = 5 * time.Second
	countGrace = 2 * time.Second
)

// Settle waits until this process carries out no more jobs, or ctx ends. Call it after the member
// has handed over its tasks, while the member still answers requests. Otherwise new jobs may keep
// Settle waiting.
func (m *Member) Settle(ctx context.Context) {
	settled := make(chan struct{})
	m.sendMessage(m.sessions, awaitSettled{done: func() { close(settled) }})
	m.endPart().waitDone(ctx, settled)
}

// Stop accepts no more work, finishes pending commits, puts every task to rest and leaves the
// store. ctx bounds how long jobs on this member may take to finish; unfinished jobs are repeated
// after the next start.
func (m *Member) Stop(ctx context.Context) error {
	if m.stopping.Swap(true) {
		return nil
	}
	m.log.Info("member stopping: running jobs may finish, and tasks are unloaded",
		"tasks_in_memory", m.counts.taskActors.Load())
	drained := make(chan struct{})
	m.sendMessage(m.sessions, drainJobs{done: func() { close(drained) }})
	m.endPart().waitDone(ctx, drained)
	dropped := make(chan struct{})
	m.sendMessage(m.sessions, dropAll{done: func() { close(dropped) }})
	rested := make(chan struct{})
	m.sendMessage(m.tasks, restAll{done: func() { close(rested) }})
	resting, cancel := m.work.DetachedContext(ctx, restGrace)
	defer cancel()
	m.endPart().waitDone(resting, rested)
	m.endPart().waitDone(resting, dropped)
	counting, cancel := m.work.DetachedContext(ctx, countGrace)
	defer cancel()
	m.statistics.SendCounts(counting)
	for !(m.limiter.IsIdle() && m.orderForwarder.IsEmpty() && !m.statistics.IsSending()) &&
		resting.Err() == nil && m.work.Sleep(restRecheck) {
	}
	m.lease.MarkGivenUp()
	// after this time, the lease has expired by itself
	leaving, cancel := m.work.DetachedContext(ctx, m.cfg.Lease)
	defer cancel()
	err := m.store.Leave(leaving, m.incarnation)
	m.Kill()
	if err != nil && !errors.Is(err, persistence.ErrFenced) {
		return fmt.Errorf("leaving the store: %w", err)
	}
	return nil
}

func (m memberEnding) waitDone(ctx context.Context, done <-chan struct{}) {
	m.work.Park(func() bool { return host.Closed(done) || ctx.Err() != nil || host.Closed(m.Lost()) })
	select {
	case <-done:
	case <-ctx.Done():
	case <-m.Lost():
	}
}

// Kill ends the member at once, as a crash would: no task is put to rest, and the lease expires by
// itself.
func (m *Member) Kill() {
	m.stopping.Store(true)
	if !m.work.Close() {
		return
	}
	m.work.Cancel()
	m.timers.Close()
	m.hub.Close()
	m.system.Root.Stop(m.tasks)
	m.system.Root.Stop(m.sessions)
	m.endPart().awaitBackground()
	m.goroutines.Close()
	m.dispatcher.Close()
	m.system.Shutdown()
	m.clock.Close()
}

// Stats returns counts of the member's current work.
func (m *Member) Stats() Stats { return m.counts.readStats() }
