// Package v1 is Troupe's own HTTP API. It is complete, typed and described by OpenAPI, and
// addresses flows by slug. Its types are those of api/wire, which the client in api/client shares.
// A resource is a package below this one, with a Handler that adds its routes; this package joins
// them. What all routes share is in package route.
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
	"net/http"
	"time"

	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/api/v1/account"
	"github.com/troupe-engine/troupe/api/v1/approvals"
	"github.com/troupe-engine/troupe/api/v1/catalog"
	"github.com/troupe-engine/troupe/api/v1/cluster"
	"github.com/troupe-engine/troupe/api/v1/flows"
	"github.com/troupe-engine/troupe/api/v1/history"
	"github.com/troupe-engine/troupe/api/v1/hooks"
	"github.com/troupe-engine/troupe/api/v1/route"
	"github.com/troupe-engine/troupe/api/v1/schedules"
	"github.com/troupe-engine/troupe/api/v1/socket"
	"github.com/troupe-engine/troupe/api/v1/statistics"
	"github.com/troupe-engine/troupe/api/v1/tasks"
	"github.com/troupe-engine/troupe/api/v1/work"
	"github.com/troupe-engine/troupe/api/wire"
)

// Config is the configuration of /v1. Zero fields have useful defaults.
type Config struct {
	api.Member

	Version   string // version of Troupe
	StoreKind string // sqlite or postgres
	Name      string // name of the member

	// URL templates for the trace and the log lines of a task, with {trace_id} and {task}; "" means
	// none
	TraceURL, LogURL string

	// Cluster manages the members; nil means that there are no cluster routes.
	Cluster cluster.Cluster

	Heartbeat time.Duration // interval between heartbeats of a silent stream; default 15 s
	Patience  time.Duration // how long a WebSocket client may take to read a message; default 10 s
	// how long a request may start further tasks, and then how long it waits for them; default 10 s
	// each
	BeginFor time.Duration

	// Channels holds channels of other families, by the prefix of their names before the colon. A
	// channel sends the events of an id after the last known message.
	Channels map[string]Channel
}

// Channel sends the events of an object to a listener.
type Channel = socket.Channel

func (c Config) orDefault() Config {
	c.Member = c.Member.OrDefault()
	c.Heartbeat = cmp.Or(max(c.Heartbeat, 0), 15*time.Second)
	c.Patience = cmp.Or(max(c.Patience, 0), 10*time.Second)
	c.BeginFor = cmp.Or(max(c.BeginFor, 0), 10*time.Second)
	return c
}

// service is /v1 of one member: a router, and a handler for each resource.
type service struct {
	*route.Router

	flows     *flows.Handler
	schedules *schedules.Handler
	tasks     *tasks.Handler
	starts    *tasks.StartHandler
	history   *history.Handler
	approvals *approvals.Handler
	jobs      *work.JobHandler
	workers   *work.WorkerHandler
	hooks     *hooks.Handler
	stats     *statistics.Handler
	cluster   *cluster.Handler
	account   *account.Handler
	socket    *socket.Handler
}

// Routes serves everything below /v1/.
type Routes interface {
	api.Family
	http.Handler
}

// New returns the routes of /v1.
func New(cfg Config) (Routes, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	return newService(cfg), nil
}

func newService(cfg Config) *service {
	cfg = cfg.orDefault()
	s := newHandlers(cfg, route.NewRouter(&cfg.Member))
	for _, resource := range []interface{ AddRoutes(*route.Router) }{
		s.flows, s.schedules, s.tasks, s.starts, s.history, s.approvals, s.jobs, s.workers, s.hooks, s.stats,
		s.cluster, s.account, s.socket,
	} {
		resource.AddRoutes(s.Router)
	}
	addDocs(s.Router)
	s.CompleteRoutes()
	return s
}

