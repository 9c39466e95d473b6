package troupe

import (
	"errors"
	"fmt"
	"strings"

	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/api/client"
	"github.com/troupe-engine/troupe/definition"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// The methods of an Engine return one of these errors, for errors.Is; the text names the cause. A
// definition that cannot be published is rejected with Problems, for errors.As.
var (
	// no such flow, version, task or other object
	ErrNotFound = errors.New("troupe: there is no such thing")
	// the operation is no longer possible
	ErrEnded = errors.New("troupe: the task has ended")
	// includes ErrEnded, and a key that was used for another request
	ErrConflict = errors.New("troupe: not in this state")
	ErrInvalid  = errors.New("troupe: it cannot be so") // a retry fails again
	ErrLimit    = errors.New("troupe: over a limit")
	ErrBusy     = errors.New("troupe: not at the moment") // full, or without its store: retry later
)

type (
	// Problems are all problems of a definition, in the order of its text.
	Problems = definition.Problems
	// Problem is one problem of a definition with its place: a path such as nodes.a.retry,
	// and the line and column.
	Problem = definition.Problem
)

var kinds = map[flow.ErrorKind]error{flow.NotFound: ErrNotFound, flow.Conflict: ErrConflict, flow.Invalid: ErrInvalid, flow.Limit: ErrLimit,
	flow.Busy: ErrBusy, flow.Moved: ErrBusy}

// classifiedError is an error that also matches other errors.
type classifiedError struct {
	text string
	is   []error
}

func (r *classifiedError) Error() string   { return r.text }
func (r *classifiedError) Unwrap() []error { return r.is }

// newNotFoundError returns an error that reports a missing thing.
func newNotFoundError(cause error, format string, args ...any) error {
	text := fmt.Sprintf(format, args...)
	return &classifiedError{text, []error{ErrNotFound, flow.Errorf(flow.NotFound, "%s", text), cause}}
}

// toTypedError converts an error of a member or of the /v1 routes to one of the errors above.
func toTypedError(err error) error {
	var refused *client.Error
	if errors.As(err, &refused) {
		return fromClientError(refused)
	}
	kind := flow.ErrorKindOf(err)
	switch {
	case err == nil:
		return nil
	case api.Missing(err):
		kind = flow.NotFound
	case errors.Is(err, engine.ErrUnavailable), errors.Is(err, persistence.ErrUnavailable):
		kind = flow.Busy
	}
	if is := kinds[kind]; is != nil {
		return &classifiedError{err.Error(), []error{err, is}}
	}
	return err
}

// fromClientError returns the error of a route, without the parts about HTTP.
func fromClientError(refused *client.Error) error {
	if len(refused.Problems) > 0 {
		var problems Problems
		for _, p := range refused.Problems {
			problems = append(problems, Problem{Path: p.Path, Line: p.Line, Column: p.Column,
				Severity: definition.Severity(p.Severity), Msg: p.Message})
		}
		return problems
	}
	kind, text := flow.ErrorKind(refused.Code), refused.Message
	if kind == flow.Invalid && refused.Field != "" {
		text = strings.TrimPrefix(refused.Field, "body.") + ": " + text
	}
	r := &classifiedError{text, []error{&flow.Error{Kind: kind, Msg: text}}}
	if is := kinds[kind]; is != nil {
		r.is = append(r.is, is)
	}
	return r
}
