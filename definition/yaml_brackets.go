package definition

import (
	"fmt"
	"strings"
)

// openBracket is an open bracket of YAML's flow style, with the state of its content.
type openBracket struct {
	mark         byte
	line, column int  // from 1
	colon        bool // a colon occurred since the last comma
}

// bracketScanner scans lines for errors inside brackets.
type bracketScanner struct {
	open   []openBracket
	word   int  // column where the last word began
	last   int  // column of the last character of the word
	before byte // last character that is no space
	quote  byte // closing quote of the current text, 0 outside quotes

	missing *lineEdit // first missing comma
}

func (b *bracketScanner) scanLine(number int, text string) {
	if len(b.open) == 0 {
		b.before = ':'
	}
	column := 0
	for i, r := range text {
		column++
		if r == '#' && b.quote == 0 && (i == 0 || text[i-1] == ' ') {
			return
		}
		next := byte(' ')
		if i+1 < len(text) {
			next = text[i+1]
		}
		if r < 0x80 {
			b.scanCharacter(byte(r), next, number, column)
		} else {
			b.before = 'x'
		}
	}
}

// scanCharacter processes one character. Quotes and opening brackets only count where a value may
// begin, closing ones only inside brackets.
func (b *bracketScanner) scanCharacter(c, next byte, line, column int) {
	begins := strings.IndexByte(":,[{-", b.before) >= 0
	switch {
	case b.quote != 0:
		if c == b.quote {
			b.quote = 0
		}
		b.before = c
		return
	case c == ' ':
		return
	case begins && (c == '"' || c == '\''):
		b.quote, b.word = c, column
	case begins && (c == '[' || c == '{'):
		b.open = append(b.open, openBracket{mark: c, line: line, column: column})
	case len(b.open) == 0:
		if c == ':' && next != ' ' || c == '-' && next != ' ' {
			c = 'x'
		}
	default:
		b.scanInside(c, next, line, column)
	}
	b.before = c
}

func (b *bracketScanner) scanInside(c, next byte, line, column int) {
	top := &b.open[len(b.open)-1]
	switch {
	case c == ']' || c == '}':
		b.open = b.open[:len(b.open)-1]
	case c == ',':
		top.colon = false
	case c == ':' && (next == ' ' || next == '{' || next == '['):
		if top.colon && b.missing == nil {
			b.missing = &lineEdit{line, b.word, 0, ", "}
		}
		top.colon = true
	case c != ':':
		b.noteWordStart(column)
	}
}

// noteWordStart records where a word begins: after a space or a mark.
func (b *bracketScanner) noteWordStart(column int) {
	if b.word == 0 || column > b.last+1 {
		b.word = column
	}
	b.last = column
}

// explainBracket explains an error inside brackets, or a missing bracket.
func (p *yamlPlace) explainBracket() *syntaxFault {
	b := &bracketScanner{}
	for i, line := range p.lines {
		b.scanLine(i+1, line)
	}
	for i, line := range p.after {
		if b.missing != nil || len(b.open) == 0 || p.isOutside(b.open[0], line) {
			break
		}
		b.scanLine(len(p.lines)+i+1, line)
	}
	switch {
	case b.missing != nil:
		m := *b.missing
		return &syntaxFault{line: m.line, column: m.column, msg: "a comma is missing before this entry", repairs: []faultRepair{{m}}}
	case len(b.open) > 0:
		return p.explainUnclosed(b.open[len(b.open)-1])
	case strings.HasPrefix(p.problem, "did not find expected node content"):
		return p.faultHere(p.column, fmt.Sprintf("a value is expected here, not %s", p.quotedCharacter()))
	}
	return p.faultHere(p.column, "a comma is missing here, or the bracket that closes the list")
}

// isOutside reports whether a line is outside a bracket, according to its indentation.
func (p *yamlPlace) isOutside(open openBracket, line string) bool {
	text := strings.TrimLeft(line, " \t")
	return text != "" && strings.IndexByte("]}", text[0]) < 0 && len(line)-len(text) <= len(leadingSpace(p.lines[open.line-1]))
}

func (p *yamlPlace) explainUnclosed(open openBracket) *syntaxFault {
	mark := map[byte]string{'[': "]", '{': "}"}[open.mark]
	line := p.lines[open.line-1]
	if i := strings.Index(line, " #"); i >= 0 {
		line = line[:i]
	}
	line = strings.TrimRight(line, " ,")
	end := len([]rune(line)) + 1
	return &syntaxFault{line: open.line, column: open.column,
		msg:     fmt.Sprintf("the %c that begins here has no end: write %s", open.mark, mark),
		repairs: []faultRepair{{{open.line, end, 0, mark}}}}
}
