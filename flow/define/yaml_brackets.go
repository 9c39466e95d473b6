package define

import (
	"fmt"
	"strings"
)

// opened is a bracket of YAML's flow style, and what was seen inside so far.
type opened struct {
	mark         byte
	line, column int  // from 1
	colon        bool // there was one since the last comma
}

// brackets goes through lines in search of what is wrong inside brackets.
type brackets struct {
	open   []opened
	word   int  // column where the last word began
	last   int  // and of its last character
	before byte // the last character that is no space
	quote  byte // what ends the text in quotes, 0 outside of them

	missing *edit // the comma that is missing first
}

func (b *brackets) line(number int, text string) {
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
			b.character(byte(r), next, number, column)
		} else {
			b.before = 'x'
		}
	}
}

// character takes one in. Quotes and brackets mean something where a value begins, and closing ones inside brackets.
func (b *brackets) character(c, next byte, line, column int) {
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
		b.open = append(b.open, opened{mark: c, line: line, column: column})
	case len(b.open) == 0:
		if c == ':' && next != ' ' || c == '-' && next != ' ' {
			c = 'x'
		}
	default:
		b.inside(c, next, line, column)
	}
	b.before = c
}

func (b *brackets) inside(c, next byte, line, column int) {
	top := &b.open[len(b.open)-1]
	switch {
	case c == ']' || c == '}':
		b.open = b.open[:len(b.open)-1]
	case c == ',':
		top.colon = false
	case c == ':' && (next == ' ' || next == '{' || next == '['):
		if top.colon && b.missing == nil {
			b.missing = &edit{line, b.word, 0, ", "}
		}
		top.colon = true
	case c != ':':
		b.begun(column)
	}
}

// begun notes where a word begins: behind a space or a mark.
func (b *brackets) begun(column int) {
	if b.word == 0 || column > b.last+1 {
		b.word = column
	}
	b.last = column
}

// bracket is about what is inside brackets, or lacks one.
func (p *yamlPlace) bracket() *fault {
	b := &brackets{}
	for i, line := range p.lines {
		b.line(i+1, line)
	}
	for i, line := range p.after {
		if b.missing != nil || len(b.open) == 0 || p.leaves(b.open[0], line) {
			break
		}
		b.line(len(p.lines)+i+1, line)
	}
	switch {
	case b.missing != nil:
		m := *b.missing
		return &fault{line: m.line, column: m.column, msg: "a comma is missing before this entry", mends: []mend{{m}}}
	case len(b.open) > 0:
		return p.unclosed(b.open[len(b.open)-1])
	case strings.HasPrefix(p.problem, "did not find expected node content"):
		return p.here(p.column, fmt.Sprintf("a value is expected here, not %s", p.character()))
	}
	return p.here(p.column, "a comma is missing here, or the bracket that closes the list")
}

// leaves says whether a line is not inside a bracket any more, as far as its indentation tells.
func (p *yamlPlace) leaves(open opened, line string) bool {
	text := strings.TrimLeft(line, " \t")
	return text != "" && strings.IndexByte("]}", text[0]) < 0 && len(line)-len(text) <= len(indentation(p.lines[open.line-1]))
}

func (p *yamlPlace) unclosed(open opened) *fault {
	mark := map[byte]string{'[': "]", '{': "}"}[open.mark]
	line := p.lines[open.line-1]
	if i := strings.Index(line, " #"); i >= 0 {
		line = line[:i]
	}
	line = strings.TrimRight(line, " ,")
	end := len([]rune(line)) + 1
	return &fault{line: open.line, column: open.column, msg: fmt.Sprintf("the %c that begins here has no end: write %s", open.mark, mark),
		mends: []mend{{{open.line, end, 0, mark}}}}
}
