package cluster

import (
	"context"
	"sync"
	"time"
)

// These are the limits of messages that wait for one member, and of one frame, unless a single item
// is larger.
const (
	mostItems  = 50_000
	mostBytes  = 64 << 20
	frameBytes = 1 << 20
)

// A frame that follows another one within gatherTime waits for the rest of that time, because few
// large frames cost less than many small ones. A frame with gatherBytes is sent at once.
const (
	gatherTime  = time.Millisecond
	gatherBytes = 32 << 10
)

// outbox is a queue of items to send.
type outbox struct {
	mu      sync.Mutex
	items   frame
	bytes   int
	sent    time.Time     // time when the last frame was taken
	filled  chan struct{} // holds a token when there are items
	emptied chan struct{} // holds a token when items were taken
}

func newOutbox() *outbox {
	return &outbox{filled: make(chan struct{}, 1), emptied: make(chan struct{}, 1)}
}

// tryAdd adds an item. It returns false if the queue is full.
func (o *outbox) tryAdd(it frameItem) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.isFull() {
		return false
	}
	o.appendItem(it)
	return true
}

// addItem adds an item without a limit. Callers must call waitForRoom before they accept work that
// leads to more items.
func (o *outbox) addItem(it frameItem) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.appendItem(it)
}

// waitForRoom waits until the queue is below its limits. It returns false if ctx has ended.
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

// nextFrame waits for the next frame to send. It returns false if ctx has ended.
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

// waitForMore waits for more items for the next frame.
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

// takeFrame removes the items of the next frame.
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

// isFull requires the lock; so does appendItem.

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
