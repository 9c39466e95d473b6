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
)

// writeJSON answers one JSON value and a newline. A client that is gone needs no answer.
func writeJSON(w http.ResponseWriter, status int, v any) {
	writeAs(w, "application/json", status, v)
}

func writeAs(w http.ResponseWriter, kind string, status int, v any) {
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(status)
	if err := printer.JSON(w, v, "\n"); err != nil && !errors.Is(err, printer.ErrGone) {
		panic(err) // a bug of ours: every value we print is made to be printed
	}
}

func writeError(w http.ResponseWriter, status int, text string) {
	writeJSON(w, status, map[string]string{"error": text})
}

// refuse answers a request that no family of routes has seen, in the dialect of the family it is for.
func refuse(w http.ResponseWriter, r *http.Request, p wire.Problem) {
	if !strings.HasPrefix(r.URL.Path, "/v1/") {
		writeError(w, p.Status, p.What+": "+p.Hint)
		return
	}
	p.Title, p.Request = http.StatusText(p.Status), RequestID(r.Context())
	p.Explain()
	writeAs(w, "application/problem+json", p.Status, p)
}

func denied(status int, where, what, hint string) wire.Problem {
	return wire.Problem{Status: status, Kind: "denied", Where: where, What: what, Hint: hint}
}

// listWriter writes an answer with a list in it while the list is read: no more of it than an element is in memory.
type listWriter struct {
	w     http.ResponseWriter
	begin string // what comes before the first element
	begun bool
}

func (l *listWriter) add(v any) error {
	before := ","
	if !l.begun {
		before = l.open()
	}
	_, err := io.WriteString(l.w, before)
	if err == nil {
		err = printer.JSON(l.w, v, "")
	}
	if err != nil {
		return fmt.Errorf("%w: %w", stream.ErrGone, err)
	}
	return nil
}

func (l *listWriter) open() string {
	l.begun = true
	l.w.Header().Set("Content-Type", "application/json")
	return l.begin
}

// end writes what comes behind the last element. After an error an answer that has begun breaks off, so that nobody
// takes it for the whole list; another one becomes that of the error.
func (l *listWriter) end(r *http.Request, err error, rest string) error {
	if err != nil && !l.begun {
		return err
	}
	if err != nil {
		if !errors.Is(err, stream.ErrGone) {
			NoteError(r, err)
		}
		panic(http.ErrAbortHandler)
	}
	if !l.begun {
		rest = l.open() + rest
	}
	_, _ = io.WriteString(l.w, rest+"\n") // a client that is gone needs no answer
	return nil
}
