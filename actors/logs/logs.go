// Package logs takes what jobs print to the store while they run.
//
// Promises: whoever prints is never held up, whatever the store does, and a store that is slow or
// away fails no job; what attempts of a member have printed is stored together, a few times a
// second and no more than half of the time, so other commits go on; what waits for the store is
// bounded, for each attempt and for all, and lines beyond that are counted and told in their place;
// a part that is stored twice is there once; all lines pass one place (Book.filterLines) before
// they are stored.
package logs

import (
	"cmp"
	"context"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/troupe-engine/troupe/internal/lines"
	"github.com/troupe-engine/troupe/persistence"
)

// Options of a Book.
type Options struct {
	// Store keeps the logs.
	Store persistence.Logs
	// Keep is how many characters of an attempt are kept, the newest; 0 = 2,000,000.
	Keep int
	// Logger hears of logs that cannot be stored for a while; nil = slog.Default().
	Logger *slog.Logger
}

const (
	defaultKeep = 2_000_000
	// urgentBytes is how many bytes of an attempt do not wait for others.
	urgentBytes = 32 << 10
	// maxWaitingBytes is how much may wait for the store of all attempts.
	maxWaitingBytes = 64 << 20
	// closeWait is how long whoever closes a log waits until it can be read.
	closeWait = time.Second
)

// Book takes lines of all attempts that a member carries out to the store. A nil Book keeps
// nothing.
type Book struct {
	opts Options
	room *lines.Room
	wake chan struct{} // has something when the clerk should look
	stop chan struct{}
	done chan struct{} // closed when the clerk is gone

	failing atomic.Bool // the store did not take the last batch

	mu     sync.Mutex
	dirty  []*Writer // that have lines, in turn
	urgent bool      // somebody waits, or much does
	closed bool
}

// New begins a book. It is to be closed.
func New(o Options) *Book {
	o.Keep = cmp.Or(o.Keep, defaultKeep)
	o.Logger = cmp.Or(o.Logger, slog.Default())
	b := &Book{opts: o, room: lines.NewRoom(maxWaitingBytes), wake: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{})}
	go b.runStorer()
	return b
}

// Close stores what there is, for as long as the store takes it and ctx lasts.
func (b *Book) Close(ctx context.Context) error {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	if !b.closed {
		b.closed = true
		close(b.stop)
	}
	b.mu.Unlock()
	select {
	case <-b.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Open begins the log of an attempt that somebody was given to carry out, once more if it was given
// before.
func (b *Book) Open(task, job string) *Writer { return &Writer{book: b, task: task, job: job} }

// Resume opens the log of an attempt whose source can be read again from its beginning, by anybody
// who carries it out or looks after it: what is stored of it already is left out.
func (b *Book) Resume(task, job, source string) *Writer {
	return &Writer{book: b, task: task, job: job, source: source}
}

// maxPartBytes is how many bytes of a part are taken.
const maxPartBytes = 4 << 20

// Add stores a part of an attempt's log that whoever carries it out, elsewhere, has split into
// lines and numbered. It waits for a second at most until the part can be read, and says whether
// there is something.
func (b *Book) Add(p persistence.LogChunk) bool {
	w := &Writer{book: b, task: p.Task, job: p.Job, source: p.Source, number: p.Number - int64(len(p.Lines)), maxBytes: maxPartBytes}
	w.Add(p.Lines)
	return w.Close()
}

// Writer is the log of an attempt that somebody carries out.
type Writer struct {
	book      *Book
	task, job string
	source    string // "" = none was needed yet
	number    int64  // of the last line that was taken
	round     int    // chunks that were taken in this round; as the two before, the clerk's
	maxBytes  int    // bytes that may wait; 0 = as many as a buffer holds
	buffer    atomic.Pointer[lines.Buffer]
	waiting   atomic.Bool   // it is, or is about to be, in the line of the dirty
	stored    chan struct{} // closed when nothing is left to be stored; nil = nobody waits for that
	notified  bool          // it is closed
}

// lineBuffer begins with the first thing that is written: most jobs write nothing.
func (w *Writer) lineBuffer() *lines.Buffer {
	if begun := w.buffer.Load(); begun != nil {
		return begun
	}
	w.buffer.CompareAndSwap(nil, &lines.Buffer{Max: w.maxBytes, Room: w.book.room, Grown: w.noteGrowth})
	return w.buffer.Load()
}

// Stream is where to write what comes from one of the streams of package lines. Writing never
// blocks and never fails.
func (w *Writer) Stream(name string) io.Writer {
	if w.book == nil {
		return io.Discard
	}
	return w.lineBuffer().Stream(name)
}

// Write takes what is said without a stream.
func (w *Writer) Write(p []byte) (int, error) {
	if w.book == nil {
		return len(p), nil
	}
	return w.lineBuffer().Write(p)
}

// Add takes lines that were split elsewhere.
func (w *Writer) Add(list []lines.Line) {
	if w.book != nil {
		w.lineBuffer().Add(list)
	}
}

// Close ends the log, and says whether there is something to be read. It waits for a second at most
// until it can be, and not at all for a store that is away.
func (w *Writer) Close() bool {
	if !w.End() {
		return false
	}
	stored := w.book.storedSignal(w)
	if w.book.failing.Load() {
		return true
	}
	timer := time.NewTimer(closeWait)
	defer timer.Stop()
	select {
	case <-stored:
	case <-timer.C:
	case <-w.book.done:
	}
	return true
}

// End is Close for who cannot wait.
func (w *Writer) End() bool {
	begun := w.buffer.Load()
	if begun == nil {
		return false
	}
	begun.Close()
	return begun.Any()
}

// noteGrowth is told of each write that added lines.
func (w *Writer) noteGrowth(bytes int) {
	if w.waiting.Load() && bytes < urgentBytes {
		return
	}
	b := w.book
	b.mu.Lock()
	if !w.waiting.Swap(true) {
		b.dirty = append(b.dirty, w)
	}
	first := len(b.dirty) == 1
	b.urgent = b.urgent || bytes >= urgentBytes
	signal := first || b.urgent
	b.mu.Unlock()
	if signal {
		b.wakeStorer()
	}
}

func (b *Book) wakeStorer() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// storedSignal tells when nothing of a log is left to be stored.
func (b *Book) storedSignal(w *Writer) <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if w.stored == nil {
		w.stored = make(chan struct{})
	}
	if !w.waiting.Load() {
		w.notifyStored()
	}
	b.urgent = true
	b.wakeStorer()
	return w.stored
}

// notifyStored says that nothing is left to be stored, to who wants to hear it. The book's lock is
// held.
func (w *Writer) notifyStored() {
	if w.stored != nil && !w.notified {
		w.notified = true
		close(w.stored)
	}
}

// filterLines is where all lines come by before they are stored.
func (b *Book) filterLines(list []lines.Line) []lines.Line { return list }
