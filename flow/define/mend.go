package define

import (
	"bytes"
	"slices"
	"unicode/utf8"
)

// One mistake in the syntax must not hide all the others. So a text with one is mended, as its
// writer probably meant it, and read on. What is mended is an error all the same: a guess is good
// enough to look at the rest, not to run it.

// syntaxFault is a mistake in the syntax of a text, and what the text may have been meant to say.
type syntaxFault struct {
	line, column int // from 1, in characters
	msg          string
	repairs      []faultRepair // the likeliest first
}

// faultRepair is a way to do away with a fault.
type faultRepair []lineEdit

// lineEdit puts a text into a line in the place of some characters. It never adds or takes a line.
type lineEdit struct {
	line, column int // from 1, in characters
	cut          int // characters
	text         string
}

// maxFaults is how many mistakes in the syntax of a text are told.
const maxFaults = 10

// textSyntax is what a kind of text has to be like.
type textSyntax interface {
	// readableLength is how far a text can be read, in any measure; 0 = to its end.
	readableLength(text []byte) int
	// explainFault explains the first fault of a text that has one.
	explainFault(text []byte) *syntaxFault
	// isExhausted says that enough has been read: faults are told no more precisely, and not
	// mended.
	isExhausted() bool
}

// repairedText is a text on its way to one that can be read.
type repairedText struct {
	textSyntax
	text  []byte
	edits []lineEdit // that made it of the original
}

// originalPosition is where a position of the mended text is in the one that was written.
func (m *repairedText) originalPosition(line, column int) (int, int) {
	for _, e := range slices.Backward(m.edits) {
		put := utf8.RuneCountInString(e.text)
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

// positionAt is such a position.
func (m *repairedText) positionAt(line, column int) textPosition {
	line, column = m.originalPosition(line, column)
	return textPosition{line: line, column: column}
}

// withRepair is the text with a fault mended in one way.
func (m *repairedText) withRepair(how faultRepair) []byte {
	lines := bytes.SplitAfter(bytes.Clone(m.text), []byte("\n"))
	for _, e := range how {
		if e.line > len(lines) {
			continue
		}
		line := lines[e.line-1]
		from := behindRunes(line, e.column-1)
		to := from + behindRunes(line[from:], e.cut)
		lines[e.line-1] = slices.Concat(line[:from], []byte(e.text), line[to:])
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

// repairFault takes the way that leads farthest: to a text without faults, or else to one whose
// first fault is behind this one. It is false if none leads anywhere.
func (m *repairedText) repairFault(f *syntaxFault) bool {
	best, farthest := faultRepair(nil), m.readableLength(m.text)
	for _, how := range f.repairs {
		if m.isExhausted() {
			return false
		}
		next := m.readableLength(m.withRepair(how))
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
	m.text = m.withRepair(best)
	m.edits = append(m.edits, best...)
	return true
}

// repairAll tells the faults of a text and mends it until it has none. It is false if one cannot be
// mended.
func (m *repairedText) repairAll(r *Reporter) bool {
	for range maxFaults {
		f := m.explainFault(m.text)
		r.addSyntaxError(m.positionAt(f.line, f.column), f.msg)
		if !m.repairFault(f) {
			return false
		}
		if m.readableLength(m.text) == 0 {
			return true
		}
	}
	return false
}
