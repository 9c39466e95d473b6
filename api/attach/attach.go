// Package attach serves the route for attached workers. Each worker has one stream, which lasts as
// long as the worker runs.
package attach

import (
	"context"
	"errors"
	"net/http"
	"time"

	"connectrpc.com/connect"

	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/api/stream"
	wire "github.com/troupe-engine/troupe/api/wire/attach"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/packets"
)

// Stream is a worker's stream.
type Stream = interface {
	Receive() (*wire.FromWorker, error)
	Send(*wire.ToWorker) error
	// HangUp makes all current and later calls of Receive fail.
	HangUp()
}

// Sessions serves attached workers.
type Sessions interface {
	// Serve serves a worker's stream from its first message to its end. It returns an error if the
	// worker is refused.
	Serve(ctx context.Context, s Stream) error
	// Leave notifies all workers that their streams are no longer served. Return notifies them that
	// the streams are served again.
	Leave()
	Return()
}

// Workers is the family of routes.
type Workers struct {
	Sessions   Sessions
	MaxMessage int64 // maximum bytes of one message from a worker
}

// Mount adds the route, which needs a token.
func (f Workers) Mount(s *api.Server) {
	f.Sessions.Return()
	path, serve := wire.NewWorkersHandler(f,
		connect.WithReadMaxBytes(int(f.MaxMessage)),
		connect.WithCompression("gzip", nil, nil)) // compression would take more time than it saves
	s.MountStream("POST "+path, f.withStay(packets.Answers(serve)))
}

type hangUpKey struct{}

// withStay lifts the time limits of a stream's request. When the server begins to stop, it notifies
// the workers. The stream then continues until its worker has finished its jobs.
func (f Workers) withStay(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		leaving, leave := stream.Stay(w, r)
		defer leave()
		stop := context.AfterFunc(leaving, func() {
			if r.Context().Err() == nil {
				f.Sessions.Leave()
			}
		})
		defer stop()
		hangUp := func() {
			deadlines := http.NewResponseController(w)
			_ = deadlines.SetReadDeadline(time.Unix(1, 0)) // HTTP/2 always has deadlines
			_ = deadlines.SetWriteDeadline(time.Unix(1, 0))
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), hangUpKey{}, hangUp)))
	})
}

// Attach implements the service.
func (f Workers) Attach(ctx context.Context, s *connect.BidiStream[wire.FromWorker, wire.ToWorker]) error {
	hangUp, _ := ctx.Value(hangUpKey{}).(func())
	err := f.Sessions.Serve(ctx, closableStream{s, hangUp})
	if err == nil {
		return nil
	}
	return connect.NewError(codeOf(err), err)
}

type closableStream struct {
	*connect.BidiStream[wire.FromWorker, wire.ToWorker]
	hangUp func()
}

func (s closableStream) HangUp() { s.hangUp() }

// codes maps kinds of errors to Connect codes that workers can act on.
var codes = map[flow.ErrorKind]connect.Code{
	flow.Invalid: connect.CodeInvalidArgument, flow.Limit: connect.CodeResourceExhausted, flow.Busy: connect.CodeUnavailable,
	flow.Denied: connect.CodePermissionDenied, flow.Conflict: connect.CodeAborted,
}

func codeOf(err error) connect.Code {
	if code, known := codes[flow.ErrorKindOf(err)]; known {
		return code
	}
	if errors.Is(err, context.Canceled) {
		return connect.CodeCanceled
	}
	return connect.CodeInternal
}
