package api

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/troupe-engine/troupe/api/printer"
	"github.com/troupe-engine/troupe/api/stream"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/payload"
)

// WriteJSON answers with one JSON value and a newline. It ignores write errors, because a client
// that is gone needs no answer.
func WriteJSON(w http.ResponseWriter, status int, v any) {
	writeAs(w, "application/json", status, v)
}

func writeAs(w http.ResponseWriter, kind string, status int, v any) {
	if err := printer.Check(v, payload.Of(w)); err != nil {
		status, v = kinds[flow.Conflict].status, map[string]string{"error": err.Error()}
	}
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(status)
	switch err := printer.JSON(w, v, "\n"); {
	case err == nil || errors.Is(err, printer.ErrGone):
	// a referenced value was deleted meanwhile, and half an answer must not look complete
	case payload.Of(w) != nil:
		panic(http.ErrAbortHandler)
	default:
		panic(err) // cannot happen, because every value passed here can be encoded
	}
}

// WriteError answers with an error in the form that all families except /v1 share.
func WriteError(w http.ResponseWriter, status int, text string) {
	WriteJSON(w, status, map[string]string{"error": text})
}

// refuseRequest rejects a request before any family of routes handles it, in the dialect of its
// path. Paths without a dialect get the form of /v1.
func refuseRequest(w http.ResponseWriter, r *http.Request, p wire.Problem) {
	SayWhen(w.Header(), p.Status)
	if !strings.HasPrefix(r.URL.Path, "/v1/") && r.Pattern != "/" {
		WriteError(w, p.Status, p.Message+": "+p.Hint)
		return
	}
	p.Title, p.RequestID = http.StatusText(p.Status), RequestID(r.Context())
	p.Explain()
	writeAs(w, "application/problem+json", p.Status, p)
}

// problemOf returns a problem of a kind, with the status of that kind.
func problemOf(kind flow.ErrorKind, where, what, hint string) wire.Problem {
	return wire.Problem{Status: kinds[kind].status, Code: string(kind), Field: where, Message: what, Hint: hint}
}

// ListWriter writes an answer with a list while the list is being read, so that only one element is
// in memory.
type ListWriter struct {
	To      http.ResponseWriter
	Begin   string // text before the first element
	started bool
}

// Add writes an element.
func (l *ListWriter) Add(v any) error {
	err := printer.Check(v, payload.Of(l.To))
	if err != nil {
		return err
	}
	before := ","
	if !l.started {
		before = l.beginList()
	}
	_, err = io.WriteString(l.To, before)
	if err == nil {
		err = printer.JSON(l.To, v, "")
	}
	if err != nil && !errors.Is(err, flow.ErrNoContent) {
		return fmt.Errorf("%w: %w", stream.ErrGone, err)
	}
	return err
}

func (l *ListWriter) beginList() string {
	l.started = true
	l.To.Header().Set("Content-Type", "application/json")
	return l.Begin
}

// End writes the text after the last element. After an error, it cuts off an answer that has begun,
// so that no client takes the list for complete. If nothing was written yet, it returns the error
// for the answer.
func (l *ListWriter) End(r *http.Request, err error, rest string) error {
	if err != nil && !l.started {
		return err
	}
	if err != nil {
		if !errors.Is(err, stream.ErrGone) {
			NoteError(r, err)
		}
		panic(http.ErrAbortHandler)
	}
	if !l.started {
		rest = l.beginList() + rest
	}
	_, _ = io.WriteString(l.To, rest+"\n") // a client that is gone needs no answer
	return nil
}
