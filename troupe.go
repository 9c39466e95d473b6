// Package troupe opens a member of the durable workflow engine in your own program.
//
//	engine, err := troupe.Open(ctx, troupe.Config{Store: "sqlite:orders.db"})
//	troupe.Handle(engine, "resize", func(ctx context.Context, in Picture) (Picture, error) { … })
//	err = engine.Publish(ctx, "thumbnails", definition)
//	id, err := engine.Start(ctx, "thumbnails", map[string]any{"url": "…"})
//	result, err := engine.Wait(ctx, id)
//	err = engine.Close()
//
// The package promises:
//
//   - A task survives the death of the process at any moment after Start has returned its id.
//   - A handler may be called more than once for one attempt, but its result is applied exactly
//     once.
//   - The first call other than Publish, Apply and Validate resumes the tasks that were running, so
//     register functions before it.
//
// The other members fence a member of a cluster whose process stood still for longer than its
// lease. It joins again by itself as a new incarnation. The contexts of its handlers end, and calls
// of Wait keep waiting. A Watch ends with an error (busy); it continues when you call Member again
// and watch from the last row that you received. Calls in between are answered as busy. Only Serve
// ends with an error.
//
// A store can go back in time, because a standby without the last transactions took over or because
// a backup was restored. Its members start again in the same way, and Serve continues. The command
// troupe is a layer of flags around this package.
package troupe

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/troupe-engine/troupe/actors"
	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/api/transport"
	"github.com/troupe-engine/troupe/carriers/attached"
	"github.com/troupe-engine/troupe/carriers/containers"
	"github.com/troupe-engine/troupe/carriers/external"
	"github.com/troupe-engine/troupe/carriers/functions"
	"github.com/troupe-engine/troupe/carriers/logs"
	"github.com/troupe-engine/troupe/carriers/programs"
	"github.com/troupe-engine/troupe/carriers/scripts"
	"github.com/troupe-engine/troupe/carriers/streams"
	"github.com/troupe-engine/troupe/carriers/workers"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/logids"
	"github.com/troupe-engine/troupe/internal/program"
	"github.com/troupe-engine/troupe/internal/secrets"
	"github.com/troupe-engine/troupe/member/expected"
	"github.com/troupe-engine/troupe/member/layers"
	"github.com/troupe-engine/troupe/member/membership"
	"github.com/troupe-engine/troupe/member/news"
	"github.com/troupe-engine/troupe/member/schedules"
	"github.com/troupe-engine/troupe/member/spans"
	"github.com/troupe-engine/troupe/persistence"
)

// Engine is one member in this process.
type Engine struct {
	memberCalls
	jobCarriers

	cfg       Config
	stores    *layers.Stack
	secrets   *secrets.Store
	tls       *transport.Certificates
	news      news.Announcer
	schedules atomic.Pointer[schedules.Runner]
	expected  expected.Tasks
	settled   atomic.Int64  // how long jobs were given to finish while the API still answered
	spans     *spans.Teller // nil if spans are not collected
	rewinds   *prometheus.CounterVec

	mu sync.Mutex
	memberLife
	serves bool // the API listens, or soon will
	// member whose loss Serve reported when it ended; the program decides how to continue
	reportedLoss *actors.Member
	// engine that all callers use, once there is a member
	currentEngine atomic.Pointer[engine.Engine]
	ctx           context.Context // ends when the engine is closed
	end           context.CancelFunc
	own           ownRoutes // routes that the program itself calls
	unpublished   []unpublishedFlow
	work          sync.WaitGroup // goroutines that replace lost members
}

// jobCarriers are the parts that carry out jobs, in all lives of the member.
type jobCarriers struct {
	functions  *functions.Registry
	flows      *functions.Flows
	handled    sync.Map // names of the functions that the program has registered
	logs       *logs.Book
	streams    *streams.Book
	containers *containers.Service
	objects    *external.Objects
	services   external.Services
	programs   *programs.Carrier // nil before the first life
}

// memberLife are the parts of one life of the member. All of them are nil before it has begun.
type memberLife struct {
	member     *actors.Member
	membership *membership.Membership // nil if the store has room for one member only
	attached   *attached.Sessions
	workers    *workers.Registry
}

