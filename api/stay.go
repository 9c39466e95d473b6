package api

import (
	"context"
	"net/http"
	"time"
)

type leavingKey struct{}

// Stay is for long polls and streams: it lifts the server's time limits from this request and
// gives a context that also ends when the server begins to leave, so that nobody keeps it up.
func Stay(w http.ResponseWriter, r *http.Request) (context.Context, context.CancelFunc) {
	rc := http.NewResponseController(w)
	// Only connections without deadlines (a test's recorder) refuse, and those need no lifting.
	_ = rc.SetReadDeadline(time.Time{})
	_ = rc.SetWriteDeadline(time.Time{})
	ctx, cancel := context.WithCancel(r.Context())
	leaving, ok := r.Context().Value(leavingKey{}).(context.Context)
	if !ok {
		return ctx, cancel
	}
	stop := context.AfterFunc(leaving, cancel)
	return ctx, func() { stop(); cancel() }
}
