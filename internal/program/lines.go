package program

import "bytes"

// writerFunc is a function used as an io.Writer.
type writerFunc func([]byte)

func (w writerFunc) Write(b []byte) (int, error) {
	w(b)
	return len(b), nil
}

// lineSplitter calls line for each written line. The function limit returns how many bytes of a
// line to keep, from the line's beginning.
type lineSplitter struct {
	line  func(line []byte, cut bool)
	limit func(begun []byte) int

	held []byte // unfinished line
	cut  bool   // part of the line was dropped
}

func (l *lineSplitter) splitLines(b []byte) {
	for {
		i := bytes.IndexByte(b, '\n')
		if i < 0 {
			l.appendHeld(b)
			return
		}
		l.appendHeld(b[:i])
		l.emitLine()
		b = b[i+1:]
	}
}

func (l *lineSplitter) appendHeld(b []byte) {
	for len(b) > 0 {
		n := min(l.limit(l.held)-len(l.held), len(b))
		if n <= 0 {
			l.cut = true
			return
		}
		l.held = append(l.held, b[:n]...)
		b = b[n:]
	}
}

func (l *lineSplitter) emitLine() {
	l.line(l.held, l.cut)
	l.held, l.cut = l.held[:0], false
}

// flushLine handles a final line without a line break.
func (l *lineSplitter) flushLine() {
	if len(l.held) > 0 {
		l.emitLine()
	}
}
