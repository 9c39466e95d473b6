package engine

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/troupe-engine/troupe/flow"
)

// ErrUnavailable reports that the store cannot be reached, or has no room, for now. Whether it has
// done what it was asked for is unknown.
var ErrUnavailable = errors.New("engine: the store is not available")

// unableError is an error of a member that cannot do its work for now.
type unableError struct{ error }

// Unable says of an error that another member may do better: it is ErrUnavailable, too.
func Unable(err error) error { return unableError{err} }

func (u unableError) Unwrap() error        { return u.error }
func (u unableError) Is(target error) bool { return target == ErrUnavailable }

// Refusal answers what a member did not do. It is how an error travels.
type Refusal struct{ Err error }

// What an error is called on its way when it is none that a caller can act on.
const (
	nameUnavailable = "unavailable"
	nameDeadline    = "deadline"
	nameCanceled    = "gave up"
	nameBadInputs   = "bad inputs" // its text is the list of them
	nameInternal    = "internal"
)

// namedErrors are the errors that are told apart on the other side, by what they are called.
var namedErrors = map[string]error{nameUnavailable: ErrUnavailable, nameDeadline: context.DeadlineExceeded, nameCanceled: context.Canceled}

// remoteError is an error that has come from another member.
type remoteError struct {
	text  string
	cause error // one of known, or nil
}

func (f *remoteError) Error() string { return f.text }
func (f *remoteError) Unwrap() error { return f.cause }

// encodeError takes an error apart into what it is called and its text; no error has no name.
func encodeError(err error) (name, text string) {
	var e *flow.Error
	var bad *flow.BadInputs
	switch {
	case err == nil:
		return "", ""
	case errors.As(err, &bad):
		list, _ := json.Marshal(bad.Problems) // texts are always marshaled
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

// decodeError is the inverse of spell.
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
