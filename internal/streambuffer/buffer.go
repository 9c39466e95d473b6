// Package streambuffer gathers the values that a job writes to streams, and stores them a moment
// later, several at once.
//
// Promises:
//   - The values of a stream are stored in the order in which they were written.
//   - A store that is away for a while loses no value: it is tried again until the job ends.
//   - A writer waits while many values are not stored yet, so a buffer is bounded.
//   - When the store has refused a value of a stream, the stream takes no further values.
package streambuffer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/troupe-engine/troupe/job"
)

const (
	// gatherTime is how long a value waits for other values to be stored in the same batch.
	gatherTime = 50 * time.Millisecond
	// batchBytes is the size of a batch, unless a single value is larger.
	batchBytes = 256 << 10
	// maxWaitingBytes is the size of the waiting values above which a writer waits.
	maxWaitingBytes = 1 << 20
	// perValue is the cost of a value in bytes, besides its JSON.
	perValue = 32
	// storeTime limits a try to store a batch, and lastTime the last try of a job that must stop.
	storeTime, lastTime = 30 * time.Second, 2 * time.Second
	// firstPause and maxPause are the pauses between tries.
	firstPause, maxPause = 100 * time.Millisecond, 5 * time.Second
)

// Write is a group of consecutive values of one stream.
type Write struct {
	Stream, Source string
	Number         int64 // number of the last value, as counted by its source from 1
	At             int64 // Unix milliseconds
	Step           string
	Try            int
	Values         []json.RawMessage
	Ends           bool
}

// Store stores writes. Its first result has the reasons for which writes are refused for good, in
// their order; nil if none is. After an error the same writes are stored again.
type Store func(ctx context.Context, writes []Write) (refused []error, err error)

// Buffer holds the values of one delivery of a job. It is a job.StreamSink. Most jobs write no
// value, so the other fields are created with the first value.
type Buffer struct {
	ctx   context.Context // ends when the job must stop
	store Store

	mu     sync.Mutex
	closed bool
	*bufferedValues
}

// bufferedValues is the part of a buffer that only jobs with values need.
type bufferedValues struct {
	source  string
	numbers map[string]int64 // by stream, the number of values without a source
	waiting []waitingValue
	bytes   int              // cost of waiting and of the batch that is being stored
	added   int64            // number of values ever added
	stored  int64            // number of values that are stored or refused
	refused map[string]error // reason by stream
	storing bool             // a goroutine stores values
	urgent  chan struct{}    // closed when the goroutine must not wait for others
	changed chan struct{}    // closed when stored changes
}

// waitingValue is a value that is not stored yet.
type waitingValue struct {
	job.StreamValue
	at int64
}

func (v *waitingValue) costBytes() int { return len(v.Value) + perValue }

// New returns an empty buffer. ctx is the context of the job.
func New(ctx context.Context, store Store) *Buffer { return &Buffer{ctx: ctx, store: store} }

// initBuffer prepares the buffer for its first value. The caller holds the mutex.
func (b *Buffer) initBuffer() {
	if b.bufferedValues == nil {
		b.bufferedValues = &bufferedValues{source: uuid.NewString(), numbers: map[string]int64{}, refused: map[string]error{},
			urgent: make(chan struct{}), changed: make(chan struct{})}
	}
}

// WriteValue implements job.StreamSink.
func (b *Buffer) WriteValue(v job.StreamValue) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.initBuffer()
	for b.bytes >= maxWaitingBytes && !b.closed && b.refused[v.Stream] == nil {
		if err := b.awaitChange(b.ctx); err != nil {
			return err
		}
	}
	switch {
	case b.refused[v.Stream] != nil:
		return b.refused[v.Stream]
	case b.closed:
		return job.ErrStreamOver
	}
	if v.Source == "" {
		if len(v.Value) > 0 {
			b.numbers[v.Stream]++
		}
		v.Source, v.Number = b.source, b.numbers[v.Stream]
	}
	added := waitingValue{v, time.Now().UnixMilli()}
	b.waiting = append(b.waiting, added)
	b.bytes += added.costBytes()
	b.added++
	if !b.storing {
		b.storing = true
		go b.storeWaiting()
	}
	if b.bytes >= batchBytes {
		b.endGathering()
	}
	return nil
}