// Open opens the store. Work starts with the first call other than Publish, Apply and Validate.
func Open(ctx context.Context, cfg Config) (*Engine, error) {
	if cfg.Name == "" {
		host, _ := os.Hostname() // without a host name, the prefix alone is the name
		cfg.Name = "troupe-" + host
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	cfg.Logger = slog.New(logids.Handler(cfg.Logger.Handler()))
	locked := layers.StoreKind(cfg.Store) == "sqlite"
	if err := errors.Join(cfg.checkScriptDir(), cfg.checkPatterns(), cfg.checkCluster(locked)); err != nil {
		return nil, err
	}
	known, err := secrets.Open(secrets.Options{Env: cfg.SecretEnv, Dir: cfg.SecretDir, More: cfg.Secrets, Seen: cfg.ChildEnv})
	if err != nil {
		return nil, err
	}
	certificates, err := transport.LoadCertificates(transport.TLSFiles{Cert: cfg.TLSCert, Key: cfg.TLSKey,
		ClientCA: cfg.TLSClientCA, CA: cfg.CA}, cfg.Logger)
	if err != nil {
		return nil, err
	}
	stores, err := layers.Open(ctx, cfg.storeOptions())
	if err != nil {
		return nil, err
	}
	cfg.Cluster = cmp.Or(cfg.Cluster, "troupe")
	e := &Engine{cfg: cfg, stores: stores, secrets: known, serves: cfg.Listener != nil,
		tls: certificates, rewinds: newRewinds()}
	e.objects = e.newObjects()
	e.logs = logs.New(logs.Options{Store: stores.Newest, Keep: cfg.MaxLog, Logger: cfg.Logger})
	e.streams = streams.New(streams.Options{Store: stores.Newest, Most: persistence.StreamLimits{Bytes: cfg.MaxStreams}})
	e.functions = functions.New(functions.Options{Logs: e.logs, Streams: e.streams, Note: e.noteJob, Traced: e.cfg.Spans != nil})
	e.news.Newest, e.news.Wake = stores.Newest, e.wakeSchedules
	stores.Newest.Changed = e.news.AnnounceFlow
	e.ctx, e.end = context.WithCancel(context.Background())
	e.expected.Store, e.expected.Engine, e.expected.Closed, e.expected.Work = stores.Newest, e.callerEngine, e.ctx, &e.work
	e.flows = functions.NewFlows(e.functions, max(cmp.Or(e.cfg.KeepWarm, keepWarm), 0))
	functions.RegisterDemo(e.functions)
	inside, err := e.newClient()
	if err == nil {
		e.memberCalls = newCalls(inside, stores.Newest, e.ctx)
		e.containers, err = e.newContainers(ctx)
	}
	if err == nil {
		e.services, err = e.newServices(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, e.closeContainers(), e.closeLogs(), stores.Close())
	}
	e.startSpans()
	return e, nil
}

// Member returns the engine to call: the running member, or the cluster that it belongs to. The
// first call starts the member.
func (e *Engine) Member(ctx context.Context) (engine.Engine, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.ensureMember(ctx); err != nil {
		return nil, err
	}
	return *e.currentEngine.Load(), nil
}

func (e *Engine) startMember(ctx context.Context) (err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, e.stopMember(ctx))
			e.memberLife = memberLife{}
		}
	}()
	if e.workers, err = workers.Open(ctx, e.stores.Newest, workers.Options{
		OfflineTTL: e.cfg.WorkerTTL, Refresh: e.cfg.WorkerRefresh, Learn: e.learnInterval(), Allow: e.cfg.WorkerNetworks,
		Self: e.cfg.Name, TLS: e.tls.Client, Functions: e.functions.Names, Tell: e.news.AnnounceWorker,
		Beat: e.news.AnnounceHeartbeat, Now: e.nowMillis, Logger: e.cfg.Logger,
		MaxAnswer: e.cfg.Limits.OrDefault().Value + 64<<10, Standby: e.cfg.StandbyWorkers,
	}); err != nil {
		return err
	}
	secret, err := e.cfg.clusterSecret(ctx, e.stores.Newest)
	if err != nil {
		return err
	}
	e.attached = attached.New(attached.Options{Secret: secret, Grace: e.cfg.ResumeGrace,
		MaxMessage: api.BodyLimit(e.cfg.Limits), Workers: e.workers,
		Note: e.noteJob, Log: func(task, job string) attached.Log { return e.logs.Open(task, job) }, Logger: e.cfg.Logger})
	cfg := e.actorsConfig()
	if e.stores.Newest.Locked() {
		if e.member, err = actors.Start(ctx, cfg); err == nil {
			e.setAsked(e.member)
			e.logStart()
			e.startSchedules()
		}
		return err
	}
	if e.membership, err = e.newMembership(ctx); err != nil {
		return err
	}
	cfg.Cluster, cfg.URL, cfg.Gossip, cfg.Seal = e.cfg.Cluster, e.membership.URL(), e.membership.GossipAddress(), e.membership.ID().Seal()
	registry := e.workers // other members may send news of workers while this life is being ended
	cfg.Others, cfg.Changed, cfg.Heard = e.membership.Router().Others(), e.membership.ForwardPulse,
		func(told engine.News) { e.news.Apply(registry, told) }
	e.news.SetOthers(e.membership.Router().Others())
	if e.member, err = actors.Start(ctx, cfg); err != nil {
		return err
	}
	e.setAsked(e.membership.Router())
	e.logStart("cluster", e.cfg.Cluster, "url", e.membership.URL(), "gossip", e.membership.GossipAddress())
	e.startSchedules()
	return e.membership.Join(e.member, e.stores.Newest)
}

