package logs

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/troupe-engine/troupe/internal/lines"
	"github.com/troupe-engine/troupe/persistence"
)

// Each book has one goroutine, runStorer, that writes to the store.

const (
	// storeInterval is the longest time that a line waits for more lines.
	storeInterval = 200 * time.Millisecond
	// chunkBytes is the size of one chunk, and batchBytes the size of one write.
	chunkBytes, batchBytes = 64 << 10, 512 << 10
	// roundChunks is how many chunks of one attempt are stored before others have their turn.
	roundChunks = 8
	// largeBatch is the size above which the writer pauses for as long as the write took.
	largeBatch = 128 << 10
	// retryPause is the pause after the store has failed.
	retryPause = time.Second
	// storeTimeout bounds one write.
	storeTimeout = 10 * time.Second
)

// runStorer stores lines until the book is closed and everything is stored. After the close, it
// stops when the store fails.
func (b *Book) runStorer() {
	defer close(b.done)
	for b.awaitLines() {
		b.storeRound()
	}
	for b.storeRound() && !b.failing.Load() {
	}
}

// awaitLines waits for lines, and then for more lines to store together. It returns false when the
// book is closed.
func (b *Book) awaitLines() bool {
	select {
	case <-b.wake:
	case <-b.stop:
		return false
	}
	timer := time.NewTimer(storeInterval)
	defer timer.Stop()
	for !b.isUrgent() {
		select {
		case <-b.wake:
		case <-timer.C:
			return true
		case <-b.stop:
			return false
		}
	}
	return true
}

func (b *Book) isUrgent() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.urgent
}

// storeRound stores the lines of all queued attempts. It returns false if there are none.
func (b *Book) storeRound() bool {
	b.mu.Lock()
	list := b.dirty
	b.dirty, b.urgent = nil, false
	b.mu.Unlock()
	for next := list; len(next) > 0; {
		var s chunkBatch
		next = s.gatherChunks(b, next)
		b.storeChunks(s.chunks, s.writers)
		for _, w := range s.settled {
			b.endTurn(w)
		}
	}
	return len(list) > 0
}

// chunkBatch holds the chunks of one write.
type chunkBatch struct {
	chunks  []persistence.LogChunk
	writers []*Writer
	settled []*Writer // writers whose turn ends with this write
}

// gatherChunks takes chunks from the writers in order, and returns the writers that are left.
func (s *chunkBatch) gatherChunks(b *Book, list []*Writer) []*Writer {
	size := 0
	for ; len(list) > 0; list = list[1:] {
		w := list[0]
		for ; w.round < roundChunks; w.round++ {
			if size >= batchBytes {
				return list
			}
			taken := w.lineBuffer().Take(chunkBytes)
			if len(taken) == 0 {
				break
			}
			for _, chunk := range w.numberLines(b.filterLines(taken)) {
				for _, l := range chunk.Lines {
					size += len(l.Text)
				}
				s.chunks, s.writers = append(s.chunks, chunk), append(s.writers, w)
			}
		}
		w.round = 0
		s.settled = append(s.settled, w)
	}
	return list
}

// numberLines groups lines into chunks and numbers them. A line that reports lost lines is a
// separate chunk, with the number of the last lost line. So another reader of the same source uses
// the same numbers, even if it loses other lines.
func (w *Writer) numberLines(list []lines.Line) (chunks []persistence.LogChunk) {
	for len(list) > 0 {
		n := slices.IndexFunc(list, func(l lines.Line) bool { return l.Passed > 0 })
		switch n {
		case 0:
			w.number += int64(list[0].Passed - 1)
			n = 1
		case -1:
			n = len(list)
		}
		chunks, list = append(chunks, w.newChunk(list[:n:n])), list[n:]
	}
	return chunks
}

func (w *Writer) newChunk(list []lines.Line) persistence.LogChunk {
	if w.source == "" {
		w.source = uuid.NewString()
	}
	w.number += int64(len(list))
	return persistence.LogChunk{Task: w.task, Job: w.job, Source: w.source, Number: w.number, Lines: list}
}

// endTurn ends a writer's turn.
func (b *Book) endTurn(w *Writer) {
	b.mu.Lock()
	defer b.mu.Unlock()
	w.waiting.Store(false) // from now on, each write queues the writer again
	if !w.lineBuffer().Waits() {
		w.notifyStored()
		return
	}
	if !w.waiting.Swap(true) {
		b.dirty = append(b.dirty, w)
	}
	b.wakeStorer()
}

// storeChunks stores chunks, with retries until the store accepts or refuses them or the book is
// closed.
func (b *Book) storeChunks(chunks []persistence.LogChunk, of []*Writer) {
	if len(chunks) == 0 {
		return
	}
	for again := false; ; again = true {
		began := time.Now()
		err := b.appendChunks(chunks)
		b.failing.Store(err != nil && !errors.Is(err, persistence.ErrRefused))
		switch {
		case err == nil:
			b.pauseAfterLarge(chunks, time.Since(began))
			return
		case errors.Is(err, persistence.ErrRefused):
			b.storeSeparately(chunks, of, err)
			return
		case !again:
			b.opts.Logger.Warn("storing job logs failed, retrying", "error", err)
		}
		if !b.sleepFor(retryPause) {
			b.opts.Logger.Warn("storing the last log lines of jobs failed", "attempts", len(of), "error", err)
			return
		}
	}
}

func (b *Book) appendChunks(chunks []persistence.LogChunk) error {
	ctx, cancel := context.WithTimeout(context.Background(), storeTimeout)
	defer cancel()
	return b.opts.Store.AppendLog(ctx, chunks, b.opts.Keep)
}

// storeSeparately stores chunks one by one after the store has refused one of them.
func (b *Book) storeSeparately(chunks []persistence.LogChunk, of []*Writer, err error) {
	if len(chunks) > 1 {
		for i := range chunks {
			b.storeChunks(chunks[i:i+1], of[i:i+1])
		}
		return
	}
	of[0].lineBuffer().Lose(len(chunks[0].Lines))
	b.opts.Logger.Warn("store rejected the log of a job", "job", chunks[0].Job, "error", err)
}

// pauseAfterLarge pauses after a large write, so that other callers can use the store.
func (b *Book) pauseAfterLarge(chunks []persistence.LogChunk, took time.Duration) {
	size := 0
	for i := range chunks {
		for _, l := range chunks[i].Lines {
			size += len(l.Text)
		}
	}
	if size >= largeBatch {
		b.sleepFor(took)
	}
}

// sleepFor waits for d. It returns false when the book is closed.
func (b *Book) sleepFor(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-b.stop:
		return false
	}
}
