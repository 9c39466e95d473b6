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
	"mime"
	"net/http"
	"reflect"
	"sync/atomic"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"golang.org/x/sync/semaphore"

	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/api/stream"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/internal/bounded"
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

// service is the API of one member.
type service struct {
	Config
	mux    *http.ServeMux
	fast   *http.ServeMux // tried first for each request
	huma   huma.API
	values userValues

	lookups        *semaphore.Weighted // limits lookups for subscriptions
	loggedRefusals bounded.Once        // reasons for which deliveries were rejected
	hooks          compiledHooks
	overview       *cachedAnswer[wire.Overview]
	slow           *cachedAnswer[[]wire.SlowFlow]
	timelines      *timelineCache
	news           *tasksNews
	// key that signs links to approvals; nil until it is needed
	links atomic.Pointer[[]byte]
	shell *api.Server // server that it is mounted in; nil if there is none
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
	s := &service{Config: cfg.orDefault(), mux: http.NewServeMux(), fast: http.NewServeMux(), lookups: semaphore.NewWeighted(lookupsAtOnce), values: userValues{}, overview: newFresh[wire.Overview](), slow: newFresh[[]wire.SlowFlow](), timelines: newTimelines()}
	s.news = &tasksNews{store: s.Store, listeners: map[*newsListener]bool{}, log: func(err error) { s.Logger.Error("changed tasks are told late", "error", err) }}
	s.huma = humago.New(s.mux, newAPIConfig(s.values))
	s.huma.UseMiddleware(knowRefusals)
	s.flowRoutes()
	s.tryRoutes()
	s.scheduleRoutes()
	s.taskRoutes()
	s.approvalRoutes()
	s.bulkRoutes()
	s.rerunRoutes()
	s.compareRoutes()
	s.diffRoutes()
	s.stepRoutes()
	s.digestRoutes()
	s.valueRoutes()
	s.historyRoutes()
	s.traceRoutes()
	s.timelineRoutes()
	s.logRoutes()
	s.socketRoute()
	s.jobRoutes()
	s.workerRoutes()
	s.reportRoutes()
	s.hookRoutes()
	s.memberRoutes()
	s.overviewRoutes()
	s.statsRoutes()
	s.sessionRoutes()
	s.tokenRoutes()
	s.viewRoutes()
	s.clusterRoutes()
	neverNull(s.huma.OpenAPI())
	s.registerDocs()
	s.mux.HandleFunc("/", s.noRoute)
	s.fastRoutes()
	return s
}

// Mount adds the routes and lets web pages read the answers. The description needs no token,
// because browsers cannot send one before they have a page, and editors never do. Deliveries to
// hooks are signed instead.
func (s *service) Mount(shell *api.Server) {
	shell.MountOpen("/v1/", api.ForPages(api.Compressed(shell.NeedToken(s))))
	shell.MountOpen("POST "+deliveryPath, shell.FromOutside(s, maxDelivery))
	s.mountLinks(shell)
	s.shell = shell
	for _, way := range []string{"POST ", "DELETE "} {
		shell.MountOpen(way+sessionPath, api.ForPages(shell.FromOutside(s, maxSession)))
	}
	shell.TakesDefinitions("/v1/validate", "/v1/try", "/v1/flows", "/v1/flows/")
	for _, page := range []string{"GET /v1/docs", "GET /v1/openapi.json", "GET /v1/openapi.yaml", "GET /v1/schema/flow.json"} {
		shell.MountOpen(page, api.ForPages(s))
	}
}

