package api

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/troupe-engine/troupe/api/internal/printer"
	"github.com/troupe-engine/troupe/api/stream"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/payload"
)

// WriteJSON answers one JSON value and a newline. A client that is gone needs no answer.
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
	case payload.Of(w) != nil: // what a value refers to has just gone; half an answer must not look like a whole one
		panic(http.ErrAbortHandler)
	default:
		panic(err) // a bug of ours: every value we print is made to be printed
	}
}

// WriteError answers an error in the form that all families but /v1 have in common.
func WriteError(w http.ResponseWriter, status int, text string) {
	WriteJSON(w, status, map[string]string{"error": text})
}

// refuseRequest answers a request that no family of routes has seen, in the dialect of the family
// it is for. What is for none of them is answered as /v1 does.
func refuseRequest(w http.ResponseWriter, r *http.Request, p wire.Problem) {
	SayWhen(w.Header(), p.Status)
	if !strings.HasPrefix(r.URL.Path, "/v1/") && r.Pattern != "/" {
		WriteError(w, p.Status, p.What+": "+p.Hint)
		return
	}
	p.Title, p.Request = http.StatusText(p.Status), RequestID(r.Context())
	p.Explain()
	writeAs(w, "application/problem+json", p.Status, p)
}

// problemOf is an error of a kind, with the status that all errors of that kind have.
func problemOf(kind flow.ErrorKind, where, what, hint string) wire.Problem {
	return wire.Problem{Status: kinds[kind].status, Kind: string(kind), Where: where, What: what, Hint: hint}
}

// ListWriter writes an answer with a list in it while the list is read: no more of it than an
// element is in memory.
type ListWriter struct {
	To      http.ResponseWriter
	Begin   string // what comes before the first element
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

// End writes what comes behind the last element. After an error an answer that has begun breaks
// off, so that nobody takes it for the whole list; another one becomes that of the error.
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
