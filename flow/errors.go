package flow

import (
	"errors"
	"fmt"

	"github.com/troupe-engine/troupe/flow/types"
)

// ErrorKind is the kind of an Error. It determines the status code that an API returns.
type ErrorKind string

// Kinds of errors that a caller can act on. Every other error is internal.
const (
	Invalid  ErrorKind = "invalid"   // the request is wrong, so a repetition fails, too
	NotFound ErrorKind = "not_found" // the object does not exist
	Conflict ErrorKind = "conflict"  // not possible in the current state
	Limit    ErrorKind = "limit"     // a documented limit is exceeded
	Busy     ErrorKind = "busy"      // full at the moment; try again later
	Denied   ErrorKind = "denied"    // not allowed
	// Moved means that another member owns the task or soon will. Send the request there with the
	// same request id.
	Moved ErrorKind = "moved"
)

// Error is a failure that its caller can act on. Its text contains what failed, where, and what to
// do.
type Error struct {
	Kind ErrorKind
	Msg  string
}

func (e *Error) Error() string { return e.Msg }

// Errorf returns an Error of the given kind.
func Errorf(kind ErrorKind, format string, args ...any) *Error {
	return &Error{Kind: kind, Msg: fmt.Sprintf(format, args...)}
}

// ErrorKindOf returns the kind of an error that a caller can act on, or "" for any other error.
func ErrorKindOf(err error) ErrorKind {
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return ""
}

// BadInputs rejects the inputs of a task that do not match the declaration of its flow. It lists
// all problems.
type BadInputs struct{ Problems types.Problems }

func (e *BadInputs) Error() string { return e.Problems.Error() }

// As converts the problems to an Error of kind Invalid for errors.As.
func (e *BadInputs) As(target any) bool {
	to, ok := target.(**Error)
	if ok {
		*to = &Error{Kind: Invalid, Msg: e.Error()}
	}
	return ok
}

// Nearest returns the name that word probably misspells, or "" if no name is close. Error messages
// use it.
func Nearest(word string, names []string) string { return types.Nearest(word, names) }
