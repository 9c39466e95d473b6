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

// ErrAway reports that a member could not be reached, or was lost before it answered. Whether it
// has done what it was asked for is unknown.
var ErrAway = errors.New("the member cannot be reached")

// peerConn carries questions to one incarnation of another member and brings back its answers, each
// when it is there: one that takes long holds up no other. What is asked while a frame is being
// sent goes with the next one.
type peerConn struct {
	to     persistence.MemberRow
	cancel context.CancelFunc
	out    *outbox
	closed chan struct{} // closed when nothing is answered any more
	onLost func(error)   // hears why, unless it was ended here

	mu          sync.Mutex
	last        int64 // number that was given to a question
	waiting     map[int64]chan []byte
	closeReason error // it is over
}

// openConn begins a line. That nobody is there, or wants to talk, is found out by those who ask.
func openConn(ctx context.Context, to persistence.MemberRow, call func(context.Context) *connect.BidiStreamForClient[frame, frame], work *sync.WaitGroup, lost func(error)) *peerConn {
	ctx, cancel := context.WithCancel(ctx)
	l := &peerConn{to: to, cancel: cancel, out: newOutbox(), closed: make(chan struct{}), onLost: lost, waiting: map[int64]chan []byte{}}
	stream := call(ctx)
	work.Go(func() { l.sendFrames(ctx, stream) })
	work.Go(func() { l.receiveAnswers(stream) })
	return l
}

// sendFrames sends what there is until it cannot be sent; why that is receive hears.
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

// receiveAnswers gives answers to those who asked until there are none any more.
func (l *peerConn) receiveAnswers(stream *connect.BidiStreamForClient[frame, frame]) {
	for {
		f, err := stream.Receive()
		if err != nil {
			l.closeWith(err)
			_ = stream.CloseResponse() // it has ended already, or nobody cares how
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

// closeWith has everybody who waits, and who comes later, hear why there is no answer.
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

// awayError says which member could not be asked, and why.
func awayError(to persistence.MemberRow, why error) error {
	return fmt.Errorf("%w: %s at %s: %w", ErrAway, to.Name, to.URL, why)
}

// askQuestion sends a question and waits for the answer.
func (l *peerConn) askQuestion(ctx context.Context, q engine.Message) (engine.Message, error) {
	if err := ctx.Err(); err != nil {
		return nil, err // the caller has gone, so nothing is asked
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
			l.out.tryAdd(frameItem{number: number}) // a courtesy
		}
		return nil, ctx.Err()
	}
}

// sendMessage sends what nobody answers. It is lost when too much is on its way.
func (l *peerConn) sendMessage(m engine.Message) error {
	b, err := questionOf(m)
	if err == nil {
		l.out.tryAdd(frameItem{bytes: b})
	}
	return err
}

// onItsWay is for how long an answer is on its way, at most a tenth of the time there is.
const onItsWay = 200 * time.Millisecond

// remainingMillis is how many milliseconds there are for an answer, at least one; 0 = as long as it
// takes. Its asker waits a little longer: an answer that says what was done in time and what was
// not has yet to come.
func remainingMillis(ctx context.Context) int64 {
	end, ok := ctx.Deadline()
	if !ok {
		return 0
	}
	wait := time.Until(end)
	return max((wait - min(wait/10, onItsWay)).Milliseconds(), 1)
}

// registerAsker gives a question its number.
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

// removeAsker reports whether somebody was still waiting for a question's answer.
func (l *peerConn) removeAsker(number int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, waited := l.waiting[number]
	delete(l.waiting, number)
	return waited
}

// isClosed reports whether the line is of no use any more.
func (l *peerConn) isClosed() bool {
	select {
	case <-l.closed:
		return true
	default:
		return false
	}
}
