package route

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/flow"
)

// The framework builds its own error for a request that does not match its schema. Its hooks for
// that are global variables, which stay unchanged. Instead, the error is converted to a problem
// when it is answered.

// humaContext is an alias, because an embedded Context would conflict with the method Context.
type humaContext = huma.Context

// checkedContext is the framework's context of a request. It also records whether the body was too
// large, and the status of a refusal.
type checkedContext struct {
	humaContext
	tooLarge bool // the body was too large
	status   int  // status of the refusal; 0 if there is none
}

// knowRefusals wraps the context of each request in a checkedContext.
func knowRefusals(ctx huma.Context, next func(huma.Context)) {
	next(&checkedContext{humaContext: ctx})
}

func (c *checkedContext) SetStatus(status int) {
	if c.status != 0 {
		status = c.status
	}
	c.humaContext.SetStatus(status)
}

func (c *checkedContext) BodyReader() io.Reader { return &checkedBody{c.humaContext.BodyReader(), c} }

// checkedBody records whether a body exceeded its limit.
type checkedBody struct {
	io.Reader
	of *checkedContext
}

func (b *checkedBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	var tooLarge *http.MaxBytesError
	b.of.tooLarge = b.of.tooLarge || errors.As(err, &tooLarge)
	return n, err
}

// transformRefusal converts the framework's errors to problems.
func transformRefusal(ctx huma.Context, _ string, answer any) (any, error) {
	e, ok := answer.(*huma.ErrorModel)
	if !ok {
		return answer, nil
	}
	p := toRefusal(ctx, e)
	if c, ok := ctx.(*checkedContext); ok {
		c.status = p.Status
	}
	return p, nil
}

// toRefusal returns the problem for a request that does not match its schema.
func toRefusal(ctx huma.Context, e *huma.ErrorModel) *Problem {
	p := &Problem{wire.Problem{Status: e.Status, Code: string(flow.Invalid), Message: e.Detail, RequestID: api.RequestID(ctx.Context())}}
	for _, detail := range e.Errors {
		p.Errors = append(p.Errors, faultOf(ctx.Operation(), detail))
	}
	slices.SortFunc(p.Errors, func(a, b wire.FieldError) int { return strings.Compare(a.Field, b.Field) })
	if c, ok := ctx.(*checkedContext); ok && c.tooLarge {
		p.Status = http.StatusRequestEntityTooLarge
	}
	if p.Status == http.StatusInternalServerError { // an incomplete body has no faulty parts
		p.Errors = nil
	}
	if len(p.Errors) > 0 {
		p.Message, p.Field, p.Hint = p.Errors[0].Message, p.Errors[0].Field, p.Errors[0].Hint
	}
	if len(p.Errors) == 1 {
		p.Errors = nil
	}
	p.normalizeStatus()
	return p.AddExplanation()
}

// normalizeStatus sets the status and the text of a framework error. A request that does not match
// its schema becomes 400.
func (p *Problem) normalizeStatus() {
	switch p.Status {
	case http.StatusUnprocessableEntity:
		p.Status = http.StatusBadRequest
	case http.StatusRequestEntityTooLarge:
		p.Code, p.Message, p.Field, p.Errors = string(flow.Limit), "the body is too large", "body", nil
		p.Hint = "keep large data elsewhere and pass a reference"
	case http.StatusUnsupportedMediaType:
		p.Message, p.Field, p.Hint = "the body has an unsupported type", "header.Content-Type", "send application/json"
	case http.StatusRequestTimeout:
		p.Field, p.Hint = "body", "send the body faster"
	case http.StatusInternalServerError: // the body was incomplete
		p.Status, p.Field, p.Hint = http.StatusBadRequest, "body", "send the whole body"
	}
	if p.Hint == "" {
		p.Hint = api.Hint(flow.Invalid)
	}
}

// faultOf describes a fault without the sent value, which may be long or secret.
func faultOf(op *huma.Operation, e *huma.ErrorDetail) wire.FieldError {
	f := wire.FieldError{Message: e.Message, Field: e.Location}
	switch {
	case strings.HasPrefix(e.Location, "query.") && strings.HasPrefix(e.Message, "unknown"):
		f.Hint = "known are: " + strings.Join(queryOf(op), ", ")
	case e.Message == "unexpected property":
		f.Message, f.Hint = "there is no such field", "correct its name or remove it"
	case strings.HasPrefix(e.Message, "invalid date/time"): // the original has Go formats
		f.Message, f.Hint = "this is not a time", "send one as in RFC 3339, with its zone: 2026-01-31T15:04:05Z"
	// the original message has the sent value and a Go type
	case strings.HasPrefix(e.Message, notThatNumber):
		f.Message, f.Hint = "the number is too large, or not a whole number",
			"send a whole number of at most 18 digits, without a decimal point or an exponent"
		f.Field += fieldOf(e.Message)
	case e.Location == "body":
		f.Hint = "send a JSON object as it is described at /v1/docs"
	}
	return f
}

// notThatNumber begins the decoder's message for a number that does not fit its field. The schema
// accepts such numbers, because it treats them as floats.
const notThatNumber = "json: cannot unmarshal number "

// fieldOf returns the field in a decoder's message, such as .filter.version of "… into Go struct
// field TaskFilter.filter.version of type int". It drops names of structs, which begin with capital
// letters.
func fieldOf(message string) (path string) {
	_, spot, _ := strings.Cut(message, " into Go struct field ")
	spot, _, _ = strings.Cut(spot, " of type ")
	for name := range strings.SplitSeq(spot, ".") {
		if name != "" && strings.ToLower(name) == name {
			path += "." + name
		}
	}
	return path
}

func queryOf(op *huma.Operation) []string {
	names := []string{}
	for _, p := range op.Parameters {
		if p.In == "query" {
			names = append(names, p.Name)
		}
	}
	if len(names) == 0 {
		return []string{"none"}
	}
	return names
}

// neverNull marks all lists in the description as not nullable.
func neverNull(o *huma.OpenAPI) {
	for _, s := range o.Components.Schemas.Map() {
		listsNeverNull(s)
	}
	for _, path := range o.Paths {
		for _, op := range []*huma.Operation{path.Get, path.Put, path.Post, path.Delete} {
			if op == nil {
				continue
			}
			for _, p := range op.Parameters {
				listsNeverNull(p.Schema)
			}
		}
	}
}

func listsNeverNull(s *huma.Schema) {
	if s == nil {
		return
	}
	if s.Type == huma.TypeArray {
		s.Nullable = false
	}
	listsNeverNull(s.Items)
	for _, property := range s.Properties {
		listsNeverNull(property)
	}
}
