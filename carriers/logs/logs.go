// Package logs writes the output of jobs to the store while they run. It guarantees:
//
//   - Output never blocks a job, and a store that is slow or unavailable fails no job.
//   - The output of all attempts of a member is stored together, a few times a second and at most
//     half of the time, so other commits proceed.
//   - Lines that wait for the store are bounded, for each attempt and in total. Further ones are
//     counted, and the count is shown in their place.
//   - A part that is written twice is stored once.
//   - All lines pass one place (Book.filterLines) before they are stored.
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

// Options configure a Book.
type Options struct {
	// Store stores the logs.
	Store persistence.Logs
	// Keep is how many characters of an attempt's log are kept, newest first. 0 means 2,000,000.
	Keep int
	// Logger logs when logs cannot be stored; nil means slog.Default().
	Logger *slog.Logger
}

const (
	defaultKeep = 2_000_000
	// urgentBytes is the number of waiting bytes of an attempt above which they are stored at once.
	urgentBytes = 32 << 10
	// maxWaitingBytes bounds the waiting lines of all attempts.
	maxWaitingBytes = 64 << 20
	// closeWait is how long Close waits for a log to be stored.
	closeWait = time.Second
)

// Book stores the lines of all attempts that a member carries out. A nil Book stores nothing.
type Book struct {
	opts Options
	room *lines.Room
	wake chan struct{} // holds a token when runStorer should check
	stop chan struct{}
	done chan struct{} // closed when runStorer has ended

	failing atomic.Bool // the store refused or missed the last write

	mu     sync.Mutex
	dirty  []*Writer // writers with waiting lines, in order of their turns
	urgent bool      // a caller waits, or many lines wait
	closed bool
}

// New starts a book. The caller must close it.
func New(o Options) *Book {
	o.Keep = cmp.Or(o.Keep, defaultKeep)
	o.Logger = cmp.Or(o.Logger, slog.Default())
	b := &Book{opts: o, room: lines.NewRoom(maxWaitingBytes), wake: make(chan struct{}, 1),
		stop: make(chan struct{}), done: make(chan struct{})}
	go b.runStorer()
	return b
}

// Close stores the remaining lines until ctx ends or the store fails.
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

// Open opens the log of an attempt for one of its deliveries.
func (b *Book) Open(task, job string) *Writer { return &Writer{book: b, task: task, job: job} }

// Resume opens the log of an attempt whose source can be read again from its start. Lines that are
// stored already are skipped.
func (b *Book) Resume(task, job, source string) *Writer {
	return &Writer{book: b, task: task, job: job, source: source}
}

// maxPartBytes bounds the bytes of one call of Add.
const maxPartBytes = 4 << 20

// Add stores lines that another component has split and numbered. It waits up to a second until
// they can be read, and reports whether there are any.
func (b *Book) Add(p persistence.LogChunk) bool {
	w := &Writer{book: b, task: p.Task, job: p.Job, source: p.Source, number: p.Number - int64(len(p.Lines)), maxBytes: maxPartBytes}
	w.Add(p.Lines)
	return w.Close()
}

// Writer is the log of one delivery of an attempt.
type Writer struct {
	book      *Book
	task, job string
	source    string // "" before it is needed
	number    int64  // number of the last taken line
	round     int    // chunks taken in this round; as source and number, used by runStorer only
	maxBytes  int    // maximum number of waiting bytes; 0 means the default
	buffer    atomic.Pointer[lines.Buffer]
	waiting   atomic.Bool   // the writer is in the dirty list, or about to be
	stored    chan struct{} // closed when all lines are stored; nil if no caller waits
	notified  bool          // stored is closed
}

// lineBuffer returns the buffer. It is created at the first write, because most jobs write nothing.
func (w *Writer) lineBuffer() *lines.Buffer {
	if begun := w.buffer.Load(); begun != nil {
		return begun
	}
	w.buffer.CompareAndSwap(nil, &lines.Buffer{Max: w.maxBytes, Room: w.book.room, Grown: w.noteGrowth})
	return w.buffer.Load()
}

// Stream returns a writer for one of the streams of package lines. Its writes never block and never
// fail.
func (w *Writer) Stream(name string) io.Writer {
	if w.book == nil {
		return io.Discard
	}
	return w.lineBuffer().Stream(name)
}

// Write adds output without a stream.
func (w *Writer) Write(p []byte) (int, error) {
	if w.book == nil {
		return len(p), nil
	}
	return w.lineBuffer().Write(p)
}

// Add adds lines that were split elsewhere.
func (w *Writer) Add(list []lines.Line) {
	if w.book != nil {
		w.lineBuffer().Add(list)
	}
}

// Close ends the log, and reports whether it has content. It waits up to a second until the log is
// stored, but not while the store fails.
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

// End is like Close, but does not wait.
func (w *Writer) End() bool {
	begun := w.buffer.Load()
	if begun == nil {
		return false
	}
	begun.Close()
	return begun.Any()
}

// noteGrowth queues the writer after a write has added lines.
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

// storedSignal returns a channel that is closed when all lines of a log are stored.
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

// notifyStored notifies a waiting caller that all lines are stored. The caller holds the book's
// lock.
func (w *Writer) notifyStored() {
	if w.stored != nil && !w.notified {
		w.notified = true
		close(w.stored)
	}
}

// filterLines is called for all lines before they are stored.
func (b *Book) filterLines(list []lines.Line) []lines.Line { return list }
