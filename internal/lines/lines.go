// Package lines holds what a job prints, line by line and by stream, until somebody takes it to
// where it is kept.
//
// Promises: whoever writes is never held up and never gets an error; a buffer holds no more than
// its bound, and what did not fit is counted and told in its place, in order; lines of several
// streams are taken in the order in which they ended; a line comes whole, unless it is longer than
// MaxLine, or its buffer is closed in the middle of it.
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

// Streams that lines come from.
const (
	Log    = "log" // of handlers, and what is said about a job
	Stdout = "stdout"
	Stderr = "stderr"
)

// Streams are all of them, in an order that stored logs rely on.
var Streams = [...]string{Log, Stdout, Stderr}

const (
	// MaxLine is how many bytes of a line are kept together. A longer one comes in parts.
	MaxLine = 16 << 10
	// DefaultMax is how many bytes a buffer holds that is not told anything else.
	DefaultMax = 2 << 20
	// perLine is what a line costs beside its text.
	perLine = 64
)

// StreamNamed is the stream of a name: Log, if there is no such.
func StreamNamed(name string) string { return Streams[codeOf(name)] }

func codeOf(name string) int { return max(slices.Index(Streams[:], name), 0) }

// Line is what was printed at once: a line with its end, or a part of a long one. It is UTF-8.
type Line struct {
	At     int64 // Unix milliseconds
	Stream string
	Text   string
	// Passed is how many lines one that tells of lost ones stands for among those that were never
	// taken; 0 = it is a line itself.
	Passed int
}

// Room is what several buffers share.
type Room struct{ taken, size atomic.Int64 }

// NewRoom has room for so many bytes.
func NewRoom(bytes int) *Room {
	r := &Room{}
	r.size.Store(int64(bytes))
	return r
}

// Take takes some of it, if it is there.
func (r *Room) Take(bytes int) bool {
	if r == nil || r.taken.Add(int64(bytes)) <= r.size.Load() {
		return true
	}
	r.taken.Add(int64(-bytes))
	return false
}

// Give gives back what was taken.
func (r *Room) Give(bytes int) {
	if r != nil {
		r.taken.Add(int64(-bytes))
	}
}

// Buffer holds lines. The zero value is useful. Its methods may be called from several goroutines.
type Buffer struct {
	Max     int             // bytes; 0 = DefaultMax
	Room    *Room           // of this and others; nil = it shares none
	Grown   func(bytes int) // told after a write that added lines how many bytes wait; nil = nobody is
	mu      sync.Mutex
	lines   []Line
	bytes   int // of lines, with what they cost
	dropped int // lines that did not fit since the last one that did, and that were taken in vain
	never   int // those of them that did not fit
	any     bool
	rests   [len(Streams)]bytes.Buffer // of each stream the line that has not ended
}

// Stream is where to write what comes from one. One that is not known is taken for Log.
func (b *Buffer) Stream(name string) io.Writer {
	return lineStream{b, codeOf(name)}
}

// Write takes what is said without a stream.
func (b *Buffer) Write(p []byte) (int, error) { return lineStream{b, 0}.Write(p) }

type lineStream struct {
	*Buffer
	code int
}

func (s lineStream) Write(p []byte) (int, error) {
	s.changeLines(func() { s.splitLines(s.code, p) })
	return len(p), nil
}

// Add takes lines that were split elsewhere.
func (b *Buffer) Add(list []Line) {
	b.changeLines(func() {
		for _, l := range list {
			b.addLine(l)
		}
	})
}

// changeLines does something that may add lines.
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

// splitLines adds the lines that end in p, and keeps the rest for later.
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

// completePrefix is how much of a text there is without a character at its end that is not there to
// its end.
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

// addLine keeps a line if there is room for it. The lock is held.
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

// noteDropped puts how many lines were lost where they would be, room or not. The lock is held.
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

// Lost is what stands in the place of lines that are lost.
func Lost(n int) string {
	if n == 1 {
		return "… 1 line lost here\n"
	}
	return fmt.Sprintf("… %d lines lost here\n", n)
}

// Lose counts lines that were taken and could not be kept.
func (b *Buffer) Lose(n int) {
	b.changeLines(func() { b.dropped += n })
}

// Take hands out the oldest lines, of no more than max bytes together but for a single one.
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
		b.lines = nil // what was taken is somebody else's
	}
	return taken
}

// Close makes lines of what has no end yet. What is written later is taken all the same.
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

// Any reports whether anything was ever added.
func (b *Buffer) Any() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.any
}

// Waits reports whether there is something to be taken.
func (b *Buffer) Waits() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.lines) > 0 || b.dropped > 0
}
