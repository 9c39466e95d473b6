// Package lines buffers the output of a job, by line and stream, until it is taken for storage.
//
// Promises:
//   - Writers never block and never get an error.
//   - A buffer never exceeds its bound. Lost lines are counted and reported at their place in the
//     order.
//   - Lines of several streams are taken in the order in which they ended.
//   - A line is taken whole, unless it is longer than MaxLine or its buffer is closed in the middle
//     of it.
package lines

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"
)

// Streams of lines.
const (
	Log    = "log" // lines of handlers and of the system, about a job
	Stdout = "stdout"
	Stderr = "stderr"
)

// Streams lists all streams. Stored logs rely on this order.
var Streams = [...]string{Log, Stdout, Stderr}

const (
	// MaxLine is the largest number of bytes of a line. A longer line is split.
	MaxLine = 16 << 10
	// DefaultMax is the default bound of a buffer in bytes.
	DefaultMax = 2 << 20
	// perLine is the cost of a line in bytes, besides its text.
	perLine = 64
)

// StreamNamed returns the stream with the given name, or Log if there is none.
func StreamNamed(name string) string { return Streams[codeOf(name)] }

func codeOf(name string) int { return max(slices.Index(Streams[:], name), 0) }

// Line is a line with its line break, or a part of a long line. Its text is valid UTF-8.
type Line struct {
	At     int64 // Unix milliseconds
	Stream string
	Text   string
	// Passed is the number of never taken lines that a notice of lost lines counts; 0 for an
	// ordinary line.
	Passed int
}

// Room is a number of bytes that several buffers share.
type Room struct{ taken, size atomic.Int64 }

// NewRoom returns a Room of the given number of bytes.
func NewRoom(bytes int) *Room {
	r := &Room{}
	r.size.Store(int64(bytes))
	return r
}

// Take reserves bytes and reports whether there was room.
func (r *Room) Take(bytes int) bool {
	if r == nil || r.taken.Add(int64(bytes)) <= r.size.Load() {
		return true
	}
	r.taken.Add(int64(-bytes))
	return false
}

// Give returns reserved bytes.
func (r *Room) Give(bytes int) {
	if r != nil {
		r.taken.Add(int64(-bytes))
	}
}

// Buffer holds lines. The zero value is ready to use. Its methods are safe for concurrent use.
type Buffer struct {
	Max  int   // bound in bytes; 0 means DefaultMax
	Room *Room // shared with other buffers; nil if none
	// called with the number of pending bytes after a write that added lines; may be nil
	Grown func(bytes int)
	mu    sync.Mutex
	lines []Line
	bytes int // cost of lines in bytes
	// number of lines lost since the last stored line, including taken lines that could not be
	// stored
	dropped int
	never   int // number of lines in dropped that did not fit
	any     bool
	rests   [len(Streams)]bytes.Buffer // unfinished line of each stream
}

// Stream returns a writer for a stream. An unknown name means Log.
func (b *Buffer) Stream(name string) io.Writer {
	return lineStream{b, codeOf(name)}
}

// Write writes to the Log stream.
func (b *Buffer) Write(p []byte) (int, error) { return lineStream{b, 0}.Write(p) }

type lineStream struct {
	*Buffer
	code int
}

func (s lineStream) Write(p []byte) (int, error) {
	s.changeLines(func() { s.splitLines(s.code, p) })
	return len(p), nil
}

// Add adds lines that were split elsewhere.
func (b *Buffer) Add(list []Line) {
	b.changeLines(func() {
		for _, l := range list {
			b.addLine(l)
		}
	})
}

// changeLines calls do, which may add lines, and then Grown if lines were added.
func (b *Buffer) changeLines(do func()) {
	b.mu.Lock()
	before := b.bytes + b.dropped
	do()
	grown, waits := b.bytes+b.dropped > before, b.bytes
	b.mu.Unlock()
	if grown && b.Grown != nil {
		b.Grown(waits)
	}
}

