// Package v1 is Troupe's own HTTP API. It is complete, typed and described by OpenAPI, and
// addresses flows by slug. Its types are those of api/wire, which the client in api/client shares.
//
// The package promises:
//
// - The state that an answer shows is stored.
// - Values of users are returned with the numbers and the key order that were sent.
// - Lists are never null. They come in pages, and their cursors stay valid while items are added.
// - A request with a key has its effect once, however often it is sent.
// - A rejected request is answered with a problem: the fault, its place in the request, and advice.
// - Nothing unknown (query parameter, field, name of a state) is ignored silently.
// - A stream of events can be resumed where it broke off, and ends with the task.
// - A slow reader of a stream costs no memory and delays no other reader.
package v1

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/api/stream"
	"github.com/troupe-engine/troupe/api/wire"
)

// Config is the configuration of the API. Zero fields have useful defaults.
type Config struct {
	api.Member

	Version   string // version of Troupe
	StoreKind string // sqlite, postgres
	Name      string // name of the member

	// addresses of pages with the trace and the log lines of a task, with {trace_id} and {task}; ""
	// = none
	TraceURL, LogURL string

	// Cluster manages the members; nil means that there are no routes for it.
	Cluster Cluster

	Heartbeat time.Duration // how often a silent stream sends a sign of life; 15 s
	Patience  time.Duration // how long a WebSocket client may take to read a message; 10 s
	// how long a request starts further tasks, and then how long it waits for them; 10 s each
	BeginFor time.Duration

	// Channels holds the channels of other families. The key is the prefix of their names up to the
	// colon before an id. Each one sends the events of that id that follow the last message the
	// listener knows.
	Channels map[string]Channel
}

// Channel sends the events of an object to a listener until there are no more, or ctx ends.
type Channel func(ctx context.Context, id, last string, to stream.Listener) error

func (c Config) orDefault() Config {
	c.Member = c.Member.OrDefault()
	c.Heartbeat = cmp.Or(max(c.Heartbeat, 0), 15*time.Second)
	c.Patience = cmp.Or(max(c.Patience, 0), 10*time.Second)
	c.BeginFor = cmp.Or(max(c.BeginFor, 0), 10*time.Second)
	return c
}

// service is the API of one member: a router, and a handler for each resource.
type service struct {
	*apiRouter

	flows     *flowHandler
	schedules *scheduleHandler
	tasks     *taskHandler
	starts    *startHandler
	history   *historyHandler
	approvals *approvalHandler
	jobs      *jobHandler
	workers   *workerHandler
	hooks     *hookHandler
	stats     *statsHandler
	cluster   *clusterHandler
	account   *accountHandler
	socket    *socketHandler
}

// Routes serves everything below /v1/.
type Routes interface {
	api.Family
	http.Handler
}

// New returns the routes.
func New(cfg Config) (Routes, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	return newService(cfg), nil
}

func newService(cfg Config) *service {
	cfg = cfg.orDefault()
	s := newHandlers(cfg, newRouter(cfg))
	s.flows.addFlowRoutes(s.apiRouter)
	s.flows.addTryRoutes(s.apiRouter)
	s.schedules.addScheduleRoutes(s.apiRouter)
	s.tasks.addTaskRoutes(s.apiRouter)
	s.approvals.addApprovalRoutes(s.apiRouter)
	s.starts.addBulkRoutes(s.apiRouter)
	s.starts.addRerunRoutes(s.apiRouter)
	s.history.addCompareRoutes(s.apiRouter)
	s.flows.addDiffRoutes(s.apiRouter)
	s.history.addStepRoutes(s.apiRouter)
	s.history.addDigestRoutes(s.apiRouter)
	s.history.addValueRoutes(s.apiRouter)
	s.history.addHistoryRoutes(s.apiRouter)
	s.history.addTraceRoutes(s.apiRouter)
	s.history.addTimelineRoutes(s.apiRouter)
	s.history.addLogRoutes(s.apiRouter)
	s.socket.addSocketRoute(s.apiRouter)
	s.jobs.addJobRoutes(s.apiRouter)
	s.workers.addWorkerRoutes(s.apiRouter)
	s.jobs.addReportRoutes(s.apiRouter)
	s.hooks.addHookRoutes(s.apiRouter)
	s.cluster.addMemberRoutes(s.apiRouter)
	s.stats.addOverviewRoutes(s.apiRouter)
	s.stats.addStatsRoutes(s.apiRouter)
	s.account.addSessionRoutes(s.apiRouter)
	s.account.addTokenRoutes(s.apiRouter)
	s.account.addViewRoutes(s.apiRouter)
	s.cluster.addClusterRoutes(s.apiRouter)
	neverNull(s.huma.OpenAPI())
	s.registerDocs()
	s.mux.HandleFunc("/", s.noRoute)
	s.addFastRoutes()
	return s
}

