package define

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// jsonSyntax is the syntax of JSON. Left is how many bytes it may still read for the sake of faults.
type jsonSyntax struct{ left int }

const jsonBudget = 16 << 20

func (j *jsonSyntax) tired() bool { return j.left < 0 }

// wrong is the offset of the first character that is no JSON, and what the parser says of it; "" = nothing.
func (j *jsonSyntax) wrong(text []byte) (offset int, problem string) {
	j.left -= len(text)
	var whole json.RawMessage
	err := json.Unmarshal(text, &whole)
	var syntax *json.SyntaxError
	switch {
	case err == nil:
		return 0, ""
	case !errors.As(err, &syntax):
		return 0, err.Error()
	case strings.HasPrefix(err.Error(), "unexpected end"):
		return len(bytes.TrimRight(text, " \t\r\n")), err.Error()
	}
	return max(int(syntax.Offset)-1, 0), err.Error()
}

// reach counts bytes.
func (j *jsonSyntax) reach(text []byte) int {
	offset, problem := j.wrong(text)
	if problem == "" {
		return 0
	}
	return offset + 1
}

// jsonPlace is where a text became wrong.
type jsonPlace struct {
	text   []byte
	offset int
}

func (j *jsonSyntax) fault(text []byte) *fault {
	offset, problem := j.wrong(text)
	p := jsonPlace{text, offset}
	f := p.explain(problem)
	f.msg = "invalid JSON: " + f.msg
	return f
}

// lineColumn counts up to an offset.
func (p jsonPlace) lineColumn(offset int) (line, column int) {
	before := p.text[:offset]
	return bytes.Count(before, []byte("\n")) + 1, utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:]) + 1
}

func (p jsonPlace) at(offset int, msg string) *fault {
	line, column := p.lineColumn(offset)
	return &fault{line: line, column: column, msg: msg}
}

// put is an edit at an offset.
func (p jsonPlace) put(offset, cut int, text string) edit {
	line, column := p.lineColumn(offset)
	return edit{line, column, cut, text}
}

func (p jsonPlace) explain(problem string) *fault {
	last := len(bytes.TrimRight(p.text[:p.offset], " \t\r\n")) - 1 // the character before
	switch {
	case p.offset >= len(p.text), strings.HasPrefix(problem, "unexpected end"):
		return p.ended()
	case last >= 0 && p.text[last] == ',' && (p.text[p.offset] == '}' || p.text[p.offset] == ']'):
		f := p.at(last, fmt.Sprintf("a comma before %c: leave it out", p.text[p.offset]))
		f.mends = []mend{{p.put(last, 1, "")}}
		return f
	case bytes.HasPrefix(p.text[p.offset:], []byte("//")), p.text[p.offset] == '#':
		return p.comment()
	case p.keyAlone(last, problem) > 0:
		return p.withoutValue(p.keyAlone(last, problem), last)
	case strings.Contains(problem, "beginning of object key"):
		return p.bare("keys are in double quotes")
	case strings.Contains(problem, "beginning of value"):
		return p.bare("texts are in double quotes")
	case strings.HasSuffix(problem, "after object key"):
		return p.lacking(last+1, ":", "a colon is missing behind the key")
	case strings.HasSuffix(problem, "after object key:value pair"), strings.HasSuffix(problem, "after array element"):
		if c := p.text[p.offset]; c == '}' || c == ']' {
			return p.at(p.offset, fmt.Sprintf("%c closes what another bracket has opened", c))
		}
		return p.lacking(last+1, ",", "a comma is missing behind this")
	case strings.HasSuffix(problem, "after top-level value"):
		return p.behindTheEnd()
	case strings.HasSuffix(problem, "in string literal") && p.text[p.offset] == '\n':
		return p.lacking(p.offset, `"`, `a text does not go on in the next line: close it with ", or write \n`)
	}
	return p.at(p.offset, problem)
}

func (p jsonPlace) lacking(offset int, what, msg string) *fault {
	f := p.at(offset, msg)
	f.mends = []mend{{p.put(offset, 0, what)}}
	return f
}

// comment is mended by leaving it out.
func (p jsonPlace) comment() *fault {
	line, _, _ := bytes.Cut(p.text[p.offset:], []byte("\n"))
	f := p.at(p.offset, `JSON has no comments: write the note under a key such as "x-note", or the definition in YAML`)
	f.mends = []mend{{p.put(p.offset, utf8.RuneCount(line), "")}}
	return f
}

// bare is about a word without quotes, or with single ones.
func (p jsonPlace) bare(msg string) *fault {
	rest := p.text[p.offset:]
	if rest[0] == '\'' {
		f := p.at(p.offset, msg+", not in single ones")
		if end := bytes.IndexAny(rest[1:], "'\"\n"); end >= 0 && rest[1+end] == '\'' {
			f.mends = []mend{{p.put(p.offset, 1, `"`), p.put(p.offset+1+end, 1, `"`)}}
		}
		return f
	}
	end := endOfWord(rest)
	if end == 0 {
		return p.nothing()
	}
	word := string(rest[:end])
	f := p.at(p.offset, fmt.Sprintf(`%s: write "%s"`, msg, shorten(word)))
	f.mends = []mend{{p.put(p.offset+end, 0, `"`), p.put(p.offset, 0, `"`)}}
	return f
}

// endOfWord is the length of a word without quotes that a text begins with.
func endOfWord(text []byte) int {
	end := bytes.IndexFunc(text, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' && r != '$' && r != '.'
	})
	if end < 0 {
		return len(text)
	}
	return end
}

// nothing is about a mark in the place of a key or value.
func (p jsonPlace) nothing() *fault {
	f := p.at(p.offset, fmt.Sprintf("a value or a key is expected here, not %q", firstRune(p.text[p.offset:])))
	switch p.text[p.offset] {
	case ',':
		f.mends = []mend{{p.blank(p.offset, p.offset+1)}, {p.put(p.offset, 0, "null")}}
	case '}', ']':
		f.mends = []mend{{p.put(p.offset, 0, "null")}}
	}
	return f
}

func firstRune(text []byte) string {
	_, size := utf8.DecodeRune(text)
	return string(text[:size])
}

// ended is about a text that ends within something, which is told where that begins.
func (p jsonPlace) ended() *fault {
	var open []int
	inText := -1
	for i := 0; i < p.offset; i++ {
		switch c := p.text[i]; {
		case inText >= 0 && c == '\\':
			i++
		case c == '"' && inText >= 0:
			inText = -1
		case inText >= 0:
		case c == '"':
			inText = i
		case c == '{' || c == '[':
			open = append(open, i)
		case (c == '}' || c == ']') && len(open) > 0:
			open = open[:len(open)-1]
		}
	}
	if inText >= 0 {
		return p.at(inText, `the text that begins here has no end: write " behind it`)
	}
	if len(open) == 0 {
		return p.at(p.offset, "the text ends too early")
	}
	f := p.at(open[len(open)-1], fmt.Sprintf("the %c that begins here has no end", p.text[open[len(open)-1]]))
	closing := ""
	for i := len(open) - 1; i >= 0; i-- {
		closing += map[byte]string{'{': "}", '[': "]"}[p.text[open[i]]]
	}
	f.mends = []mend{{p.put(p.offset, 0, closing)}}
	return f
}
