// Package route has the common parts of all routes of /v1: registration, description, roles,
// bodies, problems, answers, and cursors. It knows no resource.
package route

import (
	"context"
	"log/slog"
	"mime"
	"net/http"
	"reflect"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/api/stream"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/internal/payload"

	_ "embed"
	"encoding/json"
)

// Router holds the routes, their description, and the common parts of answers: roles, limits,
// payloads and problems.
type Router struct {
	Mux    *http.ServeMux
	fast   *http.ServeMux // fast routes, which are tried first
	API    huma.API
	values userValues

	payloads *payload.Store
	maxBody  int64
	logger   *slog.Logger
	Shell    *api.Server // server that serves the router; nil if there is none
}

// NewRouter returns a router without routes.
func NewRouter(member *api.Member) *Router {
	rt := &Router{
		Mux: http.NewServeMux(), fast: http.NewServeMux(), values: userValues{},
		payloads: member.Payloads, maxBody: member.MaxBody, logger: member.Logger,
	}
	rt.fast.Handle("/", rt.Mux)
	rt.API = humago.New(rt.Mux, newAPIConfig(rt.values))
	rt.API.UseMiddleware(knowRefusals)
	return rt
}

// newAPIConfig returns the configuration of the OpenAPI document, without operations.
func newAPIConfig(values userValues) huma.Config {
	config := huma.DefaultConfig("Troupe", "1")
	config.Info.Description = "The API of Troupe, a durable workflow engine. Errors are application/problem+json."
	// other handlers serve these paths
	config.OpenAPIPath, config.DocsPath, config.SchemasPath = "", "", ""
	config.CreateHooks = nil
	config.Transformers = []huma.Transformer{transformRefusal}
	config.Formats = map[string]huma.Format{"application/json": values.bodyFormat(), "json": values.bodyFormat()}
	config.RejectUnknownQueryParameters = true
	config.Components.SecuritySchemes = map[string]*huma.SecurityScheme{
		"bearer": {Type: "http", Scheme: "bearer", Description: "Needed if the server has tokens."},
	}
	config.Security = []map[string][]string{{}, {"bearer": {}}}
	config.Servers = []*huma.Server{
		{URL: "/", Description: "The member that returned this document."},
		{URL: "http://127.0.0.1:8070", Description: "A member with default settings."},
	}
	config.Tags = []*huma.Tag{{Name: "flows"}, {Name: "schedules"}, {Name: "tasks"},
		{Name: "approvals"}, {Name: "history"}, {Name: "jobs"}, {Name: "workers"}, {Name: "hooks"},
		{Name: "member"}, {Name: "cluster"}}
	config.Components.Schemas.RegisterTypeAlias(reflect.TypeFor[wire.Time](), reflect.TypeFor[time.Time]())
	config.Components.Schemas.RegisterTypeAlias(reflect.TypeFor[huma.ErrorModel](), reflect.TypeFor[Problem]())
	config.Components.Schemas.RegisterTypeAlias(reflect.TypeFor[wire.Problem](), reflect.TypeFor[Problem]())
	return config
}

// CompleteRoutes answers requests without a route, and completes the description. Call it after all
// routes are added.
func (rt *Router) CompleteRoutes() {
	neverNull(rt.API.OpenAPI())
	rt.Mux.HandleFunc("/", rt.noRoute)
}

// bodyTimeout is the time limit for reading a request's body.
const bodyTimeout = 30 * time.Second

// Operation describes a route in a short form.
type Operation struct {
	ID, Method, Path, Tag, Summary, Text string
	Created                              bool // the route may also answer 201
	Body                                 *huma.RequestBody
}

// Register adds a route, and converts the errors of its handler to problems.
func Register[I, O any](rt *Router, op Operation, handle func(context.Context, *I) (*O, error)) {
	o := huma.Operation{
		OperationID: op.ID, Method: op.Method, Path: op.Path, Tags: []string{op.Tag}, Summary: op.Summary, Description: op.Text,
		MaxBodyBytes:    rt.maxBody + 1, // the framework rejects a body of exactly this size
		BodyReadTimeout: bodyTimeout, RequestBody: op.Body, SkipValidateBody: op.Body != nil,
		Responses: map[string]*huma.Response{"default": rt.ProblemResponse()},
	}
	rt.RestrictOperation(&o)
	rt.values.noteFields(reflect.TypeFor[I]())
	huma.Register(rt.API, o, func(ctx context.Context, in *I) (*O, error) {
		out, err := handle(ctx, in)
		if err == nil {
			err = rt.checkPayloads(out)
		}
		if err != nil {
			return nil, rt.ToProblem(ctx, err)
		}
		return out, nil
	})
	if op.Created {
		known := rt.API.OpenAPI().Paths[op.Path]
		for _, o := range []*huma.Operation{known.Put, known.Post} {
			if o != nil && o.OperationID == op.ID {
				o.Responses["201"] = &huma.Response{Description: "Created", Content: o.Responses["200"].Content}
			}
		}
	}
}

// Response is an answer that has only a body.
type Response[T any] struct{ Body T }

// StatusResponse is an answer with a body and a status.
type StatusResponse[T any] struct {
	Status int
	Body   T
}

// StatusOf returns 201 if an object was created, else 200.
func StatusOf(created bool) int {
	if created {
		return http.StatusCreated
	}
	return http.StatusOK
}

// Exchange is a request with its response writer, for handlers that stay.
type Exchange struct {
	Writer  http.ResponseWriter
	Request *http.Request
}

type exchangeKey struct{}

// ExchangeOf returns the exchange of a context.
func ExchangeOf(ctx context.Context) Exchange {
	return ctx.Value(exchangeKey{}).(Exchange)
}

// ServeHTTP serves a request below /v1/.
func (rt *Router) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, rt.maxBody)
	inner := r.WithContext(context.WithValue(r.Context(), exchangeKey{}, Exchange{w, r}))
	if IsForm(r) {
		inner.Header = r.Header.Clone()
		inner.Header.Del("Content-Type")
	}
	defer func() { // logs and metrics read the route from the outer request
		if inner.Pattern != "/" {
			r.Pattern = inner.Pattern
		}
	}()
	rt.fast.ServeHTTP(w, inner)
}

// IsForm reports whether a body is declared to be a form. No route accepts forms, but curl -d
// declares every body as one. Such bodies are read as JSON.
func IsForm(r *http.Request) bool {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return err == nil && kind == "application/x-www-form-urlencoded"
}

// LiftTimeLimits lifts the time limits of a request that waits. The returned context also ends when
// the server begins to stop.
func LiftTimeLimits(ctx context.Context) (context.Context, context.CancelFunc) {
	x := ExchangeOf(ctx)
	return stream.Stay(x.Writer, x.Request)
}

// NewResponse returns an answer with only a body, or the given error.
func NewResponse[T any](found *T, err error) (*Response[T], error) {
	if err != nil {
		return nil, err
	}
	return &Response[T]{*found}, nil
}

// DescriptionJSON returns the OpenAPI document.
func (rt *Router) DescriptionJSON() []byte {
	b, err := json.MarshalIndent(rt.API.OpenAPI(), "", "  ")
	if err != nil {
		panic(err) // the same for every caller, so a test finds it
	}
	return append(b, '\n')
}

// SchemaOf returns a reference to the schema of a type.
func SchemaOf[T any](schemas huma.Registry) *huma.Schema {
	return schemas.Schema(reflect.TypeFor[T](), true, "")
}