// awaitChange waits until values are stored. The caller holds the mutex.
func (b *Buffer) awaitChange(ctx context.Context) error {
	b.endGathering()
	changed := b.changed
	b.mu.Unlock()
	defer b.mu.Lock()
	select {
	case <-changed:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// endGathering makes the goroutine store the waiting values now. The caller holds the mutex.
func (b *Buffer) endGathering() {
	select {
	case <-b.urgent:
	default:
		close(b.urgent)
	}
}

// Flush implements job.StreamSink.
func (b *Buffer) Flush(ctx context.Context, stream string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.bufferedValues == nil {
		return nil
	}
	for all := b.added; b.stored < all; {
		if err := b.awaitChange(ctx); err != nil {
			return err
		}
	}
	if stream != "" {
		return b.refused[stream]
	}
	return b.joinRefusals()
}

// joinRefusals returns why streams have lost values; nil if none has. The caller holds the mutex.
func (b *Buffer) joinRefusals() error {
	var all []error
	for _, stream := range slices.Sorted(maps.Keys(b.refused)) {
		all = append(all, b.refused[stream])
	}
	return errors.Join(all...)
}

// Close stores the waiting values, and refuses later ones. It writes the reason for lost values to
// the log of the job.
func (b *Buffer) Close(log io.Writer) {
	b.mu.Lock()
	b.closed = true
	unused := b.bufferedValues == nil
	b.mu.Unlock()
	if unused {
		return
	}
	if err := b.Flush(context.WithoutCancel(b.ctx), ""); err != nil {
		_, _ = fmt.Fprintf(log, "values of streams were lost: %v\n", err) // a log never fails
	}
}

// storeWaiting stores values until there are none.
func (b *Buffer) storeWaiting() {
	for more := true; more; {
		b.awaitMore()
		b.mu.Lock()
		batch := b.takeBatch()
		b.mu.Unlock()
		more = b.storeBatch(batch)
	}
}

// awaitMore waits for values to be stored together.
func (b *Buffer) awaitMore() {
	b.mu.Lock()
	urgent := b.urgent
	b.mu.Unlock()
	timer := time.NewTimer(gatherTime)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-urgent:
	}
}

// takeBatch takes the oldest values. The caller holds the mutex.
func (b *Buffer) takeBatch() []waitingValue {
	n, size := 0, 0
	for n < len(b.waiting) && (n == 0 || size+b.waiting[n].costBytes() <= batchBytes) {
		size += b.waiting[n].costBytes()
		n++
	}
	batch := b.waiting[:n:n]
	if b.waiting = b.waiting[n:]; len(b.waiting) == 0 {
		b.waiting = nil
		b.urgent = make(chan struct{})
	}
	return batch
}

// storeBatch stores a batch, with retries until it is stored or the job must stop. It reports
// whether more values wait.
func (b *Buffer) storeBatch(batch []waitingValue) (more bool) {
	writes := b.writesOf(batch)
	refused, err := b.tryStore(writes)
	for pause := firstPause; err != nil && b.sleepFor(pause); pause = min(2*pause, maxPause) {
		refused, err = b.tryStore(writes)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range writes {
		why := err
		if err == nil && i < len(refused) {
			why = refused[i]
		}
		if name := writes[i].Stream; why != nil && b.refused[name] == nil {
			b.refused[name] = fmt.Errorf("the stream %s: %w", name, why)
		}
	}
	for i := range batch {
		b.bytes -= batch[i].costBytes()
	}
	b.stored += int64(len(batch))
	b.storing = len(b.waiting) > 0
	close(b.changed)
	b.changed = make(chan struct{})
	return b.storing
}

// tryStore stores writes. The last values of a job that must stop are stored, too.
func (b *Buffer) tryStore(writes []Write) (refused []error, err error) {
	if len(writes) == 0 {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(b.ctx), storeTime)
	defer cancel()
	stop := context.AfterFunc(b.ctx, func() { time.AfterFunc(lastTime, cancel) })
	defer stop()
	return b.store(ctx, writes)
}

// sleepFor returns false if the job must stop.
func (b *Buffer) sleepFor(pause time.Duration) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-b.ctx.Done():
		return false
	}
}

// writesOf groups values by stream, source, step and try. It drops the values of refused streams.
func (b *Buffer) writesOf(batch []waitingValue) (writes []Write) {
	b.mu.Lock()
	defer b.mu.Unlock()
	newest := map[string]int{} // index of the last write by stream
	for i := range batch {
		v := &batch[i]
		if b.refused[v.Stream] != nil {
			continue
		}
		at, begun := newest[v.Stream]
		if !begun || !writes[at].addValue(v) {
			newest[v.Stream] = len(writes)
			w := Write{Stream: v.Stream, Source: v.Source, Number: v.Number, At: v.at, Step: v.Step, Try: v.Try, Ends: v.Ends}
			if len(v.Value) > 0 {
				w.Values = []json.RawMessage{v.Value}
			}
			writes = append(writes, w)
		}
	}
	return writes
}

// addValue adds a value if it follows the others.
func (w *Write) addValue(v *waitingValue) bool {
	next := w.Number
	if len(v.Value) > 0 {
		next++
	}
	if w.Ends || w.Source != v.Source || w.Step != v.Step || w.Try != v.Try || v.Number != next {
		return false
	}
	if len(v.Value) > 0 {
		w.Values = append(w.Values, v.Value)
	}
	w.Number, w.Ends = v.Number, v.Ends
	return true
}
