// Package spans exports the stored rows of tasks as spans.
//
// No task waits for the export. The Teller gets a row after its commit. Rows that it cannot process
// in time are dropped and counted. The spans of a task depend only on its journal, so they are the
// same on every member. Missing rows, written by another member or dropped, are read from the
// store.
//
// A member that takes over a task exports the start of the task again, because the member that
// created the task may have died before the export. So no parent span is ever missing. Up to 64 MiB
// of running tasks stay in memory. For other tasks, the rest is exported at their end, after one
// more read of their journals.
package spans

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/troupe-engine/troupe/actors"
	"github.com/troupe-engine/troupe/flow/trace"
	"github.com/troupe-engine/troupe/persistence"
)

// Span is a span of a task.
type Span struct {
	trace.Span
	Task, Flow string // id of the task, and slug of its flow
	Version    int    // number of the version; 0 if unknown
}

// Sink receives batches of spans. A batch is lost if Tell returns an error.
type Sink interface {
	Tell(ctx context.Context, spans []Span) error
}

// Options configure a Teller.
type Options struct {
	Store  persistence.Store
	Sink   Sink
	Logger *slog.Logger
}

const (
	maxQueued      = 8192     // maximum number of queued rows, and of queued spans
	maxQueuedBytes = 32 << 20 // maximum bytes in queued rows; beyond it the journal is read
	batchSize      = 512
	sendInterval   = time.Second
	callTimeout    = 10 * time.Second // time limit of one call of the Sink
)

// Teller exports spans of stored rows. It implements actors.Teller.
type Teller struct {
	opts    Options
	ctx     context.Context // context for calls of the Sink
	cancel  context.CancelFunc
	rows    chan actors.StoredRow
	bytes   atomic.Int64 // bytes in the queued rows
	spans   chan Span
	dropped prometheus.Counter
	closing sync.Once
	done    chan struct{} // closed when no more rows arrive
	folded  chan struct{} // closed when no more spans arrive
	sent    chan struct{} // closed when the last spans are sent
}

// Start starts a Teller. It runs until Close.
func Start(opts Options) *Teller {
	t := &Teller{opts: opts, rows: make(chan actors.StoredRow, maxQueued),
		spans: make(chan Span, maxQueued), done: make(chan struct{}), folded: make(chan struct{}),
		sent: make(chan struct{}),
		dropped: prometheus.NewCounter(prometheus.CounterOpts{Name: "troupe_spans_dropped_total",
			Help: "Spans dropped because the collector was " +
				"too slow or unavailable."})}
	t.ctx, t.cancel = context.WithCancel(context.Background())
	go t.foldRows()
	go t.sendSpans()
	return t
}

// Collectors returns the metrics of the Teller; none for nil.
func (t *Teller) Collectors() []prometheus.Collector {
	if t == nil {
		return nil
	}
	return []prometheus.Collector{t.dropped}
}

// Stored queues a row. If too many bytes are queued, the content of the row is dropped and later
// read from the store.
func (t *Teller) Stored(row actors.StoredRow) {
	if n := int64(len(row.Events)); t.bytes.Add(n) > maxQueuedBytes {
		t.bytes.Add(-n)
		row.Events = nil
	}
	select {
	case t.rows <- row:
	default:
		t.bytes.Add(-int64(len(row.Events)))
		t.dropped.Inc()
	}
}

// Close sends the queued rows and spans until ctx ends. Later rows are ignored. Close may be called
// again.
func (t *Teller) Close(ctx context.Context) {
	if t == nil {
		return
	}
	defer context.AfterFunc(ctx, t.cancel)()
	defer t.cancel()
	t.closing.Do(func() {
		close(t.done)
		<-t.folded
		close(t.spans)
	})
	<-t.sent
}

// enqueueSpan queues a span for sending. If the queue is full, the span is dropped and counted.
func (t *Teller) enqueueSpan(s Span) {
	select {
	case t.spans <- s:
	default:
		t.dropped.Inc()
	}
}

// sendSpans sends the queued spans in batches.
func (t *Teller) sendSpans() {
	defer close(t.sent)
	tick := time.NewTicker(sendInterval)
	defer tick.Stop()
	var list []Span
	failing := false
	for open := true; open; {
		full := false
		select {
		case s, ok := <-t.spans:
			if open = ok; ok {
				list = append(list, s)
			}
			full = len(list) >= batchSize
		case <-tick.C:
			full = true
		}
		if len(list) > 0 && (full || !open) {
			failing = t.sendBatch(list, failing)
			list = nil
		}
	}
}

// sendBatch sends a batch and reports whether it failed. A line is logged when batches start to
// fail, and when they succeed again.
func (t *Teller) sendBatch(list []Span, failing bool) bool {
	ctx, cancel := context.WithTimeout(t.ctx, callTimeout)
	defer cancel()
	err := t.opts.Sink.Tell(ctx, list)
	switch {
	case err != nil:
		t.dropped.Add(float64(len(list)))
		if !failing {
			t.opts.Logger.Warn("exporting spans failed: spans are dropped", "error", err)
		}
	case failing:
		t.opts.Logger.Info("exporting spans works again")
	}
	return err != nil
}
