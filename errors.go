package troupe

import (
	"errors"
	"fmt"
	"strings"

	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/api/client"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/define"
	"github.com/troupe-engine/troupe/persistence"
)

// What the methods of an Engine refuse is one of these errors, for errors.Is; the text says what is
// wrong and names it. A definition that cannot be published is refused with Problems, for
// errors.As.
var (
	ErrNotFound = errors.New("troupe: there is no such thing") // no such flow, version, task, step, job, worker, schedule or member
	ErrEnded    = errors.New("troupe: the task has ended")     // and cannot do any more what it was asked for
	ErrConflict = errors.New("troupe: not in this state")      // ErrEnded among others, and a key that was used for something else
	ErrInvalid  = errors.New("troupe: it cannot be so")        // asked again it will be refused again
	ErrLimit    = errors.New("troupe: over a limit")
	ErrBusy     = errors.New("troupe: not at the moment") // full, or without its store: ask again
)

type (
	// Problems are all that is wrong with a definition, in the order of its text.
	Problems = define.Problems
	// Problem is something that is wrong with a definition, and where: a path such as
	// nodes.a.max_retries, and the line and column.
	Problem = define.Problem
)

var kinds = map[flow.ErrorKind]error{flow.NotFound: ErrNotFound, flow.Conflict: ErrConflict, flow.Invalid: ErrInvalid, flow.Limit: ErrLimit,
	flow.Busy: ErrBusy, flow.Moved: ErrBusy}

// classifiedError is an error that is also another one.
type classifiedError struct {
	text string
	is   []error
}

func (r *classifiedError) Error() string   { return r.text }
func (r *classifiedError) Unwrap() []error { return r.is }

// newNotFoundError says that something is not there.
func newNotFoundError(cause error, format string, args ...any) error {
	text := fmt.Sprintf(format, args...)
	return &classifiedError{text, []error{ErrNotFound, flow.Errorf(flow.NotFound, "%s", text), cause}}
}

// toTypedError makes one of the errors above of what a member or the routes of /v1 refuse.
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

// fromClientError says what the routes say, without what is about HTTP.
func fromClientError(refused *client.Error) error {
	if len(refused.Problems) > 0 {
		var problems Problems
		for _, p := range refused.Problems {
			problems = append(problems, Problem{Path: p.Path, Line: p.Line, Column: p.Column, Severity: define.Severity(p.Severity), Msg: p.Msg})
		}
		return problems
	}
	kind, text := flow.ErrorKind(refused.Kind), refused.What
	if kind == flow.Invalid && refused.Where != "" {
		text = strings.TrimPrefix(refused.Where, "body.") + ": " + text
	}
	r := &classifiedError{text, []error{&flow.Error{Kind: kind, Msg: text}}}
	if is := kinds[kind]; is != nil {
		r.is = append(r.is, is)
	}
	return r
}
