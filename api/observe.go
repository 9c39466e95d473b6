package api

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/internal/payload"
)

const requestIDHeader = "X-Request-Id"

type requestKey struct{}

// requestNotes holds values that handlers set for the log line of their request.
type requestNotes struct {
	id      string
	err     error
	refused string // reason why the caller lacks a permission; "" if no permission was lacking
	caller  Identity
}

// noteWho stores the caller's identity for the log line.
func noteWho(ctx context.Context, who Identity) {
	if n, ok := ctx.Value(requestKey{}).(*requestNotes); ok {
		n.caller = who
	}
}

// RequestID returns the id of the request that a context belongs to; "" outside of requests.
func RequestID(ctx context.Context) string {
	if n, ok := ctx.Value(requestKey{}).(*requestNotes); ok {
		return n.id
	}
	return ""
}

// NoteError adds an error to the request's log line. The answer does not contain the error.
func NoteError(r *http.Request, err error) {
	if n, ok := r.Context().Value(requestKey{}).(*requestNotes); ok {
		n.err = err
	}
}

// NoteRefusal logs why a caller lacks a permission, once per host and reason. A reason must contain
// no text from the caller.
func NoteRefusal(ctx context.Context, why string) {
	if n, ok := ctx.Value(requestKey{}).(*requestNotes); ok {
		n.refused = why
	}
}

// withRequestLog gives a request its id and its log line, and answers a panic with 500.
func (s *Server) withRequestLog(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		notes := &requestNotes{id: requestID(r)}
		w.Header().Set(requestIDHeader, notes.id)
		r = r.WithContext(context.WithValue(r.Context(), requestKey{}, notes))
		rec := &responseRecorder{ResponseWriter: w, patience: s.cfg.ReadTimeout, payloads: s.cfg.Payloads}
		began := time.Now()
		defer func() {
			p := recover()
			if p != nil && p != http.ErrAbortHandler {
				s.handlePanic(rec, r, p)
			}
			s.logRequest(r, rec, notes, time.Since(began))
			if p == http.ErrAbortHandler {
				panic(p) // net/http then closes the connection
			}
		}()
		next.ServeHTTP(rec, r)
	})
}

func (s *Server) handlePanic(w *responseRecorder, r *http.Request, p any) {
	s.log.ErrorContext(r.Context(), "HTTP handler panicked", "panic", p, "request", RequestID(r.Context()), "stack", string(debug.Stack()))
	if w.status == 0 {
		refuseRequest(w, r, wire.Problem{Status: http.StatusInternalServerError, Code: "internal",
			Message: "internal error", Hint: "the server's log has details under the ID of this request"})
	}
}

func (s *Server) logRequest(r *http.Request, rec *responseRecorder, notes *requestNotes, took time.Duration) {
	route := routeOf(r)
	status := rec.status
	if status == 0 {
		status = http.StatusOK
	}
	s.metrics.countRequest(r.Method, route, status, took)
	if notes.refused != "" {
		s.refused.logRefusal(hostOnly(r.RemoteAddr), notes.refused)
	}
	level, attrs := slog.LevelDebug, []slog.Attr{
		slog.String("method", r.Method), slog.String("route", route), slog.Int("status", status),
		slog.Duration("duration", took), slog.String("request", notes.id),
	}
	// the client closed the connection
	gone := errors.Is(notes.err, context.Canceled) && r.Context().Err() != nil
	if notes.err != nil && !gone {
		level = slog.LevelError
		attrs = append(attrs, slog.Any("error", notes.err))
	}
	s.log.LogAttrs(r.Context(), level, "request", attrs...)
}

// routeOf returns the pattern that the request matched. It omits the method, which has its own
// label.
func routeOf(r *http.Request) string {
	route := r.Pattern
	if _, path, ok := strings.Cut(route, " "); ok {
		route = path
	}
	if route == "" {
		return "none"
	}
	return route
}

// requestID returns the client's request id if the id is safe to log, and a new one otherwise.
func requestID(r *http.Request) string {
	id := r.Header.Get(requestIDHeader)
	if id == "" || len(id) > 128 {
		return rand.Text()
	}
	for _, c := range []byte(id) {
		if c <= ' ' || c > '~' {
			return rand.Text()
		}
	}
	return id
}

// responseRecorder records the status, and drops a client that does not read its answer. Unwrap
// gives http.ResponseController access to flushing and deadlines.
type responseRecorder struct {
	http.ResponseWriter
	status   int
	patience time.Duration
	payloads *payload.Store
}

// Payloads returns the store that resolves references in values of users. The printer uses it.
func (w *responseRecorder) Payloads() *payload.Store { return w.payloads }

func (w *responseRecorder) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *responseRecorder) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	for done := 0; ; {
		// The deadline of a request that stays was lifted, and the previous deadline may be nearly
		// over. Only writers of tests have no deadlines.
		_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(time.Now().Add(w.patience))
		n, err := w.ResponseWriter.Write(b[done:min(done+partSize, len(b))])
		if done += n; err != nil || done == len(b) {
			return done, err
		}
	}
}

// partSize is the number of bytes that a client must read within the patience.
const partSize = 256 << 10

func (w *responseRecorder) Flush() {
	// a writer that cannot flush has no buffer
	_ = http.NewResponseController(w.ResponseWriter).Flush()
}

func (w *responseRecorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }
