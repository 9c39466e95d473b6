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

// Kinds of errors beside those of flow.
const (
	// Internal errors are those a caller can do nothing about.
	Internal flow.ErrorKind = "internal"
	// TimedOut: what was waited for did not happen in time.
	TimedOut flow.ErrorKind = "timeout"
)

// kinds say what an error of a kind is answered with, and what can be done about it when it does
// not say so itself.
var kinds = map[flow.ErrorKind]struct {
	status int
	hint   string
}{
	flow.Invalid:  {http.StatusBadRequest, "correct the request: as it is it will be refused again"},
	flow.NotFound: {http.StatusNotFound, "check the name; ended tasks are deleted after the retention time"},
	flow.Conflict: {http.StatusConflict, "look at the present state before you try again"},
	flow.Limit:    {http.StatusUnprocessableEntity, "stay below the limit, or start the server with a higher one (--max-…, see troupe serve --help)"},
	flow.Busy:     {http.StatusTooManyRequests, "try again in a moment"},
	flow.Moved:    {http.StatusTooManyRequests, "try again in a moment"},
	flow.Denied:   {http.StatusForbidden, "use the credentials or the token that belong to it"},
	Internal:      {http.StatusInternalServerError, "look for the request's id in the server's log"},
	TimedOut:      {http.StatusRequestTimeout, "wait for longer, or look at the present state"},
}

// Hint says what can be done about an error of a kind.
func Hint(kind flow.ErrorKind) string { return kinds[kind].hint }

// Refusal is an error whose status a dialect fixes.
type Refusal struct {
	Status int
	Kind   flow.ErrorKind
	Text   string
}

func (e *Refusal) Error() string { return e.Text }

// Verdict is what an error comes to as an answer: everything the caller can act on, nothing about
// our inside.
type Verdict struct {
	Status int
	Kind   flow.ErrorKind // what a program may decide by
	What   string
	Hint   string
	Log    bool // it is ours to mend, and nobody has told the log of it yet
	Denied bool // who asks has shown that it may not: NoteRefusal is for that

	own bool // What is all that its maker had to say
}

// Judge is the one place where errors become answers. Families of routes print them in their
// dialect.
func Judge(err error) Verdict {
	v := judgeError(err)
	away := errors.Is(err, persistence.ErrUnavailable) || errors.Is(err, engine.ErrUnavailable)
	if away || timedOut(err) {
		v.Status = http.StatusServiceUnavailable
	}
	v.Log = v.Status >= http.StatusInternalServerError && !away // the member tells of outages
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
		return Verdict{Status: http.StatusUnprocessableEntity, Kind: flow.Invalid, What: bad.Error(), Hint: "send what the flow declares that it takes", own: true}
	case errors.As(err, &known):
		v := newVerdict(known.Kind, known.Msg)
		v.own, v.Denied = true, known.Msg == flow.WrongToken
		return v
	case errors.As(err, &tooLarge):
		return Verdict{Status: http.StatusRequestEntityTooLarge, Kind: flow.Limit, What: fmt.Sprintf("the body is larger than %d bytes", tooLarge.Limit),
			Hint: "keep large data elsewhere and pass a reference, or have the member started with a larger --max-value"}
	case Missing(err):
		return newVerdict(flow.NotFound, "there is no such thing")
	case errors.Is(err, persistence.ErrDuplicate), errors.Is(err, persistence.ErrExists):
		return newVerdict(flow.Conflict, "it exists already")
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

// Text is the verdict in one sentence.
func (v Verdict) Text() string {
	if v.own {
		return v.What
	}
	return v.What + "; " + v.Hint
}

// Missing reports whether an error means that there is no such thing.
func Missing(err error) bool {
	return errors.Is(err, persistence.ErrNotFound) || errors.Is(err, persistence.ErrUnknown) || flow.ErrorKindOf(err) == flow.NotFound
}

func timedOut(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

// Cause returns why a request was ended, when err is that it was: the store went away, for one. Any
// other err is returned as it is.
func Cause(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); timedOut(err) && errors.Is(cause, engine.ErrUnavailable) {
		return cause
	}
	return err
}

// Refuse answers a request with an error, as its dialect writes it.
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

// SayWhen tells a client that is to come back when to do so.
func SayWhen(h http.Header, status int) {
	if status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable {
		h.Set("Retry-After", "1")
	}
}