// splitLines adds the lines that end in p and keeps the rest for later.
func (b *Buffer) splitLines(code int, p []byte) {
	rest := &b.rests[code]
	for len(p) > 0 {
		end := bytes.IndexByte(p, '\n') + 1
		switch {
		case end == 0 && rest.Len()+len(p) < MaxLine:
			rest.Write(p)
			return
		case end == 0 || rest.Len()+end > MaxLine:
			end = MaxLine - rest.Len()
		}
		rest.Write(p[:end])
		p = p[end:]
		text := rest.Bytes()
		cut := completePrefix(text)
		b.addLine(Line{At: time.Now().UnixMilli(), Stream: Streams[code], Text: string(text[:cut])})
		begun := slices.Clone(text[cut:])
		rest.Reset()
		rest.Write(begun)
	}
}

// completePrefix returns the length of text without an incomplete UTF-8 character at its end.
func completePrefix(text []byte) int {
	for at := len(text) - 1; at > max(len(text)-utf8.UTFMax, 0); at-- {
		if utf8.RuneStart(text[at]) {
			if !utf8.FullRune(text[at:]) {
				return at
			}
			break
		}
	}
	return len(text)
}

// addLine adds a line if there is room for it. The caller holds the lock.
func (b *Buffer) addLine(l Line) {
	l.Text = strings.ToValidUTF8(l.Text, "\uFFFD")
	b.any = true
	if cost := len(l.Text) + perLine; b.bytes+cost > b.maxBytes() || !b.Room.Take(cost) {
		b.dropped++
		b.never++
		return
	}
	b.noteDropped(l.At)
	b.appendLine(l)
}

func (b *Buffer) maxBytes() int {
	if b.Max == 0 {
		return DefaultMax
	}
	return b.Max
}

func (b *Buffer) appendLine(l Line) {
	b.lines = append(b.lines, l)
	b.bytes += len(l.Text) + perLine
}

// noteDropped adds a notice of the lost lines at their place, even if there is no room. The caller
// holds the lock.
func (b *Buffer) noteDropped(at int64) {
	if b.dropped == 0 {
		return
	}
	l := Line{At: at, Stream: Log, Text: Lost(b.dropped), Passed: b.never}
	b.dropped, b.never = 0, 0
	b.Room.forceTake(len(l.Text) + perLine)
	b.appendLine(l)
}

func (r *Room) forceTake(bytes int) {
	if r != nil {
		r.taken.Add(int64(bytes))
	}
}

// Lost returns the text that replaces n lost lines.
func Lost(n int) string {
	if n == 1 {
		return "… 1 line lost here\n"
	}
	return fmt.Sprintf("… %d lines lost here\n", n)
}

// Lose counts lines that were taken and could not be stored.
func (b *Buffer) Lose(n int) {
	b.changeLines(func() { b.dropped += n })
}

// Take removes and returns the oldest lines, at most max bytes in total, but at least one line.
func (b *Buffer) Take(max int) []Line {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.lines) == 0 {
		b.noteDropped(time.Now().UnixMilli())
	}
	n, size := 0, 0
	for n < len(b.lines) && (n == 0 || size+len(b.lines[n].Text)+perLine <= max) {
		size += len(b.lines[n].Text) + perLine
		n++
	}
	taken := b.lines[:n:n]
	b.bytes -= size
	b.Room.Give(size)
	if b.lines = b.lines[n:]; len(b.lines) == 0 {
		b.lines = nil // the caller owns the taken slice
	}
	return taken
}

// Close ends the unfinished lines. Later writes are still accepted.
func (b *Buffer) Close() {
	b.changeLines(func() {
		for code := range b.rests {
			if rest := &b.rests[code]; rest.Len() > 0 {
				b.addLine(Line{At: time.Now().UnixMilli(), Stream: Streams[code], Text: rest.String()})
				*rest = bytes.Buffer{}
			}
		}
	})
}

// Any reports whether a line was ever added.
func (b *Buffer) Any() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.any
}

// Waits reports whether there is something to take.
func (b *Buffer) Waits() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.lines) > 0 || b.dropped > 0
}
