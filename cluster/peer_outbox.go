package cluster

import (
	"context"
	"sync"
	"time"
)

// What waits to be sent to one member at most, and what is sent at once unless a single item has
// more.
const (
	mostItems  = 50_000
	mostBytes  = 64 << 20
	frameBytes = 1 << 20
)

// A frame that follows another one within gatherTime waits for the rest of that time, so that more
// goes with it: what a frame costs both sides is more than what an item costs. What holds
// gatherBytes goes at once, and so does what comes alone.
const (
	gatherTime  = time.Millisecond
	gatherBytes = 32 << 10
)

// outbox is what waits to be sent, in order.
type outbox struct {
	mu      sync.Mutex
	items   frame
	bytes   int
	sent    time.Time     // when the last frame was taken
	filled  chan struct{} // holds a token when there is something
	emptied chan struct{} // holds a token when something has been taken
}

func newOutbox() *outbox {
	return &outbox{filled: make(chan struct{}, 1), emptied: make(chan struct{}, 1)}
}

// tryAdd is false when too much waits already.
func (o *outbox) tryAdd(it frameItem) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.isFull() {
		return false
	}
	o.appendItem(it)
	return true
}

// addItem has no bound: who adds asks for room before it takes on what leads to more.
func (o *outbox) addItem(it frameItem) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.appendItem(it)
}

// waitForRoom waits until no more is in it than there should be; false = ctx has ended.
func (o *outbox) waitForRoom(ctx context.Context) bool {
	for {
		o.mu.Lock()
		full := o.isFull()
		o.mu.Unlock()
		if !full {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-o.emptied:
		}
	}
}

// nextFrame waits for what is to be sent next; false = ctx has ended.
func (o *outbox) nextFrame(ctx context.Context) (frame, bool) {
	for {
		select {
		case <-ctx.Done():
			return nil, false
		case <-o.filled:
		}
		o.waitForMore(ctx)
		if f := o.takeFrame(); len(f) > 0 {
			return f, true
		}
	}
}

// waitForMore waits for more to go with what there is.
func (o *outbox) waitForMore(ctx context.Context) {
	o.mu.Lock()
	wait := gatherTime - time.Since(o.sent)
	if o.bytes >= gatherBytes {
		wait = 0
	}
	o.mu.Unlock()
	if wait <= 0 {
		return
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// takeFrame takes as much as is sent at once.
func (o *outbox) takeFrame() frame {
	o.mu.Lock()
	defer o.mu.Unlock()
	n, size := 0, 0
	for n < len(o.items) && (n == 0 || size+o.items[n].size() <= frameBytes) {
		size += o.items[n].size()
		n++
	}
	f := o.items[:n:n]
	if o.items = o.items[n:]; len(o.items) > 0 {
		sendToken(o.filled)
	} else {
		o.items = nil
	}
	o.bytes -= size
	o.sent = time.Now()
	sendToken(o.emptied)
	return f
}

// full and put are called with the lock.

func (o *outbox) isFull() bool { return len(o.items) >= mostItems || o.bytes >= mostBytes }

func (o *outbox) appendItem(it frameItem) {
	o.items = append(o.items, it)
	o.bytes += it.size()
	sendToken(o.filled)
}

func sendToken(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
