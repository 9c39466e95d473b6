package define

import (
	"bytes"
	"slices"
	"unicode/utf8"
)

// One mistake in the syntax must not hide all the others. So a text with one is mended, as its writer probably meant it, and
// read on. What is mended is an error all the same: a guess is good enough to look at the rest, not to run it.

// fault is a mistake in the syntax of a text, and what the text may have been meant to say.
type fault struct {
	line, column int // from 1, in characters
	msg          string
	mends        []mend // the likeliest first
}

// mend is a way to do away with a fault.
type mend []edit

// edit puts a text into a line in the place of some characters. It never adds or takes a line.
type edit struct {
	line, column int // from 1, in characters
	cut          int // characters
	put          string
}

// maxFaults is how many mistakes in the syntax of a text are told.
const maxFaults = 10

// syntax is what a kind of text has to be like.
type syntax interface {
	// reach is how far a text can be read, in any measure; 0 = to its end.
	reach(text []byte) int
	// fault explains the first fault of a text that has one.
	fault(text []byte) *fault
	// tired says that enough has been read: faults are told no more precisely, and not mended.
	tired() bool
}

// mending is a text on its way to one that can be read.
type mending struct {
	syntax
	text  []byte
	edits []edit // that made it of the original
}

// original is where a position of the mended text is in the one that was written.
func (m *mending) original(line, column int) (int, int) {
	for _, e := range slices.Backward(m.edits) {
		put := utf8.RuneCountInString(e.put)
		switch {
		case e.line != line || column <= e.column:
		case column >= e.column+put:
			column += e.cut - put
		default:
			column = e.column
		}
	}
	return line, column
}

// at is such a position.
func (m *mending) at(line, column int) position {
	line, column = m.original(line, column)
	return position{line: line, column: column}
}

// with is the text with a fault mended in one way.
func (m *mending) with(how mend) []byte {
	lines := bytes.SplitAfter(bytes.Clone(m.text), []byte("\n"))
	for _, e := range how {
		if e.line > len(lines) {
			continue
		}
		line := lines[e.line-1]
		from := behindRunes(line, e.column-1)
		to := from + behindRunes(line[from:], e.cut)
		lines[e.line-1] = slices.Concat(line[:from], []byte(e.put), line[to:])
	}
	return bytes.Join(lines, nil)
}

// behindRunes is the offset behind some characters, but not behind the end of the line.
func behindRunes(line []byte, count int) int {
	i := 0
	for ; count > 0 && i < len(line) && line[i] != '\n'; count-- {
		_, size := utf8.DecodeRune(line[i:])
		i += size
	}
	return i
}

// mend takes the way that leads farthest: to a text without faults, or else to one whose first fault is behind this
// one. It is false if none leads anywhere.
func (m *mending) mend(f *fault) bool {
	best, farthest := mend(nil), m.reach(m.text)
	for _, how := range f.mends {
		if m.tired() {
			return false
		}
		next := m.reach(m.with(how))
		if next == 0 {
			best = how
			break
		}
		if next > farthest {
			best, farthest = how, next
		}
	}
	if best == nil {
		return false
	}
	m.text = m.with(best)
	m.edits = append(m.edits, best...)
	return true
}

// read tells the faults of a text and mends it until it has none. It is false if one cannot be mended.
func (m *mending) read(r *Reporter) bool {
	for range maxFaults {
		f := m.fault(m.text)
		r.syntax(m.at(f.line, f.column), f.msg)
		if !m.mend(f) {
			return false
		}
		if m.reach(m.text) == 0 {
			return true
		}
	}
	return false
}
