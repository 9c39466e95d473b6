package definition

import (
	"bytes"
	"slices"
	"unicode/utf8"
)

// One syntax error must not hide all others. So a text with an error is repaired in the way that
// was probably intended, and reading continues. The error is still reported: a guess is good enough
// to check the rest, but not to run the flow.

// syntaxFault is a syntax error of a text with its possible repairs.
type syntaxFault struct {
	line, column int // from 1, in characters
	msg          string
	repairs      []faultRepair // most likely first
}

// faultRepair is one way to repair a fault.
type faultRepair []lineEdit

// lineEdit replaces some characters of a line. It never adds or removes a line.
type lineEdit struct {
	line, column int // from 1, in characters
	cut          int // number of characters
	text         string
}

// maxFaults is the maximum number of reported syntax errors of a text.
const maxFaults = 10

// textSyntax is the syntax of a kind of text.
type textSyntax interface {
	// readableLength returns how much of a text can be read, in any unit; 0 means all of the text.
	readableLength(text []byte) int
	// explainFault explains the first fault of an invalid text.
	explainFault(text []byte) *syntaxFault
	// isExhausted reports whether the budget for reading is used up. In this case faults are
	// neither located further nor repaired.
	isExhausted() bool
}

// repairedText is a text that is being repaired.
type repairedText struct {
	textSyntax
	text  []byte
	edits []lineEdit // edits applied to the original
}

// originalPosition converts a position of the repaired text to a position in the original.
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

// positionAt returns the original position as a textPosition.
func (m *repairedText) positionAt(line, column int) textPosition {
	line, column = m.originalPosition(line, column)
	return textPosition{line: line, column: column}
}

// withRepair returns the text after one repair.
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

// behindRunes returns the offset after a number of characters, but at most the end of the line.
func behindRunes(line []byte, count int) int {
	i := 0
	for ; count > 0 && i < len(line) && line[i] != '\n'; count-- {
		_, size := utf8.DecodeRune(line[i:])
		i += size
	}
	return i
}

// repairFault applies the repair that gets farthest: to a valid text, or else to the latest next
// fault. It returns false if no repair gets beyond the current fault.
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

// repairAll reports the faults of a text and repairs them until there are none. It returns false if
// a fault cannot be repaired.
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