// newAPIConfig returns the OpenAPI document without its operations.
func newAPIConfig(values userValues) huma.Config {
	config := huma.DefaultConfig("Troupe", "1")
	config.Info.Description = "The API of Troupe, a durable workflow engine. Problems are answered as application/problem+json."
	// served by our own handlers
	config.OpenAPIPath, config.DocsPath, config.SchemasPath = "", "", ""
	config.CreateHooks = nil
	config.Transformers = []huma.Transformer{transformRefusal}
	config.Formats = map[string]huma.Format{"application/json": values.bodyFormat(), "json": values.bodyFormat()}
	config.RejectUnknownQueryParameters = true
	config.Components.SecuritySchemes = map[string]*huma.SecurityScheme{
		"bearer": {Type: "http", Scheme: "bearer", Description: "needed when the server has tokens configured"},
	}
	config.Security = []map[string][]string{{}, {"bearer": {}}}
	config.Servers = []*huma.Server{
		{URL: "/", Description: "the member that this description was asked for"},
		{URL: "http://127.0.0.1:8070", Description: "a member that was started without settings"},
	}
	config.Tags = []*huma.Tag{{Name: "flows"}, {Name: "schedules"}, {Name: "tasks"}, {Name: "approvals"}, {Name: "history"}, {Name: "jobs"}, {Name: "workers"}, {Name: "hooks"}, {Name: "member"}, {Name: "cluster"}}
	config.Components.Schemas.RegisterTypeAlias(reflect.TypeFor[wire.Time](), reflect.TypeFor[time.Time]())
	config.Components.Schemas.RegisterTypeAlias(reflect.TypeFor[huma.ErrorModel](), reflect.TypeFor[problem]())
	config.Components.Schemas.RegisterTypeAlias(reflect.TypeFor[wire.Problem](), reflect.TypeFor[problem]())
	return config
}

// bodyTimeout is the time limit for reading a request's body.
const bodyTimeout = 30 * time.Second

// apiOperation is the short form of a route.
type apiOperation struct {
	id, method, path, tag, summary, text string
	created                              bool // may answer 201 besides 200
	body                                 *huma.RequestBody
}

// registerOperation adds a route. It is the only place where errors become problems.
func registerOperation[I, O any](s *service, op apiOperation, handle func(context.Context, *I) (*O, error)) {
	o := huma.Operation{
		OperationID: op.id, Method: op.method, Path: op.path, Tags: []string{op.tag}, Summary: op.summary, Description: op.text,
		MaxBodyBytes:    s.MaxBody + 1, // a body of exactly this many bytes counts as too large
		BodyReadTimeout: bodyTimeout, RequestBody: op.body, SkipValidateBody: op.body != nil,
		Responses: map[string]*huma.Response{"default": s.problemResponse()},
	}
	s.restrictOperation(&o)
	s.values.noteFields(reflect.TypeFor[I]())
	huma.Register(s.huma, o, func(ctx context.Context, in *I) (*O, error) {
		out, err := handle(ctx, in)
		if err == nil {
			err = s.checkPayloads(out)
		}
		if err != nil {
			return nil, s.toProblem(ctx, err)
		}
		return out, nil
	})
	if op.created {
		known := s.huma.OpenAPI().Paths[op.path]
		for _, o := range []*huma.Operation{known.Put, known.Post} {
			if o != nil && o.OperationID == op.id {
				o.Responses["201"] = &huma.Response{Description: "Created", Content: o.Responses["200"].Content}
			}
		}
	}
}

// bodyResponse is an answer that has only a body.
type bodyResponse[T any] struct{ Body T }

// statusResponse is an answer with a body and a status.
type statusResponse[T any] struct {
	Status int
	Body   T
}

func statusOf(created bool) int {
	if created {
		return http.StatusCreated
	}
	return http.StatusOK
}

// httpExchange is a request and its answer, for handlers that outlast the server's time limits.
type httpExchange struct {
	w http.ResponseWriter
	r *http.Request
}

type exchangeKey struct{}

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, s.MaxBody)
	inner := r.WithContext(context.WithValue(r.Context(), exchangeKey{}, httpExchange{w, r}))
	if isForm(r) {
		inner.Header = r.Header.Clone()
		inner.Header.Del("Content-Type")
	}
	defer func() { // logs and metrics read the route from the outer request
		if inner.Pattern != "/" {
			r.Pattern = inner.Pattern
		}
	}()
	s.fast.ServeHTTP(w, inner)
}

// isForm reports whether a body is declared to be a form. No route accepts one, but curl -d
// declares any body so. Bodies without a type are read as JSON.
func isForm(r *http.Request) bool {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return err == nil && kind == "application/x-www-form-urlencoded"
}

// liftTimeLimits lifts the server's time limits from a request that waits. The returned context
// also ends when the server begins to stop.
func liftTimeLimits(ctx context.Context) (context.Context, context.CancelFunc) {
	x := ctx.Value(exchangeKey{}).(httpExchange)
	return stream.Stay(x.w, x.r)
}
