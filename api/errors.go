package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// These are kinds of errors in addition to those of flow.
const (
	// Internal is the kind of errors that a caller cannot correct.
	Internal flow.ErrorKind = "internal"
	// TimedOut is the kind of errors for waits that exceeded their time.
	TimedOut flow.ErrorKind = "timeout"
)

// kinds holds the status and the default hint for each kind of error.
var kinds = map[flow.ErrorKind]struct {
	status int
	hint   string
}{
	flow.Invalid:  {http.StatusBadRequest, "correct the request: sent unchanged, it is rejected again"},
	flow.NotFound: {http.StatusNotFound, "check the name; ended tasks are deleted after the retention time"},
	flow.Conflict: {http.StatusConflict, "get the current state before you try again"},
	flow.Limit: {http.StatusUnprocessableEntity,
		"stay below the limit, or start the server with a higher one (--max-…, see troupe serve --help)"},
	flow.Busy:   {http.StatusTooManyRequests, "try again in a moment"},
	flow.Moved:  {http.StatusTooManyRequests, "try again in a moment"},
	flow.Denied: {http.StatusForbidden, "use the credentials or the token that belong to it"},
	Internal:    {http.StatusInternalServerError, "look for the request ID in the server's log"},
	TimedOut:    {http.StatusRequestTimeout, "wait longer, or get the current state"},
}

// Hint returns the default advice for a kind of error.
func Hint(kind flow.ErrorKind) string { return kinds[kind].hint }

// Refusal is an error with a status and a text that a dialect prescribes.
type Refusal struct {
	Status int
	Kind   flow.ErrorKind
	Text   string
}

func (e *Refusal) Error() string { return e.Text }

// Verdict is the answer to an error. It contains everything that the caller can act on, and nothing
// internal.
type Verdict struct {
	Status int
	Kind   flow.ErrorKind // kind of error, for programs
	What   string
	Hint   string
	Log    bool // the error is internal and has not been logged yet
	Denied bool // the caller lacks a permission; NoteRefusal is called

	own bool // What is the complete text of the answer
}

// Judge converts an error to an answer. No other function decides this; the families of routes only
// print the verdict in their dialect.
func Judge(err error) Verdict {
	v := judgeError(err)
	away := errors.Is(err, persistence.ErrUnavailable) || errors.Is(err, engine.ErrUnavailable)
	if away || timedOut(err) {
		v.Status = http.StatusServiceUnavailable
	}
	v.Log = v.Status >= http.StatusInternalServerError && !away // the member logs outages itself
	return v
}

func judgeError(err error) Verdict {
	var fixed *Refusal
	var known *flow.Error
	var bad *flow.BadInputs
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &fixed):
		return Verdict{Status: fixed.Status, Kind: fixed.Kind, What: fixed.Text, Hint: Hint(fixed.Kind), own: true}
	case errors.As(err, &bad):
		return Verdict{Status: http.StatusUnprocessableEntity, Kind: flow.Invalid,
			What: bad.Error(), Hint: "send the inputs that the flow declares", own: true}
	case errors.As(err, &known):
		v := newVerdict(known.Kind, known.Msg)
		v.own, v.Denied = true, known.Msg == flow.WrongToken
		return v
	case errors.As(err, &tooLarge):
		return Verdict{Status: http.StatusRequestEntityTooLarge, Kind: flow.Limit,
			What: fmt.Sprintf("the body is larger than %d bytes", tooLarge.Limit),
			Hint: "keep large data elsewhere and pass a reference, or start the member with a larger --max-value"}
	case Missing(err):
		return newVerdict(flow.NotFound, "the object does not exist")
	case errors.Is(err, persistence.ErrDuplicate), errors.Is(err, persistence.ErrExists):
		return newVerdict(flow.Conflict, "the object exists already")
	case errors.Is(err, persistence.ErrRefused):
		return newVerdict(flow.Invalid, "a value cannot be stored: it is not valid UTF-8 text, or holds the character U+0000")
	case errors.Is(err, persistence.ErrUnavailable), errors.Is(err, engine.ErrUnavailable):
		what := "the store is not available"
		if reason := persistence.ReasonOf(err); reason != "" {
			what += ", because " + reason
		}
		return newVerdict(flow.Busy, what)
	case timedOut(err):
		return newVerdict(flow.Busy, "the engine did not answer in time")
	}
	return newVerdict(Internal, "internal error")
}

func newVerdict(kind flow.ErrorKind, what string) Verdict {
	k, ok := kinds[kind]
	if !ok {
		k, kind = kinds[Internal], Internal
	}
	return Verdict{Status: k.status, Kind: kind, What: what, Hint: k.hint}
}

// Text returns the verdict as one sentence.
func (v Verdict) Text() string {
	if v.own {
		return v.What
	}
	return v.What + "; " + v.Hint
}

// Missing reports whether an error means that the requested object does not exist.
func Missing(err error) bool {
	return errors.Is(err, persistence.ErrNotFound) || errors.Is(err, persistence.ErrUnknown) || flow.ErrorKindOf(err) == flow.NotFound
}

func timedOut(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

// Cause returns the cause of a canceled request, such as an unavailable store, if err is that
// cancellation. It returns any other err unchanged.
func Cause(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); timedOut(err) && errors.Is(cause, engine.ErrUnavailable) {
		return cause
	}
	return err
}

// Refuse answers a request with an error. write prints the verdict in the form of the dialect.
func Refuse(w http.ResponseWriter, r *http.Request, err error, write func(http.ResponseWriter, Verdict)) {
	v := Judge(Cause(r.Context(), err))
	SayWhen(w.Header(), v.Status)
	if v.Log {
		NoteError(r, err)
	}
	if v.Denied {
		NoteRefusal(r.Context(), v.What)
	}
	write(w, v)
}

// SayWhen sets Retry-After for statuses that ask the client to retry.
func SayWhen(h http.Header, status int) {
	if status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable {
		h.Set("Retry-After", "1")
	}
}
