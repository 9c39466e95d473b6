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
	"github.com/troupe-engine/troupe/flow/hook"
	"github.com/troupe-engine/troupe/flow/schedule"
	"github.com/troupe-engine/troupe/flow/types"
)

const problemType = "application/problem+json"

// problem is a wire.Problem in the form that the framework needs.
type problem struct {
	wire.Problem
}

func (p *problem) GetStatus() int { return p.Status }

func (p *problem) ContentType(string) string { return problemType }

func (p *problem) GetHeaders() http.Header {
	h := http.Header{}
	api.SayWhen(h, p.Status)
	return h
}

// locatedError is an error with the part of a request it refers to, and advice.
type locatedError struct {
	where, hint string
	err         error
}

func (l *locatedError) Error() string { return l.where + ": " + l.err.Error() }
func (l *locatedError) Unwrap() error { return l.err }

// locateError adds the part of the request that an error refers to.
func locateError(where string, err error) error {
	if err == nil {
		return nil
	}
	return &locatedError{where: where, err: err}
}

// newInvalidError returns an error that rejects a part of the request.
func newInvalidError(where, hint, format string, args ...any) error {
	return &locatedError{where: where, hint: hint, err: flow.Errorf(flow.Invalid, format, args...)}
}

// newNotFoundError returns an error for an object that the request names and that does not exist.
func newNotFoundError(where, hint, format string, args ...any) error {
	return &locatedError{where: where, hint: hint, err: flow.Errorf(flow.NotFound, format, args...)}
}

// toProblem converts an error to an answer.
func (rt *apiRouter) toProblem(ctx context.Context, err error) *problem {
	err = api.Cause(ctx, err)
	v := api.Judge(err)
	p := &problem{wire.Problem{Status: v.Status, Kind: string(v.Kind), What: v.What, Hint: v.Hint, Request: api.RequestID(ctx)}}
	var l *locatedError
	if errors.As(err, &l) {
		p.Where, p.Hint = l.where, orElse(l.hint, v.Hint)
	}
	var bad *flow.BadInputs
	if errors.As(err, &bad) {
		p.What, p.Faults = "the inputs are not what the flow declares", toFaults(bad.Problems)
	}
	var answer *badAnswer
	if errors.As(err, &answer) {
		p.What, p.Faults = "the answer does not fit the form", answer.listFaults()
	}
	var problems define.Problems
	if errors.As(err, &problems) {
		p.What = "the definition cannot be used"
		p.Hint = "mend what problems lists"
		p.Problems = api.DefinitionProblems(problems)
	}
	var settings hook.Problems
	if errors.As(err, &settings) {
		p.Where, p.What, p.Hint = "body."+settings[0].Where, settings[0].What, "docs/how-to/hooks.md lists the fields of a hook"
		p.Faults = hookFaults(settings)
	}
	var timetable schedule.Faults
	if errors.As(err, &timetable) {
		p.Faults = scheduleFaults(timetable)
	}
	if v.Log && ctx.Err() == nil { // otherwise the client has gone
		rt.logger.ErrorContext(ctx, "a request failed", "error", err, "request", p.Request)
	}
	if v.Denied {
		api.NoteRefusal(ctx, v.What)
	}
	return p.addExplanation()
}

// toFaults converts input errors; each place becomes a reference into the request.
func toFaults(problems types.Problems) []wire.Fault {
	faults := make([]wire.Fault, len(problems))
	for i, p := range problems {
		faults[i] = wire.Fault{What: p.Msg, Where: p.Where()}
	}
	return faults
}

// hookFaults returns the wrong settings of a hook; nil if it is only one.
func hookFaults(problems hook.Problems) (faults []wire.Fault) {
	if len(problems) == 1 {
		return nil
	}
	for _, p := range problems {
		faults = append(faults, wire.Fault{What: p.What, Where: "body." + p.Where})
	}
	return faults
}

// scheduleFaults returns the wrong fields of a schedule; nil if it is only one.
func scheduleFaults(faults schedule.Faults) (list []wire.Fault) {
	if len(faults) == 1 {
		return nil
	}
	for _, fault := range faults {
		list = append(list, wire.Fault{What: fault.Msg, Where: "body." + fault.Field})
	}
	return list
}

func (p *problem) addExplanation() *problem {
	p.Title = http.StatusText(p.Status)
	p.Explain()
	return p
}

// problemResponse returns the description of every answer that is no success.
func (rt *apiRouter) problemResponse() *huma.Response {
	schema := rt.huma.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[problem](), true, "")
	return &huma.Response{Description: "Problem", Content: map[string]*huma.MediaType{problemType: {Schema: schema}}}
}

// noRoute answers requests without a route: 405 if another method would match.
func (rt *apiRouter) noRoute(w http.ResponseWriter, r *http.Request) {
	p := &problem{wire.Problem{Status: http.StatusNotFound, Kind: string(flow.NotFound), Request: api.RequestID(r.Context()),
		What: "there is no such route", Where: "path", Hint: "/v1/docs lists all routes"}}
	if allowed := api.MethodsOf(rt.mux, r, "/"); len(allowed) > 0 {
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		p.Status, p.Kind = http.StatusMethodNotAllowed, string(flow.Invalid)
		p.What, p.Where = fmt.Sprintf("the route does not know the method %.20s", r.Method), "method"
		p.Hint = "use " + strings.Join(allowed, " or ")
	}
	p.addExplanation().writeTo(w)
}

// writeTo writes a problem without the framework.
func (p *problem) writeTo(w http.ResponseWriter) {
	w.Header().Set("Content-Type", problemType)
	api.SayWhen(w.Header(), p.Status)
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // a client that is gone needs no answer
}
