package v1

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

// The framework makes an error of its own of what does not fit its description, and keeps how it
// does so in variables that belong to the whole program. They stay as they are: that error is
// turned into a problem when it is answered.

// humaContext has another name, because a Context has a method Context.
type humaContext = huma.Context

// checkedContext is the framework's view of a request. It knows what became of the body, and the
// status of a refusal.
type checkedContext struct {
	humaContext
	tooLarge bool // the body
	status   int  // of the refusal; 0 = there is none
}

// knowRefusals has each request be one that is checked.
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

// checkedBody notices that a body ends because it is too large.
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

// transformRefusal turns what the framework refuses into problems.
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

// toRefusal is the answer to a request that does not fit its description.
func toRefusal(ctx huma.Context, e *huma.ErrorModel) *problem {
	p := &problem{wire.Problem{Status: e.Status, Kind: string(flow.Invalid), What: e.Detail, Request: api.RequestID(ctx.Context())}}
	for _, detail := range e.Errors {
		p.Faults = append(p.Faults, faultOf(ctx.Operation(), detail))
	}
	slices.SortFunc(p.Faults, func(a, b wire.Fault) int { return strings.Compare(a.Where, b.Where) })
	if c, ok := ctx.(*checkedContext); ok && c.tooLarge {
		p.Status = http.StatusRequestEntityTooLarge
	}
	if p.Status == http.StatusInternalServerError { // what broke off has no parts that could be wrong
		p.Faults = nil
	}
	if len(p.Faults) > 0 {
		p.What, p.Where, p.Hint = p.Faults[0].What, p.Faults[0].Where, p.Faults[0].Hint
	}
	if len(p.Faults) == 1 {
		p.Faults = nil
	}
	p.normalizeStatus()
	return p.addExplanation()
}

// normalizeStatus finds the status: what does not fit the description is a bad request.
func (p *problem) normalizeStatus() {
	switch p.Status {
	case http.StatusUnprocessableEntity:
		p.Status = http.StatusBadRequest
	case http.StatusRequestEntityTooLarge:
		p.Kind, p.What, p.Where, p.Faults = string(flow.Limit), "the body is too large", "body", nil
		p.Hint = "keep large data elsewhere and pass a reference"
	case http.StatusUnsupportedMediaType:
		p.What, p.Where, p.Hint = "the body has a type that is not understood", "header.Content-Type", "send application/json"
	case http.StatusRequestTimeout:
		p.Where, p.Hint = "body", "send the body faster"
	case http.StatusInternalServerError: // the body broke off
		p.Status, p.Where, p.Hint = http.StatusBadRequest, "body", "send the whole body"
	}
	if p.Hint == "" {
		p.Hint = api.Hint(flow.Invalid)
	}
}

// faultOf tells a fault without repeating what was sent: that may be long, or a secret.
func faultOf(op *huma.Operation, e *huma.ErrorDetail) wire.Fault {
	f := wire.Fault{What: e.Message, Where: e.Location}
	switch {
	case strings.HasPrefix(e.Location, "query.") && strings.HasPrefix(e.Message, "unknown"):
		f.Hint = "known are: " + strings.Join(queryOf(op), ", ")
	case e.Message == "unexpected property":
		f.What, f.Hint = "there is no such field", "correct its name or leave it out"
	case strings.HasPrefix(e.Message, "invalid date/time"): // and then in words of Go
		f.What, f.Hint = "this is no time", "send one as in RFC 3339, with its zone: 2026-01-31T15:04:05Z"
	case strings.HasPrefix(e.Message, notThatNumber): // and then what was sent, and in words of Go where to
		f.What, f.Hint = "the number is too large, or no whole one", "send a whole number of at most 18 digits, without a point and an exponent"
		f.Where += fieldOf(e.Message)
	case e.Location == "body":
		f.Hint = "send a JSON object as it is described at /v1/docs"
	}
	return f
}

// notThatNumber is how the decoder begins to say that a number does not fit its field. The
// description knows numbers as floats, so it has let it pass.
const notThatNumber = "json: cannot unmarshal number "

// fieldOf is the field of the body that the decoder tells of, such as .filter.version of "… into Go
// struct field TaskFilter.filter.version of type int". It names structs, too, with capital letters,
// which fields do not have.
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

// neverNull has no list of the description be null. It is called when all routes are there.
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
