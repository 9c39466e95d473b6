package definition

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// jsonSyntax is the syntax of JSON. left is the number of bytes that it may still read to locate
// faults.
type jsonSyntax struct{ left int }

const jsonBudget = 16 << 20

func (j *jsonSyntax) isExhausted() bool { return j.left < 0 }

// firstError returns the offset of the first invalid character and the error of the parser. The
// error is "" if the text is valid.
func (j *jsonSyntax) firstError(text []byte) (offset int, problem string) {
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

// readableLength returns a number of bytes.
func (j *jsonSyntax) readableLength(text []byte) int {
	offset, problem := j.firstError(text)
	if problem == "" {
		return 0
	}
	return offset + 1
}

// jsonPlace is the place of an error in a text.
type jsonPlace struct {
	text   []byte
	offset int
}

func (j *jsonSyntax) explainFault(text []byte) *syntaxFault {
	offset, problem := j.firstError(text)
	p := jsonPlace{text, offset}
	f := p.explainError(problem)
	f.msg = "invalid JSON: " + f.msg
	return f
}

// lineColumn returns the line and column of an offset.
func (p jsonPlace) lineColumn(offset int) (line, column int) {
	before := p.text[:offset]
	return bytes.Count(before, []byte("\n")) + 1, utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:]) + 1
}

func (p jsonPlace) faultAt(offset int, msg string) *syntaxFault {
	line, column := p.lineColumn(offset)
	return &syntaxFault{line: line, column: column, msg: msg}
}

// editAt returns an edit at an offset.
func (p jsonPlace) editAt(offset, cut int, text string) lineEdit {
	line, column := p.lineColumn(offset)
	return lineEdit{line, column, cut, text}
}

func (p jsonPlace) explainError(problem string) *syntaxFault {
	last := len(bytes.TrimRight(p.text[:p.offset], " \t\r\n")) - 1 // the previous character
	switch {
	case p.offset >= len(p.text), strings.HasPrefix(problem, "unexpected end"):
		return p.explainUnclosed()
	case last >= 0 && p.text[last] == ',' && (p.text[p.offset] == '}' || p.text[p.offset] == ']'):
		f := p.faultAt(last, fmt.Sprintf("a comma before %c: leave it out", p.text[p.offset]))
		f.repairs = []faultRepair{{p.editAt(last, 1, "")}}
		return f
	case bytes.HasPrefix(p.text[p.offset:], []byte("//")), p.text[p.offset] == '#':
		return p.explainComment()
	case p.keyAlone(last, problem) > 0:
		return p.explainNoValue(p.keyAlone(last, problem), last)
	case strings.Contains(problem, "beginning of object key"):
		return p.explainUnquoted("keys are in double quotes")
	case strings.Contains(problem, "beginning of value"):
		return p.explainUnquoted("texts are in double quotes")
	case strings.HasSuffix(problem, "after object key"):
		return p.missingAt(last+1, ":", "a colon is missing behind the key")
	case strings.HasSuffix(problem, "after object key:value pair"), strings.HasSuffix(problem, "after array element"):
		if c := p.text[p.offset]; c == '}' || c == ']' {
			return p.faultAt(p.offset, fmt.Sprintf("%c closes what another bracket has opened", c))
		}
		return p.missingAt(last+1, ",", "a comma is missing behind this")
	case strings.HasSuffix(problem, "after top-level value"):
		return p.explainTrailing()
	case strings.HasSuffix(problem, "in string literal") && p.text[p.offset] == '\n':
		return p.missingAt(p.offset, `"`, `a text does not go on in the next line: close it with ", or write \n`)
	}
	return p.faultAt(p.offset, problem)
}

func (p jsonPlace) missingAt(offset int, what, msg string) *syntaxFault {
	f := p.faultAt(offset, msg)
	f.repairs = []faultRepair{{p.editAt(offset, 0, what)}}
	return f
}

// explainComment repairs a comment by removing it.
func (p jsonPlace) explainComment() *syntaxFault {
	line, _, _ := bytes.Cut(p.text[p.offset:], []byte("\n"))
	f := p.faultAt(p.offset, `JSON has no comments: write the note under a key such as "x-note", or the definition in YAML`)
	f.repairs = []faultRepair{{p.editAt(p.offset, utf8.RuneCount(line), "")}}
	return f
}

// explainUnquoted explains a word without quotes or with single quotes.
func (p jsonPlace) explainUnquoted(msg string) *syntaxFault {
	rest := p.text[p.offset:]
	if rest[0] == '\'' {
		f := p.faultAt(p.offset, msg+", not in single ones")
		if end := bytes.IndexAny(rest[1:], "'\"\n"); end >= 0 && rest[1+end] == '\'' {
			f.repairs = []faultRepair{{p.editAt(p.offset, 1, `"`), p.editAt(p.offset+1+end, 1, `"`)}}
		}
		return f
	}
	end := endOfWord(rest)
	if end == 0 {
		return p.explainUnexpected()
	}
	word := string(rest[:end])
	f := p.faultAt(p.offset, fmt.Sprintf(`%s: write "%s"`, msg, shortenName(word)))
	f.repairs = []faultRepair{{p.editAt(p.offset+end, 0, `"`), p.editAt(p.offset, 0, `"`)}}
	return f
}

// endOfWord returns the length of the unquoted word at the start of a text.
func endOfWord(text []byte) int {
	end := bytes.IndexFunc(text, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' && r != '$' && r != '.'
	})
	if end < 0 {
		return len(text)
	}
	return end
}

// explainUnexpected explains a punctuation mark in place of a key or value.
func (p jsonPlace) explainUnexpected() *syntaxFault {
	f := p.faultAt(p.offset, fmt.Sprintf("a value or a key is expected here, not %q", firstRune(p.text[p.offset:])))
	switch p.text[p.offset] {
	case ',':
		f.repairs = []faultRepair{{p.blankOut(p.offset, p.offset+1)}, {p.editAt(p.offset, 0, "null")}}
	case '}', ']':
		f.repairs = []faultRepair{{p.editAt(p.offset, 0, "null")}}
	}
	return f
}

func firstRune(text []byte) string {
	_, size := utf8.DecodeRune(text)
	return string(text[:size])
}

// explainUnclosed explains a text that ends inside a string, object or array. It reports the start
// of the string, object or array.
func (p jsonPlace) explainUnclosed() *syntaxFault {
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
		return p.faultAt(inText, `the text that begins here has no end: write " behind it`)
	}
	if len(open) == 0 {
		return p.faultAt(p.offset, "the text ends too early")
	}
	f := p.faultAt(open[len(open)-1], fmt.Sprintf("the %c that begins here has no end", p.text[open[len(open)-1]]))
	closing := ""
	for i := len(open) - 1; i >= 0; i-- {
		closing += map[byte]string{'{': "}", '[': "]"}[p.text[open[i]]]
	}
	f.repairs = []faultRepair{{p.editAt(p.offset, 0, closing)}}
	return f
}
