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

// The clerk of a book is the one goroutine that asks the store.

const (
	// every is how long lines wait for others at most.
	every = 200 * time.Millisecond
	// chunkBytes and batchBytes are how much is stored as one chunk, and at once.
	chunkBytes, batchBytes = 64 << 10, 512 << 10
	// roundChunks is how many chunks of an attempt are stored before others have their turn again.
	roundChunks = 8
	// largeBytes is from when on the store gets as long a rest after a batch as it took.
	largeBytes = 128 << 10
	// againAfter is how long a store that has failed is left alone.
	againAfter = time.Second
	// storeTime is how long the store may take for a batch.
	storeTime = 10 * time.Second
)

// work ends when the book is closed and all is stored, or the store has failed then.
func (b *Book) work() {
	defer close(b.done)
	for b.await() {
		b.round()
	}
	for b.round() && !b.failing.Load() {
	}
}

// await waits until something is to be stored, and for others to join. It is false when the book is closed.
func (b *Book) await() bool {
	select {
	case <-b.wake:
	case <-b.stop:
		return false
	}
	timer := time.NewTimer(every)
	defer timer.Stop()
	for !b.hurries() {
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

func (b *Book) hurries() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.hurry
}

// round stores what attempts have printed that are in line. It is false when none is.
func (b *Book) round() bool {
	b.mu.Lock()
	list := b.dirty
	b.dirty, b.hurry = nil, false
	b.mu.Unlock()
	for next := list; len(next) > 0; {
		var s batch
		next = s.gather(b, next)
		b.store(s.chunks, s.of)
		for _, w := range s.settled {
			b.settle(w)
		}
	}
	return len(list) > 0
}

// batch is what is stored at once.
type batch struct {
	chunks  []persistence.LogChunk
	of      []*Writer
	settled []*Writer // have had their turn with it
}

// gather takes from the writers in turn, and returns those that are left.
func (s *batch) gather(b *Book, list []*Writer) []*Writer {
	size := 0
	for ; len(list) > 0; list = list[1:] {
		w := list[0]
		for ; w.round < roundChunks; w.round++ {
			if size >= batchBytes {
				return list
			}
			taken := w.lines().Take(chunkBytes)
			if len(taken) == 0 {
				break
			}
			for _, chunk := range w.numbered(b.pass(taken)) {
				for _, l := range chunk.Lines {
					size += len(l.Text)
				}
				s.chunks, s.of = append(s.chunks, chunk), append(s.of, w)
			}
		}
		w.round = 0
		s.settled = append(s.settled, w)
	}
	return list
}

// numbered are lines as chunks. What tells of lost lines is one by itself, with the number of the last of them: whoever reads the source again numbers
// them, too, and may lose others.
func (w *Writer) numbered(list []lines.Line) (chunks []persistence.LogChunk) {
	for len(list) > 0 {
		n := slices.IndexFunc(list, func(l lines.Line) bool { return l.Passed > 0 })
		switch n {
		case 0:
			w.number += int64(list[0].Passed - 1)
			n = 1
		case -1:
			n = len(list)
		}
		chunks, list = append(chunks, w.chunk(list[:n:n])), list[n:]
	}
	return chunks
}

func (w *Writer) chunk(list []lines.Line) persistence.LogChunk {
	if w.source == "" {
		w.source = uuid.NewString()
	}
	w.number += int64(len(list))
	return persistence.LogChunk{Task: w.task, Job: w.job, Source: w.source, Number: w.number, Lines: list}
}

// settle ends a writer's turn.
func (b *Book) settle(w *Writer) {
	b.mu.Lock()
	defer b.mu.Unlock()
	w.waiting.Store(false) // from now on whoever writes puts it in line, if we do not
	if !w.lines().Waits() {
		w.tell()
		return
	}
	if !w.waiting.Swap(true) {
		b.dirty = append(b.dirty, w)
	}
	b.signal()
}

// store tries until the store has taken the chunks, refuses them, or the book is closed.
func (b *Book) store(chunks []persistence.LogChunk, of []*Writer) {
	if len(chunks) == 0 {
		return
	}
	for again := false; ; again = true {
		began := time.Now()
		err := b.append(chunks)
		b.failing.Store(err != nil && !errors.Is(err, persistence.ErrRefused))
		switch {
		case err == nil:
			b.rest(chunks, time.Since(began))
			return
		case errors.Is(err, persistence.ErrRefused):
			b.apart(chunks, of, err)
			return
		case !again:
			b.opts.Logger.Warn("what jobs print cannot be stored; trying on", "error", err)
		}
		if !b.pause(againAfter) {
			b.opts.Logger.Warn("what jobs have printed last could not be stored", "attempts", len(of), "error", err)
			return
		}
	}
}

func (b *Book) append(chunks []persistence.LogChunk) error {
	ctx, cancel := context.WithTimeout(context.Background(), storeTime)
	defer cancel()
	return b.opts.Store.AppendLog(ctx, chunks, b.opts.Keep)
}

// apart stores chunks of which the store refuses one.
func (b *Book) apart(chunks []persistence.LogChunk, of []*Writer, err error) {
	if len(chunks) > 1 {
		for i := range chunks {
			b.store(chunks[i:i+1], of[i:i+1])
		}
		return
	}
	of[0].lines().Lose(len(chunks[0].Lines))
	b.opts.Logger.Warn("the store refuses what a job has printed", "job", chunks[0].Job, "error", err)
}

// rest leaves the store to others after a large batch.
func (b *Book) rest(chunks []persistence.LogChunk, took time.Duration) {
	size := 0
	for i := range chunks {
		for _, l := range chunks[i].Lines {
			size += len(l.Text)
		}
	}
	if size >= largeBytes {
		b.pause(took)
	}
}

// pause is false when the book is closed.
func (b *Book) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-b.stop:
		return false
	}
}
