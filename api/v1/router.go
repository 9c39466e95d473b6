package v1

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
)

// apiRouter holds the routes, their description, and what all answers have in common: roles,
// limits, payloads and problems.
type apiRouter struct {
	mux    *http.ServeMux
	fast   *http.ServeMux // tried first for each request
	huma   huma.API
	values userValues

	payloads *payload.Store
	maxBody  int64
	logger   *slog.Logger
	shell    *api.Server // server that it is mounted in; nil if there is none
}

func newRouter(cfg Config) *apiRouter {
	rt := &apiRouter{
		mux: http.NewServeMux(), fast: http.NewServeMux(), values: userValues{},
		payloads: cfg.Payloads, maxBody: cfg.MaxBody, logger: cfg.Logger,
	}
	rt.huma = humago.New(rt.mux, newAPIConfig(rt.values))
	rt.huma.UseMiddleware(knowRefusals)
	return rt
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
	config.Tags = []*huma.Tag{{Name: "flows"}, {Name: "schedules"}, {Name: "tasks"},
		{Name: "approvals"}, {Name: "history"}, {Name: "jobs"}, {Name: "workers"}, {Name: "hooks"},
		{Name: "member"}, {Name: "cluster"}}
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
func registerOperation[I, O any](rt *apiRouter, op apiOperation, handle func(context.Context, *I) (*O, error)) {
	o := huma.Operation{
		OperationID: op.id, Method: op.method, Path: op.path, Tags: []string{op.tag}, Summary: op.summary, Description: op.text,
		MaxBodyBytes:    rt.maxBody + 1, // a body of exactly this many bytes counts as too large
		BodyReadTimeout: bodyTimeout, RequestBody: op.body, SkipValidateBody: op.body != nil,
		Responses: map[string]*huma.Response{"default": rt.problemResponse()},
	}
	rt.restrictOperation(&o)
	rt.values.noteFields(reflect.TypeFor[I]())
	huma.Register(rt.huma, o, func(ctx context.Context, in *I) (*O, error) {
		out, err := handle(ctx, in)
		if err == nil {
			err = rt.checkPayloads(out)
		}
		if err != nil {
			return nil, rt.toProblem(ctx, err)
		}
		return out, nil
	})
	if op.created {
		known := rt.huma.OpenAPI().Paths[op.path]
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

// ServeHTTP serves a request below /v1/.
func (rt *apiRouter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, rt.maxBody)
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
	rt.fast.ServeHTTP(w, inner)
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
