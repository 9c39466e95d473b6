package definition

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/troupe-engine/troupe/flow/expr"
)

// An expression is a text within the text of a definition, where it may be folded, indented or
// escaped. A character of the expression is located by counting the characters that are no space,
// because both texts contain these characters in the same order.

// yamlText is a parsed YAML text.
type yamlText struct {
	*repairedText
	written []byte // original text before repairs
	starts  []int  // offsets of its lines
}

func newYAMLText(m *repairedText, written []byte) *yamlText {
	t := &yamlText{repairedText: m, written: written, starts: []int{0}}
	for i, b := range written {
		if b == '\n' {
			t.starts = append(t.starts, i+1)
		}
	}
	return t
}

// textFrom returns the text from a position on.
func (t *yamlText) textFrom(p textPosition) []byte {
	if p.line < 1 || p.line > len(t.starts) {
		return nil
	}
	rest := t.written[t.starts[p.line-1]:]
	return rest[behindRunes(rest, p.column-1):]
}

func (v *yamlValue) characterAt(offset int) textPosition {
	if v.text == nil {
		return v.at
	}
	text := v.text.textFrom(v.at)
	start := behindProperties(text)
	switch {
	case v.style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		start += bytes.IndexByte(text[start:], '\n') + 1
	case v.style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0:
		start = min(start+1, len(text))
	}
	value, _ := expr.String(v.scalar)
	within := spotIn(text[start:], []rune(value), offset, v.style&yaml.DoubleQuotedStyle != 0, v.style&yaml.SingleQuotedStyle != 0)
	at := v.at
	for _, r := range string(text[:start+within]) {
		at.column++
		if r == '\n' {
			at.line, at.column = at.line+1, 1
		}
	}
	return at
}

// behindProperties returns the offset after the anchor and tag of a value.
func behindProperties(text []byte) int {
	i := 0
	for i < len(text) && (text[i] == '&' || text[i] == '!') {
		end := bytes.IndexAny(text[i:], " \n")
		if end < 0 {
			return i
		}
		i += end
		for i < len(text) && text[i] == ' ' {
			i++
		}
	}
	return i
}

func (v *jsonValue) characterAt(offset int) textPosition {
	text := v.rawText()
	if len(text) == 0 || text[0] != '"' {
		return v.position()
	}
	unquoted, _ := expr.String(text)
	return v.source.positionAt(v.start + 1 + spotIn(text[1:], []rune(unquoted), offset, true, false))
}

// spotIn returns the offset in the source of a character of the parsed value.
func spotIn(source []byte, value []rune, offset int, escapes, doubled bool) int {
	count := 0 // preceding characters that are no space
	for _, r := range value[:min(max(offset, 0), len(value))] {
		if !isSpace(r) {
			count++
		}
	}
	i, behind := 0, 0
	for i < len(source) {
		r, size := utf8.DecodeRune(source[i:])
		switch {
		case escapes && r == '\\' && i+1 < len(source):
			r, size = decodeEscape(source[i:])
		case doubled && r == '\'' && i+1 < len(source) && source[i+1] == '\'':
			size = 2
		}
		if !isSpace(r) {
			if count == 0 && offset < len(value) {
				return i
			}
			if count--; count < 0 {
				return behind
			}
			behind = i + size
		}
		i += size
	}
	return behind
}

// decodeEscape returns a character for an escape sequence, and the length of the sequence. The
// character is a space for a space character, otherwise an arbitrary letter.
func decodeEscape(source []byte) (r rune, size int) {
	switch c := source[1]; {
	case strings.IndexByte("ntr \t\n", c) >= 0:
		return ' ', 2
	case c == 'x':
		return 'x', min(4, len(source))
	case c == 'u':
		return 'u', min(6, len(source))
	case c == 'U':
		return 'U', min(10, len(source))
	}
	return 'x', 2
}

func isSpace(r rune) bool { return r == ' ' || r == '\t' || r == '\n' || r == '\r' }
