package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"connectrpc.com/connect"

	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// ErrAway reports that a member could not be reached, or was lost before it answered. It may have
// carried out the request.
var ErrAway = errors.New("the member cannot be reached")

// peerConn sends requests to one incarnation of another member, and returns the responses as they
// arrive. So a slow request blocks no other. Requests that arrive while a frame is being sent are
// in the next frame.
type peerConn struct {
	to     persistence.MemberRow
	cancel context.CancelFunc
	out    *outbox
	closed chan struct{} // closed when no more responses can arrive
	onLost func(error)   // called with the reason, unless this side closed the connection

	mu          sync.Mutex
	last        int64 // number of the last request
	waiting     map[int64]chan []byte
	closeReason error // set when the connection is closed
}

// openConn opens a connection. If the member is unreachable or refuses, the first requests fail.
func openConn(ctx context.Context, to persistence.MemberRow,
	call func(context.Context) *connect.BidiStreamForClient[frame, frame], work *sync.WaitGroup,
	lost func(error)) *peerConn {
	ctx, cancel := context.WithCancel(ctx)
	l := &peerConn{to: to, cancel: cancel, out: newOutbox(), closed: make(chan struct{}), onLost: lost, waiting: map[int64]chan []byte{}}
	stream := call(ctx)
	work.Go(func() { l.sendFrames(ctx, stream) })
	work.Go(func() { l.receiveAnswers(stream) })
	return l
}

// sendFrames sends frames until sending fails. receiveAnswers gets the reason.
func (l *peerConn) sendFrames(ctx context.Context, stream *connect.BidiStreamForClient[frame, frame]) {
	for {
		f, ok := l.out.nextFrame(ctx)
		if !ok {
			return
		}
		if err := stream.Send(&f); err != nil {
			if !errors.Is(err, io.EOF) {
				l.closeWith(err)
			}
			return
		}
	}
}

// receiveAnswers delivers responses to their callers until the stream ends.
func (l *peerConn) receiveAnswers(stream *connect.BidiStreamForClient[frame, frame]) {
	for {
		f, err := stream.Receive()
		if err != nil {
			l.closeWith(err)
			_ = stream.CloseResponse() // the stream has ended, so its error does not matter
			return
		}
		l.deliverAnswers(*f)
	}
}

func (l *peerConn) deliverAnswers(f frame) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, it := range f {
		if asker := l.waiting[it.number]; asker != nil {
			delete(l.waiting, it.number)
			asker <- it.bytes
		}
	}
}

// closeWith closes the connection. Current and later callers get the reason as their error.
func (l *peerConn) closeWith(why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closeReason != nil {
		return
	}
	l.closeReason = awayError(l.to, why)
	if connect.CodeOf(why) != connect.CodeCanceled {
		l.onLost(why)
	}
	l.waiting = nil
	close(l.closed)
	l.cancel()
}

// awayError returns ErrAway with the member and the reason.
func awayError(to persistence.MemberRow, why error) error {
	return fmt.Errorf("%w: %s at %s: %w", ErrAway, to.Name, to.URL, why)
}

// askQuestion sends a request and waits for the response.
func (l *peerConn) askQuestion(ctx context.Context, q engine.Message) (engine.Message, error) {
	if err := ctx.Err(); err != nil {
		return nil, err // the caller has gone
	}
	b, err := questionOf(q)
	if err != nil {
		return nil, err
	}
	asker := make(chan []byte, 1)
	number, err := l.registerAsker(asker)
	if err != nil {
		return nil, err
	}
	if !l.out.tryAdd(frameItem{number: number, remaining: remainingMillis(ctx), bytes: b}) {
		l.removeAsker(number)
		return nil, flow.Errorf(flow.Busy, "member %s takes questions slower than they come: try again in a moment", l.to.Name)
	}
	select {
	case b := <-asker:
		return engine.Unmarshal(b)
	case <-l.closed:
		return nil, l.closeReason
	case <-ctx.Done():
		if l.removeAsker(number) {
			l.out.tryAdd(frameItem{number: number}) // may be lost; cancels the request there
		}
		return nil, ctx.Err()
	}
}

// sendMessage sends a message without a response. The message is lost if the outbox is full.
func (l *peerConn) sendMessage(m engine.Message) error {
	b, err := questionOf(m)
	if err == nil {
		l.out.tryAdd(frameItem{bytes: b})
	}
	return err
}

// onItsWay is the time reserved for the transport of a response, at most a tenth of the remaining
// time.
const onItsWay = 200 * time.Millisecond

// remainingMillis returns the milliseconds for a response, at least one; 0 means no limit. The
// caller waits slightly longer, so that a response with partial results still arrives.
func remainingMillis(ctx context.Context) int64 {
	end, ok := ctx.Deadline()
	if !ok {
		return 0
	}
	wait := time.Until(end)
	return max((wait - min(wait/10, onItsWay)).Milliseconds(), 1)
}

// registerAsker registers a caller and returns the number for its request.
func (l *peerConn) registerAsker(asker chan []byte) (int64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closeReason != nil {
		return 0, l.closeReason
	}
	l.last++
	l.waiting[l.last] = asker
	return l.last, nil
}

// removeAsker removes a caller, and reports whether it was still waiting.
func (l *peerConn) removeAsker(number int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, waited := l.waiting[number]
	delete(l.waiting, number)
	return waited
}

// isClosed reports whether the connection cannot be used any more.
func (l *peerConn) isClosed() bool {
	select {
	case <-l.closed:
		return true
	default:
		return false
	}
}
