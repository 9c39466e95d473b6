// Package streams stores the values that jobs write to streams of their tasks. It guarantees:
//
//   - Writes that arrive while others are being stored share the next transaction.
//   - A caller gets its answer when its values are stored, or the reason why they are not.
//   - Writes that wait for the store are bounded; a caller waits while there are too many.
package streams

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/troupe-engine/troupe/internal/streambuffer"
	"github.com/troupe-engine/troupe/persistence"
)

const (
	// maxCalls is how many callers may wait for the store. Further callers block.
	maxCalls = 1000
	// batchBytes is the maximum size of one transaction, unless the writes of one caller are
	// larger.
	batchBytes = 2 << 20
	// storeTime limits one transaction.
	storeTime = 10 * time.Second
)

// Options configure a Book.
type Options struct {
	Store persistence.Streams
	Most  persistence.StreamLimits // zero fields mean the defaults
}

// Book stores the values that jobs of this member, or clients, write to streams. A mutex guards it,
// because jobs call it concurrently.
type Book struct {
	opts  Options
	calls chan struct{} // holds a token for each caller that waits

	mu      sync.Mutex
	waiting []*appendCall
	storing bool // a caller is storing the writes of all waiting callers
}

// appendCall is a caller that waits for the store.
type appendCall struct {
	writes []persistence.StreamWrite
	bytes  int
	errs   []error
	err    error
	done   chan struct{} // closed when the writes are stored or refused, or the store has failed
	leads  chan struct{} // closed when this caller must store the waiting writes
}

// New returns a book.
func New(o Options) *Book {
	o.Most = o.Most.OrDefault()
	return &Book{opts: o, calls: make(chan struct{}, maxCalls)}
}

// Append stores writes together with those of other callers. The results are as in
// persistence.Streams.
func (b *Book) Append(ctx context.Context, writes []persistence.StreamWrite) ([]error, error) {
	select {
	case b.calls <- struct{}{}:
		defer func() { <-b.calls }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	c := &appendCall{writes: writes, bytes: bytesOf(writes), done: make(chan struct{}), leads: make(chan struct{})}
	b.mu.Lock()
	b.waiting = append(b.waiting, c)
	if !b.storing {
		b.storing = true
		close(c.leads)
	}
	b.mu.Unlock()
	select {
	case <-c.leads:
		b.storeWaiting(ctx)
	case <-c.done:
	}
	return c.errs, c.err
}

func bytesOf(writes []persistence.StreamWrite) (size int) {
	for i := range writes {
		for _, v := range writes[i].Values {
			size += len(v)
		}
	}
	return size
}

// storeWaiting stores the writes of all waiting callers in one transaction, up to batchBytes. Then
// the next waiting caller continues.
func (b *Book) storeWaiting(ctx context.Context) {
	b.mu.Lock()
	n, size := 0, 0
	for n < len(b.waiting) && (n == 0 || size+b.waiting[n].bytes <= batchBytes) {
		size += b.waiting[n].bytes
		n++
	}
	batch := b.waiting[:n:n]
	b.waiting = b.waiting[n:]
	b.mu.Unlock()
	defer b.passLead()
	var writes []persistence.StreamWrite
	for _, c := range batch {
		writes = append(writes, c.writes...)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTime)
	defer cancel()
	errs, err := b.opts.Store.AppendStreams(ctx, writes, b.opts.Most)
	for _, c := range batch {
		c.err = err
		if err == nil {
			c.errs, errs = errs[:len(c.writes):len(c.writes)], errs[len(c.writes):]
		}
		close(c.done)
	}
}

// passLead makes the first waiting caller store the next writes.
func (b *Book) passLead() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.storing = len(b.waiting) > 0; b.storing {
		close(b.waiting[0].leads)
	}
}

// Open returns the buffer for the streams of a job's delivery. ctx is the context of the job. The
// caller must close the buffer.
func (b *Book) Open(ctx context.Context, task, job string) *streambuffer.Buffer {
	return streambuffer.New(ctx, func(ctx context.Context, writes []streambuffer.Write) ([]error, error) {
		errs, err := b.Append(ctx, toWrites(task, job, writes))
		if errors.Is(err, persistence.ErrRefused) { // another try would fail, too
			return slices.Repeat([]error{err}, len(writes)), nil
		}
		return errs, err
	})
}

// toWrites returns the writes of a job in the form of the store.
func toWrites(task, job string, list []streambuffer.Write) []persistence.StreamWrite {
	writes := make([]persistence.StreamWrite, len(list))
	for i, w := range list {
		writes[i] = persistence.StreamWrite{Task: task, Name: w.Stream, Source: w.Source, Number: w.Number, At: w.At,
			StreamWriter: persistence.StreamWriter{Job: job, Step: w.Step, Try: w.Try}, Values: w.Values, Ends: w.Ends}
	}
	return writes
}
