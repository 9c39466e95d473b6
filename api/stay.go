package api

import (
	"context"
	"net/http"
	"time"
)

type leavingKey struct{}

type limitKey struct{}

// timed ends what a request waits for before its connection is cut off: a store that hangs becomes an
// answer. The limit is a timer, because a deadline could not be lifted by Stay.
func (s *Server) timed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		limit := time.AfterFunc(s.cfg.ReadTimeout, cancel)
		defer limit.Stop()
		timed := r.WithContext(context.WithValue(ctx, limitKey{}, limit))
		defer func() { r.Pattern = timed.Pattern }() // logs and metrics ask the outer request for its route
		next.ServeHTTP(w, timed)
	})
}

// Stay is for long polls and streams: it lifts the server's time limits from this request and
// gives a context that also ends when the server begins to leave, so that nobody keeps it up.
func Stay(w http.ResponseWriter, r *http.Request) (context.Context, context.CancelFunc) {
	rc := http.NewResponseController(w)
	// Only connections without deadlines (a test's recorder) refuse, and those need no lifting.
	_ = rc.SetReadDeadline(time.Time{})
	_ = rc.SetWriteDeadline(time.Time{})
	if limit, ok := r.Context().Value(limitKey{}).(*time.Timer); ok {
		limit.Stop()
	}
	ctx, cancel := context.WithCancel(r.Context())
	leaving, ok := r.Context().Value(leavingKey{}).(context.Context)
	if !ok {
		return ctx, cancel
	}
	stop := context.AfterFunc(leaving, cancel)
	return ctx, func() { stop(); cancel() }
}