// newHandlers returns the handlers of all resources, without their routes.
func newHandlers(cfg Config, rt *route.Router) *service {
	names := &catalog.Flows{Store: cfg.Store, Reader: cfg.Reader}
	finder := &catalog.Tasks{Catalog: names, Store: cfg.Store}
	feeds := &history.FeedSource{Store: cfg.Store, Reader: cfg.Reader, Engine: cfg.Engine, Logger: cfg.Logger}
	s := &service{Router: rt}
	s.flows = &flows.Handler{
		Router: rt, Catalog: names, Finder: finder, Store: cfg.Store, Reader: cfg.Reader, Engine: cfg.Engine,
		Limits: cfg.Limits, CheckFunc: cfg.Func, CheckSecret: cfg.Secret,
	}
	s.workers = &work.WorkerHandler{
		Catalog: names, Member: cfg.Member, Reader: cfg.Reader, Engine: cfg.Engine, Registry: cfg.Registry,
		WorkerTTL: cfg.WorkerTTL,
	}
	positions := &work.Positions{Store: cfg.Store, Reader: cfg.Reader, Registry: cfg.Registry, Workers: s.workers}
	s.jobs = &work.JobHandler{
		Router: rt, Workers: s.workers, Member: cfg.Member, Store: cfg.Store, Reader: cfg.Reader, Engine: cfg.Engine,
	}
	s.starts = &tasks.StartHandler{
		Router: rt, Catalog: names, Finder: finder, Store: cfg.Store, Reader: cfg.Reader, Engine: cfg.Engine,
		Limits: cfg.Limits, Logger: cfg.Logger, BeginFor: cfg.BeginFor,
	}
	s.schedules = &schedules.Handler{Catalog: names, Starts: s.starts, Store: cfg.Store, Engine: cfg.Engine}
	s.tasks = &tasks.Handler{
		Router: rt, Finder: finder, Starts: s.starts, Positions: positions, Store: cfg.Store, Reader: cfg.Reader,
		Engine: cfg.Engine, Payloads: cfg.Payloads,
	}
	s.history = &history.Handler{
		Router: rt, Positions: positions, Feeds: feeds, Store: cfg.Store, Reader: cfg.Reader, Engine: cfg.Engine,
		Payloads: cfg.Payloads, Logger: cfg.Logger, Heartbeat: cfg.Heartbeat,
	}
	s.approvals = &approvals.Handler{
		Router: rt, Catalog: names, Store: cfg.Store, Reader: cfg.Reader, Engine: cfg.Engine, Payloads: cfg.Payloads,
	}
	s.hooks = &hooks.Handler{
		Router: rt, Catalog: names, Store: cfg.Store, Reader: cfg.Reader, Engine: cfg.Engine, Logger: cfg.Logger,
	}
	s.stats = &statistics.Handler{
		Catalog: names, Finder: finder, Workers: s.workers, Store: cfg.Store, Engine: cfg.Engine, Cluster: cfg.Cluster,
	}
	s.cluster = &cluster.Handler{
		Router: rt, Engine: cfg.Engine, Cluster: cfg.Cluster,
		Info: wire.ServerInfo{
			Version: cfg.Version, Store: cfg.StoreKind, Member: cfg.Name, TraceURL: cfg.TraceURL, LogURL: cfg.LogURL,
		},
	}
	s.account = &account.Handler{Router: rt, Store: cfg.Store, Engine: cfg.Engine, Logger: cfg.Logger}
	s.socket = &socket.Handler{
		Router: rt, Finder: finder, Feeds: feeds, Store: cfg.Store, Payloads: cfg.Payloads, Logger: cfg.Logger,
		Heartbeat: cfg.Heartbeat, Patience: cfg.Patience, Channels: cfg.Channels,
	}
	return s
}

// Mount adds the routes and lets web pages read the answers. The description needs no token,
// because browsers and editors cannot send one. Deliveries to hooks are signed instead.
func (s *service) Mount(shell *api.Server) {
	shell.MountOpen("/v1/", api.ForPages(api.Compressed(shell.NeedToken(s.Router))))
	s.hooks.MountDeliveries(shell)
	s.approvals.MountLinks(shell)
	s.Router.Shell = shell
	s.account.MountSessions(shell)
	shell.TakesDefinitions("/v1/validate", "/v1/try", "/v1/flows", "/v1/flows/")
	for _, page := range []string{"GET /v1/docs", "GET /v1/openapi.json", "GET /v1/openapi.yaml", "GET /v1/schema/flow.json"} {
		shell.MountOpen(page, api.ForPages(s.Router))
	}
}