// startSchedules starts the schedules of the member's shards.
func (e *Engine) startSchedules() {
	e.schedules.Store(schedules.Start(schedules.Options{Store: e.stores.Newest.Store,
		Engine: *e.currentEngine.Load(), Shards: e.member.Shards, Logger: e.cfg.Logger}))
}

// wakeSchedules makes the runner look again, because schedules or the member's shards have changed.
func (e *Engine) wakeSchedules() {
	if r := e.schedules.Load(); r != nil {
		r.Look()
	}
}

// logStart logs which member starts, and where its store is.
func (e *Engine) logStart(more ...any) {
	build := Build()
	attrs := []any{"member", e.cfg.Name, "version", build.Version, "incarnation", e.member.Incarnation(), "store", StoreName(e.cfg.Store)}
	if build.Commit != "" {
		attrs = append(attrs, "commit", build.Commit)
	}
	e.cfg.Logger.Info("member started", append(attrs, more...)...)
}

// learnEvery is the interval at which a member of a cluster looks for workers that registered with
// another member.
const learnEvery = 2 * time.Second

func (e *Engine) learnInterval() time.Duration {
	if e.stores.Newest.Locked() {
		return 0
	}
	return learnEvery
}

// callerEngine returns the engine that all callers use; nil before there is a member.
func (e *Engine) callerEngine() engine.Engine {
	if asked := e.currentEngine.Load(); asked != nil {
		return *asked
	}
	return nil
}

// setAsked sets the engine that all callers use from now on.
func (e *Engine) setAsked(whom engine.Engine) { e.currentEngine.Store(&whom) }

// actorsConfig returns the configuration of a member that is in no cluster yet.
func (e *Engine) actorsConfig() actors.Config {
	if e.programs == nil { // programs of an earlier life continue with the state that they hold
		e.programs = programs.New(programs.Options{Allow: e.cfg.AllowScripts, Logs: e.logs, Files: e.objects,
			Options: program.Options{Dir: e.cfg.ScriptDir, Env: e.cfg.ChildEnv,
				MaxOutput: e.cfg.Limits.OrDefault().Value, Secrets: e.secrets, Logger: e.cfg.Logger}})
	}
	return actors.Config{
		Store: e.stores.Newest, Reader: e.stores.Reader, Name: e.cfg.Name, Lease: e.cfg.Lease, Version: Version(),
		Limits: e.cfg.Limits, Workers: e.workers, Outranked: e.workers.Outranked,
		Carriers: map[flow.ExecType]actors.Carrier{
			flow.ExecFunc:     e.functions,
			flow.ExecCode:     e.flows,
			flow.ExecPush:     e.workers,
			flow.ExecExternal: e.newStarters().Carrier(),
			flow.ExecScript: scripts.New(scripts.Options{Allow: e.cfg.AllowScripts, Dir: e.cfg.ScriptDir, Env: e.cfg.ChildEnv,
				MaxOutput: e.cfg.Limits.OrDefault().Value, Logs: e.logs}),
			flow.ExecProcess:   e.programs,
			flow.ExecPython:    e.programs,
			flow.ExecLibrary:   e.programs,
			flow.ExecWorker:    e.workers.Executor(),
			flow.ExecContainer: e.containers,
		},
		Relay:    e.attached,
		Trackers: e.newTrackers(),
		Payloads: e.payloadsOf(),
		ValuesAt: e.stores.ValuesAt,
		Gained:   e.wakeSchedules,
		Concurrency: map[flow.ExecType]int{flow.ExecFunc: e.cfg.Functions, flow.ExecCode: e.cfg.Functions,
			flow.ExecScript: e.cfg.Scripts, flow.ExecProcess: e.cfg.Scripts,
			flow.ExecPython: e.cfg.Scripts, flow.ExecLibrary: e.cfg.Scripts,
			flow.ExecPush: e.cfg.Calls, flow.ExecWorker: e.cfg.Calls},
		Visibility: e.cfg.JobLease, IdleAfter: e.cfg.IdleAfter, Retention: e.cfg.Retention,
		Chores: e.newChores(), Tracing: e.tracingConfig(), NodeMetrics: e.cfg.NodeMetrics,
		Logger: e.cfg.Logger,
	}
}

