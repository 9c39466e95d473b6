package v1

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/define"
	"github.com/troupe-engine/troupe/persistence"
)

const problemType = "application/problem+json"

// problem is a wire.Problem as the framework wants it.
type problem struct {
	wire.Problem
}

func (p *problem) GetStatus() int { return p.Status }

func (p *problem) ContentType(string) string { return problemType }

// GetHeaders tells a client that is to come back when to do so.
func (p *problem) GetHeaders() http.Header {
	if p.Kind == string(flow.Busy) {
		return http.Header{"Retry-After": {"1"}}
	}
	return nil
}

// located says which part of a request an error is about, and what to do.
type located struct {
	where, hint string
	err         error
}

func (l *located) Error() string { return l.where + ": " + l.err.Error() }
func (l *located) Unwrap() error { return l.err }

// at says which part of the request an error is about.
func at(where string, err error) error {
	if err == nil {
		return nil
	}
	return &located{where: where, err: err}
}

// invalid refuses a part of the request.
func invalid(where, hint, format string, args ...any) error {
	return &located{where: where, hint: hint, err: flow.Errorf(flow.Invalid, format, args...)}
}

// missing says that something which the request names is not there.
func missing(where, hint, format string, args ...any) error {
	return &located{where: where, hint: hint, err: flow.Errorf(flow.NotFound, format, args...)}
}

// isMissing says whether an error means that there is no such thing.
func isMissing(err error) bool {
	return errors.Is(err, persistence.ErrNotFound) || errors.Is(err, persistence.ErrUnknown) || flow.KindOf(err) == flow.NotFound
}

// kinds are the statuses of errors and what can be done about them when they do not say it themselves.
var kinds = map[flow.ErrorKind]struct {
	status int
	hint   string
}{
	flow.Invalid:  {http.StatusBadRequest, "correct the request: as it is it will be refused again"},
	flow.NotFound: {http.StatusNotFound, "check the name; ended tasks are deleted after the retention time"},
	flow.Conflict: {http.StatusConflict, "look at the present state before you try again"},
	flow.Limit:    {http.StatusUnprocessableEntity, "stay below the limit, or have it raised in the server's configuration"},
	flow.Busy:     {http.StatusTooManyRequests, "try again in a moment"},
	flow.Denied:   {http.StatusForbidden, "use the credentials or the token that belong to it"},
	internal:      {http.StatusInternalServerError, "look for the request's id in the server's log"},
}

// internal is the kind of errors a caller can do nothing about.
const internal flow.ErrorKind = "internal"

// problem makes the answer to an error: everything the caller can act on, nothing about our inside.
func (s *service) problem(ctx context.Context, err error) *problem {
	p := &problem{}
	kind, what := classify(err)
	p.Kind, p.What = string(kind), what
	p.Status, p.Hint = kinds[kind].status, kinds[kind].hint
	var l *located
	if errors.As(err, &l) {
		p.Where = l.where
		if l.hint != "" {
			p.Hint = l.hint
		}
	}
	var problems define.Problems
	if errors.As(err, &problems) {
		p.What = "the definition cannot be used"
		p.Hint = "mend what problems lists"
		p.Problems = toProblems(problems)
	}
	away := errors.Is(err, persistence.ErrUnavailable)
	if timedOut(err) || away {
		p.Status = http.StatusServiceUnavailable
	}
	p.Request = api.RequestID(ctx)
	if p.Status >= http.StatusInternalServerError && !away && ctx.Err() == nil { // the member tells of outages; or else the client has gone
		s.Logger.Error("a request failed", "error", err, "request", p.Request)
	}
	return p.complete()
}

func classify(err error) (kind flow.ErrorKind, what string) {
	var e *flow.Error
	switch {
	case errors.As(err, &e):
		return e.Kind, e.Msg
	case isMissing(err):
		return flow.NotFound, "there is no such thing"
	case errors.Is(err, persistence.ErrDuplicate), errors.Is(err, persistence.ErrExists):
		return flow.Conflict, "it exists already"
	case errors.Is(err, persistence.ErrRefused):
		return flow.Invalid, "a value cannot be stored: it is not valid UTF-8 text, or holds the character U+0000"
	case errors.Is(err, persistence.ErrUnavailable):
		return flow.Busy, "the store is not available"
	case timedOut(err):
		return flow.Busy, "the engine did not answer in time"
	}
	return internal, "internal error"
}

func timedOut(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

func (p *problem) complete() *problem {
	p.Title = http.StatusText(p.Status)
	p.Explain()
	return p
}

// problemResponse describes every answer that is no success.
func (s *service) problemResponse() *huma.Response {
	schema := s.huma.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[problem](), true, "")
	return &huma.Response{Description: "Problem", Content: map[string]*huma.MediaType{problemType: {Schema: schema}}}
}

// noRoute answers what fits no route: 405 when another method would.
func (s *service) noRoute(w http.ResponseWriter, r *http.Request) {
	p := &problem{wire.Problem{Status: http.StatusNotFound, Kind: string(flow.NotFound), Request: api.RequestID(r.Context()),
		What: "there is no such route", Where: "path", Hint: "/v1/docs lists all routes"}}
	if allowed := s.methodsFor(r); len(allowed) > 0 {
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		p.Status, p.Kind = http.StatusMethodNotAllowed, string(flow.Invalid)
		p.What, p.Where = fmt.Sprintf("the route does not know the method %.20s", r.Method), "method"
		p.Hint = "use " + strings.Join(allowed, " or ")
	}
	p.complete().write(w)
}

// write is for what is answered without the framework.
func (p *problem) write(w http.ResponseWriter) {
	w.Header().Set("Content-Type", problemType)
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // a client that is gone needs no answer
}

func (s *service) methodsFor(r *http.Request) []string {
	var allowed []string
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete} {
		other := r.Clone(r.Context())
		other.Method = method
		if _, pattern := s.mux.Handler(other); pattern != "/" {
			allowed = append(allowed, method)
		}
	}
	return allowed
}
