// Package spans tells what is stored of tasks as spans, to whoever passes them on.
//
// What it promises: nobody waits for it. A row comes to it behind its commit, and what it cannot
// keep up with is dropped and counted. A task's spans are the same whoever tells them, since they
// follow from its journal: where rows are missing, because another member wrote them or too many
// came at once, it reads them in the store. A member that takes a task over tells its start once
// more, for who created it may have died before; so no parent is ever missing. It remembers 64 MiB
// of tasks that go on; what becomes of others is told when they end, by one more reading of their
// journals.
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

// Span is that of a task.
type Span struct {
	trace.Span
	Task, Flow string // the task's id, and its flow's slug
	Version    int    // number, 0 = it is not known
}

// Sink takes spans, in batches. What it refuses is lost.
type Sink interface {
	Tell(ctx context.Context, spans []Span) error
}

// Options of a Teller.
type Options struct {
	Store  persistence.Store
	Sink   Sink
	Logger *slog.Logger
}

const (
	maxQueued      = 8192     // rows that wait to be told, and spans that wait to be passed on
	maxQueuedBytes = 32 << 20 // of these rows; of more the journal is read
	batchSize      = 512
	sendInterval   = time.Second
	callTimeout    = 10 * time.Second // with whoever takes a batch
)

// Teller is an actors.Teller.
type Teller struct {
	opts    Options
	ctx     context.Context // of passing spans on
	cancel  context.CancelFunc
	rows    chan actors.StoredRow
	bytes   atomic.Int64 // of rows
	spans   chan Span
	dropped prometheus.Counter
	closing sync.Once
	done    chan struct{} // is closed when no more rows come
	folded  chan struct{} // is closed when no more spans come
	sent    chan struct{} // and when the last ones are passed on
}

// Start has spans told until Close.
func Start(opts Options) *Teller {
	t := &Teller{opts: opts, rows: make(chan actors.StoredRow, maxQueued), spans: make(chan Span, maxQueued), done: make(chan struct{}), folded: make(chan struct{}), sent: make(chan struct{}),
		dropped: prometheus.NewCounter(prometheus.CounterOpts{Name: "troupe_spans_dropped_total", Help: "Spans, and rows of tasks with spans, that were not told because too many came or nobody took them."})}
	t.ctx, t.cancel = context.WithCancel(context.Background())
	go t.foldRows()
	go t.sendSpans()
	return t
}

// Collectors are its metrics.
func (t *Teller) Collectors() []prometheus.Collector {
	if t == nil {
		return nil
	}
	return []prometheus.Collector{t.dropped}
}

// Stored takes a row. A large one is read again when its turn comes.
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

// Close passes on what is there, as long as ctx lasts; what comes later is not told. It may be
// called again.
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

// enqueueSpan has a span passed on soon.
func (t *Teller) enqueueSpan(s Span) {
	select {
	case t.spans <- s:
	default:
		t.dropped.Inc()
	}
}

// sendSpans passes spans on, in batches.
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

// sendBatch passes a batch on. That nobody takes them is logged once, and once when it is over.
func (t *Teller) sendBatch(list []Span, failing bool) bool {
	ctx, cancel := context.WithTimeout(t.ctx, callTimeout)
	defer cancel()
	err := t.opts.Sink.Tell(ctx, list)
	switch {
	case err != nil:
		t.dropped.Add(float64(len(list)))
		if !failing {
			t.opts.Logger.Warn("spans are not taken: they are dropped", "error", err)
		}
	case failing:
		t.opts.Logger.Info("spans are taken again")
	}
	return err != nil
}
