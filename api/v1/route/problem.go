package route

import (
	"cmp"
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
	"github.com/troupe-engine/troupe/definition"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/hook"
	"github.com/troupe-engine/troupe/flow/schedule"
	"github.com/troupe-engine/troupe/flow/types"
)

const problemType = "application/problem+json"

// Problem is a wire.Problem that implements the framework's interfaces.
type Problem struct {
	wire.Problem
}

// GetStatus returns the status of the answer.
func (p *Problem) GetStatus() int { return p.Status }

// ContentType returns the media type of the answer.
func (p *Problem) ContentType(string) string { return problemType }

// GetHeaders returns the headers of the answer.
func (p *Problem) GetHeaders() http.Header {
	h := http.Header{}
	api.SayWhen(h, p.Status)
	return h
}

// LocatedError is an error with its place in the request and advice.
type LocatedError struct {
	Where, Hint string
	Err         error
}

func (l *LocatedError) Error() string { return l.Where + ": " + l.Err.Error() }
func (l *LocatedError) Unwrap() error { return l.Err }

// LocateError adds the place in the request to an error; nil stays nil.
func LocateError(where string, err error) error {
	if err == nil {
		return nil
	}
	return &LocatedError{Where: where, Err: err}
}

// NewInvalidError returns an error of the kind flow.Invalid for a place in the request.
func NewInvalidError(where, hint, format string, args ...any) error {
	return &LocatedError{Where: where, Hint: hint, Err: flow.Errorf(flow.Invalid, format, args...)}
}

// NewNotFoundError returns an error of the kind flow.NotFound for a place in the request.
func NewNotFoundError(where, hint, format string, args ...any) error {
	return &LocatedError{Where: where, Hint: hint, Err: flow.Errorf(flow.NotFound, format, args...)}
}

// ToProblem converts an error to an answer, and logs internal errors.
func (rt *Router) ToProblem(ctx context.Context, err error) *Problem {
	err = api.Cause(ctx, err)
	v := api.Judge(err)
	p := &Problem{wire.Problem{Status: v.Status, Code: string(v.Kind), Message: v.What, Hint: v.Hint, RequestID: api.RequestID(ctx)}}
	var l *LocatedError
	if errors.As(err, &l) {
		p.Field, p.Hint = l.Where, cmp.Or(l.Hint, v.Hint)
	}
	var bad *flow.BadInputs
	if errors.As(err, &bad) {
		p.Message, p.Errors = "the params do not match the inputs that the flow declares", toFaults(bad.Problems)
	}
	var answer *FormError
	if errors.As(err, &answer) {
		p.Message, p.Errors = "the answer does not fit the form", answer.ListFaults()
	}
	var problems definition.Problems
	if errors.As(err, &problems) {
		p.Message = "the definition is not valid"
		p.Hint = "correct the faults that problems lists"
		p.Problems = api.DefinitionProblems(problems)
	}
	var settings hook.Problems
	if errors.As(err, &settings) {
		p.Field, p.Message, p.Hint = "body."+settings[0].Where, settings[0].What, "docs/how-to/hooks.md lists the fields of a hook"
		p.Errors = hookFaults(settings)
	}
	var timetable schedule.Faults
	if errors.As(err, &timetable) {
		p.Errors = scheduleFaults(timetable)
	}
	if v.Log && ctx.Err() == nil { // if ctx has ended, the client has gone
		rt.logger.ErrorContext(ctx, "request failed", "error", err, "request", p.RequestID)
	}
	if v.Denied {
		api.NoteRefusal(ctx, v.What)
	}
	return p.AddExplanation()
}

// toFaults converts input errors. The place of each refers to the request.
func toFaults(problems types.Problems) []wire.FieldError {
	faults := make([]wire.FieldError, len(problems))
	for i, p := range problems {
		faults[i] = wire.FieldError{Message: p.Msg, Field: p.Where()}
	}
	return faults
}

// hookFaults returns the wrong settings of a hook; nil if there is only one.
func hookFaults(problems hook.Problems) (faults []wire.FieldError) {
	if len(problems) == 1 {
		return nil
	}
	for _, p := range problems {
		faults = append(faults, wire.FieldError{Message: p.What, Field: "body." + p.Where})
	}
	return faults
}

// scheduleFaults returns the wrong fields of a schedule; nil if there is only one.
func scheduleFaults(faults schedule.Faults) (list []wire.FieldError) {
	if len(faults) == 1 {
		return nil
	}
	for _, fault := range faults {
		list = append(list, wire.FieldError{Message: fault.Msg, Field: "body." + fault.Field})
	}
	return list
}

// AddExplanation sets the texts of a problem that follow from its status and code.
func (p *Problem) AddExplanation() *Problem {
	p.Title = http.StatusText(p.Status)
	p.Explain()
	return p
}

// ProblemResponse returns the OpenAPI description of error answers.
func (rt *Router) ProblemResponse() *huma.Response {
	schema := rt.API.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[Problem](), true, "")
	return &huma.Response{Description: "Problem", Content: map[string]*huma.MediaType{problemType: {Schema: schema}}}
}

// noRoute answers requests without a route, with 405 if another method would match.
func (rt *Router) noRoute(w http.ResponseWriter, r *http.Request) {
	p := &Problem{wire.Problem{Status: http.StatusNotFound, Code: string(flow.NotFound), RequestID: api.RequestID(r.Context()),
		Message: "there is no such route", Field: "path", Hint: "/v1/docs lists all routes"}}
	if allowed := api.MethodsOf(rt.Mux, r, "/"); len(allowed) > 0 {
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		p.Status, p.Code = http.StatusMethodNotAllowed, string(flow.Invalid)
		p.Message, p.Field = fmt.Sprintf("the route does not support the method %.20s", r.Method), "method"
		p.Hint = "use " + strings.Join(allowed, " or ")
	}
	p.AddExplanation().Send(w)
}

// Send writes a problem without the framework.
func (p *Problem) Send(w http.ResponseWriter) {
	w.Header().Set("Content-Type", problemType)
	api.SayWhen(w.Header(), p.Status)
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // a client that is gone needs no answer
}

// FormError is the error for a value that does not fit an approval's form.
type FormError struct{ Problems types.Problems }

func (e *FormError) Error() string { return e.Problems.Error() }

// ListFaults returns the faults of the value with their places in the request.
func (e *FormError) ListFaults() (list []wire.FieldError) {
	for _, p := range e.Problems {
		list = append(list, wire.FieldError{Message: p.Msg, Field: strings.Replace(p.Where(), "$params", "body.value", 1)})
	}
	return list
}

// RelocateError changes the place of an error from a query parameter to a place below what.
func RelocateError(err error, what string) error {
	var l *LocatedError
	if !errors.As(err, &l) {
		return err
	}
	return &LocatedError{Where: what + strings.TrimPrefix(l.Where, "query."), Hint: l.Hint, Err: l.Err}
}
