package engine

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/troupe-engine/troupe/flow"
)

// ErrUnavailable means that the store cannot be reached, or has no room, at the moment. It is
// unknown whether the request had its effect.
var ErrUnavailable = errors.New("engine: the store is not available")

// unableError is an error of a member that cannot work at the moment.
type unableError struct{ error }

// Unable marks an error that may not occur at another member. The result also matches
// ErrUnavailable.
func Unable(err error) error { return unableError{err} }

func (u unableError) Unwrap() error        { return u.error }
func (u unableError) Is(target error) bool { return target == ErrUnavailable }

// NotBegun returns the error for a request that was not begun because of err.
func NotBegun(err error) error {
	return Unable(flow.Errorf(flow.Busy, "%v: nothing was done; try again in a moment", err))
}

// CheckStore returns an error if the member knows that its store is unavailable. Requests that
// store something call it before their first read, because an unavailable store may never answer.
func CheckStore(e Engine) error {
	if err := e.Ready(); errors.Is(err, ErrUnavailable) {
		return NotBegun(err)
	}
	return nil
}

// Refusal is the answer to a request that the member did not carry out. It transports the error to
// another member.
type Refusal struct{ Err error }

// The names of errors in messages, other than flow.Error.
const (
	nameUnavailable = "unavailable"
	nameDeadline    = "deadline"
	nameCanceled    = "gave up"
	nameBadInputs   = "bad inputs" // the text is the list of problems
	nameInternal    = "internal"
)

// namedErrors maps names in messages to the errors that keep their identity.
var namedErrors = map[string]error{nameUnavailable: ErrUnavailable, nameDeadline: context.DeadlineExceeded, nameCanceled: context.Canceled}

// remoteError is an error that came from another member.
type remoteError struct {
	text  string
	cause error // an error of namedErrors, or nil
}

func (f *remoteError) Error() string { return f.text }
func (f *remoteError) Unwrap() error { return f.cause }

// encodeError returns the name and the text of an error for a message. The name is "" for nil.
func encodeError(err error) (name, text string) {
	var e *flow.Error
	var bad *flow.BadInputs
	switch {
	case err == nil:
		return "", ""
	case errors.As(err, &bad):
		list, _ := json.Marshal(bad.Problems) // problems can always be marshaled
		return nameBadInputs, string(list)
	case errors.Is(err, ErrUnavailable):
		return nameUnavailable, err.Error()
	case errors.As(err, &e):
		return string(e.Kind), e.Msg
	}
	for name, is := range namedErrors {
		if errors.Is(err, is) {
			return name, err.Error()
		}
	}
	return nameInternal, err.Error()
}

// decodeError returns the error for a name and a text of encodeError.
func decodeError(name, text string) error {
	switch kind := flow.ErrorKind(name); kind {
	case "":
		return nil
	case flow.Invalid, flow.NotFound, flow.Conflict, flow.Limit, flow.Busy, flow.Denied, flow.Moved:
		return &flow.Error{Kind: kind, Msg: text}
	case nameBadInputs:
		bad := &flow.BadInputs{}
		if err := json.Unmarshal([]byte(text), &bad.Problems); err == nil {
			return bad
		}
	}
	return &remoteError{text, namedErrors[name]}
}
