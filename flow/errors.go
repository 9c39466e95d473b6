package flow

import (
	"errors"
	"fmt"

	"github.com/troupe-engine/troupe/flow/types"
)

// ErrorKind of an Error decides its status at a border.
type ErrorKind string

// Kinds of errors a caller can act on. Every other error is internal.
const (
	Invalid  ErrorKind = "invalid"   // the request is wrong; it will be refused again
	NotFound ErrorKind = "not_found" // no such thing
	Conflict ErrorKind = "conflict"  // not in this state
	Limit    ErrorKind = "limit"     // over a stated limit
	Busy     ErrorKind = "busy"      // full at the moment; try again later
	Denied   ErrorKind = "denied"    // not allowed
	Moved    ErrorKind = "moved"     // another member has the task now, or soon has: ask that one, under the same request id
)

// Error is a failure its caller can act on: what, where and what to do.
type Error struct {
	Kind ErrorKind
	Msg  string
}

func (e *Error) Error() string { return e.Msg }

// Errorf makes an Error of a kind.
func Errorf(kind ErrorKind, format string, args ...any) *Error {
	return &Error{Kind: kind, Msg: fmt.Sprintf(format, args...)}
}

// ErrorKindOf returns the kind of an error a caller can act on, "" for any other.
func ErrorKindOf(err error) ErrorKind {
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return ""
}

// BadInputs refuses what a task is to be started with, because it is not what its flow declares. It
// tells all problems.
type BadInputs struct{ Problems types.Problems }

func (e *BadInputs) Error() string { return e.Problems.Error() }

// As makes it an Error of the kind Invalid for those who ask with errors.As.
func (e *BadInputs) As(target any) bool {
	to, ok := target.(**Error)
	if ok {
		*to = &Error{Kind: Invalid, Msg: e.Error()}
	}
	return ok
}
