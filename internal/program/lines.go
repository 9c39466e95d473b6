package program

import "bytes"

// writer is a function that everything is given to.
type writer func([]byte)

func (w writer) Write(b []byte) (int, error) {
	w(b)
	return len(b), nil
}

// lines tells what is written line by line, each up to as many bytes as are wanted of one that begins so.
type lines struct {
	line func(line []byte, cut bool)
	most func(begun []byte) int

	held []byte // of the line that has begun
	cut  bool   // it has more
}

func (l *lines) write(b []byte) {
	for {
		i := bytes.IndexByte(b, '\n')
		if i < 0 {
			l.hold(b)
			return
		}
		l.hold(b[:i])
		l.tell()
		b = b[i+1:]
	}
}

func (l *lines) hold(b []byte) {
	for len(b) > 0 {
		n := min(l.most(l.held)-len(l.held), len(b))
		if n <= 0 {
			l.cut = true
			return
		}
		l.held = append(l.held, b[:n]...)
		b = b[n:]
	}
}

func (l *lines) tell() {
	l.line(l.held, l.cut)
	l.held, l.cut = l.held[:0], false
}

// end tells of a line without an end.
func (l *lines) end() {
	if len(l.held) > 0 {
		l.tell()
	}
}