// newHandlers returns the handlers of all resources, without their routes.
func newHandlers(cfg Config, rt *apiRouter) *service {
	names := &flowCatalog{store: cfg.Store, reader: cfg.Reader}
	finder := &taskFinder{catalog: names, store: cfg.Store}
	feeds := &feedSource{store: cfg.Store, reader: cfg.Reader, engine: cfg.Engine, logger: cfg.Logger}
	s := &service{apiRouter: rt}
	s.flows = &flowHandler{
		router: rt, catalog: names, finder: finder, store: cfg.Store, reader: cfg.Reader, engine: cfg.Engine,
		limits: cfg.Limits, checkFunc: cfg.Func, checkSecret: cfg.Secret,
	}
	s.workers = &workerHandler{
		catalog: names, member: cfg.Member, reader: cfg.Reader, engine: cfg.Engine, registry: cfg.Registry,
		workerTTL: cfg.WorkerTTL,
	}
	positions := &queuePositions{store: cfg.Store, reader: cfg.Reader, registry: cfg.Registry, workers: s.workers}
	s.jobs = &jobHandler{
		router: rt, workers: s.workers, member: cfg.Member, store: cfg.Store, reader: cfg.Reader, engine: cfg.Engine,
	}
	s.starts = &startHandler{
		router: rt, catalog: names, finder: finder, store: cfg.Store, reader: cfg.Reader, engine: cfg.Engine,
		limits: cfg.Limits, logger: cfg.Logger, beginFor: cfg.BeginFor,
	}
	s.schedules = &scheduleHandler{catalog: names, starts: s.starts, store: cfg.Store, engine: cfg.Engine}
	s.tasks = &taskHandler{
		router: rt, finder: finder, starts: s.starts, positions: positions, store: cfg.Store, reader: cfg.Reader,
		engine: cfg.Engine, payloads: cfg.Payloads,
	}
	s.history = &historyHandler{
		router: rt, positions: positions, feeds: feeds, store: cfg.Store, reader: cfg.Reader, engine: cfg.Engine,
		payloads: cfg.Payloads, logger: cfg.Logger, heartbeat: cfg.Heartbeat, timelines: newTimelines(),
	}
	s.approvals = &approvalHandler{
		router: rt, catalog: names, store: cfg.Store, reader: cfg.Reader, engine: cfg.Engine, payloads: cfg.Payloads,
	}
	s.hooks = &hookHandler{
		router: rt, catalog: names, store: cfg.Store, reader: cfg.Reader, engine: cfg.Engine, logger: cfg.Logger,
	}
	s.stats = &statsHandler{
		catalog: names, finder: finder, workers: s.workers, store: cfg.Store, engine: cfg.Engine, cluster: cfg.Cluster,
		overview: newFresh[wire.Overview](), slow: newFresh[[]wire.SlowFlow](),
	}
	s.cluster = &clusterHandler{
		router: rt, engine: cfg.Engine, cluster: cfg.Cluster,
		info: wire.Info{
			Version: cfg.Version, Store: cfg.StoreKind, Member: cfg.Name, TraceURL: cfg.TraceURL, LogURL: cfg.LogURL,
		},
	}
	s.account = &accountHandler{router: rt, store: cfg.Store, engine: cfg.Engine, logger: cfg.Logger}
	s.socket = newSocketHandler(cfg, rt, finder, feeds)
	return s
}

// Mount adds the routes and lets web pages read the answers. The description needs no token,
// because browsers cannot send one before they have a page, and editors never do. Deliveries to
// hooks are signed instead.
func (s *service) Mount(shell *api.Server) {
	shell.MountOpen("/v1/", api.ForPages(api.Compressed(shell.NeedToken(s.apiRouter))))
	shell.MountOpen("POST "+deliveryPath, shell.FromOutside(s.apiRouter, maxDelivery))
	s.approvals.mountLinks(shell)
	s.apiRouter.shell = shell
	for _, way := range []string{"POST ", "DELETE "} {
		shell.MountOpen(way+sessionPath, api.ForPages(shell.FromOutside(s.apiRouter, maxSession)))
	}
	shell.TakesDefinitions("/v1/validate", "/v1/try", "/v1/flows", "/v1/flows/")
	for _, page := range []string{"GET /v1/docs", "GET /v1/openapi.json", "GET /v1/openapi.yaml", "GET /v1/schema/flow.json"} {
		shell.MountOpen(page, api.ForPages(s.apiRouter))
	}
}