// newTrackers returns the trackers of the program and the built-in ones.
func (e *Engine) newTrackers() map[string]Tracker {
	all := map[string]Tracker{
		flow.ObjectStore: e.objects,
		flow.ChildTask:   childTasks{e},
		containers.Name:  e.containers,
		external.CustomHTTP: external.NewHTTP(external.Options{Networks: e.cfg.PollNetworks,
			Mock: e.cfg.AllowMock, Secret: e.secrets.Value, TLS: e.tls.Client, Now: e.nowMillis}),
	}
	maps.Copy(all, e.cfg.Trackers)
	for name, service := range e.services {
		all[name] = service
	}
	return all
}

// nowMillis returns the store's time if it is known, otherwise the local time: the registry is
// opened before the member has asked the store.
func (e *Engine) nowMillis() int64 {
	if asked := e.currentEngine.Load(); asked != nil {
		return (*asked).Now().UnixMilli()
	}
	return time.Now().UnixMilli()
}

// noteJob stores the progress text that a worker reports for its job.
func (e *Engine) noteJob(ctx context.Context, task string, n flow.Note) error {
	asked := e.currentEngine.Load()
	if asked == nil {
		return nil
	}
	_, err := (*asked).Do(ctx, engine.Order{Task: task, Command: n})
	return err
}

// keepWarm is the default of Config.KeepWarm.
const keepWarm = 5 * time.Second

// closeGrace is how long jobs on this member may take to finish when it closes.
const closeGrace = 10 * time.Second

// stopGrace is the least time that is left for jobs after the API has stopped answering. Members
// write their data about workers in that time.
const stopGrace = 2 * time.Second

// Close stops accepting work, hands over the tasks that the member owns, lets running jobs finish
// for a while, unloads tasks and closes the store.
func (e *Engine) Close() error {
	e.end()
	began, lived := time.Now(), e.hasMember()
	err := e.leaveMember()
	e.flows.DropWaiting()
	e.work.Wait()
	e.closeSpans()
	e.programs.Close()
	err = errors.Join(err, e.closeContainers(), e.services.Close(), e.closeLogs(), e.stores.Close())
	switch {
	case lived && err != nil:
		e.cfg.Logger.Error("member stopped with an error", "member", e.cfg.Name, "duration", time.Since(began), "error", err)
	case lived:
		e.cfg.Logger.Info("member stopped", "member", e.cfg.Name, "duration", time.Since(began))
	}
	return err
}

// closeLogs stores the last output of jobs.
func (e *Engine) closeLogs() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeGrace)
	defer cancel()
	return e.logs.Close(ctx)
}

// hasMember reports whether there is a member.
func (e *Engine) hasMember() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.member != nil
}

// settleJobs lets the jobs on this member finish whose tasks other members own by now. The API
// answers during that time, because workers and callers may know no other member.
func (e *Engine) settleJobs(member *actors.Member) {
	began := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), closeGrace)
	defer cancel()
	member.Settle(ctx)
	e.settled.Store(int64(time.Since(began)))
}

// leaveMember leaves the cluster and stops the member.
func (e *Engine) leaveMember() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.member != nil {
		e.membership.Leave()
	}
	ctx, cancel := context.WithTimeout(context.Background(), max(closeGrace-time.Duration(e.settled.Load()), stopGrace))
	defer cancel()
	return e.stopMember(ctx)
}

// stopMember stops everything that startMember started.
func (e *Engine) stopMember(ctx context.Context) error {
	var errs []error
	if r := e.schedules.Swap(nil); r != nil {
		r.Stop()
	}
	if e.member != nil {
		errs = append(errs, e.member.Stop(ctx))
	}
	errs = append(errs, e.membership.Close())
	if e.attached != nil {
		e.attached.Close()
	}
	if e.workers != nil {
		errs = append(errs, e.workers.Close(ctx))
	}
	return errors.Join(errs...)
}
