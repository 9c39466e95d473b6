package definition

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"
)

// keyAlone returns the end of a key without colon and value, quoted or not. It returns 0 for other
// faults. last is the offset of the last character before the fault.
func (p jsonPlace) keyAlone(last int, problem string) (end int) {
	switch {
	case strings.HasSuffix(problem, "after object key"):
		end = last + 1
	case strings.Contains(problem, "beginning of object key"), strings.HasSuffix(problem, "after object key:value pair"):
		if length := endOfWord(p.text[p.offset:]); length > 0 {
			end = p.offset + length
		}
	}
	if next := p.skipSpace(end); end == 0 || next == len(p.text) || p.text[next] != ',' && p.text[next] != '}' {
		return 0
	}
	return end
}

// skipSpace returns the offset of the next character that is not a space.
func (p jsonPlace) skipSpace(i int) int {
	return len(p.text) - len(bytes.TrimLeft(p.text[i:], " \t\r\n"))
}

// explainNoValue explains a key without a value. The repair removes the key with one adjacent
// comma.
func (p jsonPlace) explainNoValue(end, last int) *syntaxFault {
	from := p.offset
	if end == last+1 { // the key is quoted, and the fault is after it
		from = p.beginOfText(last)
		last = len(bytes.TrimRight(p.text[:from], " \t\r\n")) - 1
	}
	key := strings.Trim(string(p.text[from:end]), `"`)
	f := p.faultAt(from, fmt.Sprintf(`the key has no value: write "%s": …, or leave it out`, shortenName(key)))
	word := p.blankOut(from, end)
	switch next := p.skipSpace(end); {
	case p.text[next] == ',' && (p.text[last] == ',' || p.text[last] == '{'):
		f.repairs = []faultRepair{{p.blankOut(next, next+1), word}}
	case p.text[next] == '}' && p.text[last] == ',':
		f.repairs = []faultRepair{{word, p.blankOut(last, last+1)}}
	default:
		f.repairs = []faultRepair{{word}}
	}
	return f
}

// blankOut replaces characters by spaces, so that later characters keep their positions.
func (p jsonPlace) blankOut(from, to int) lineEdit {
	return p.editAt(from, utf8.RuneCount(p.text[from:to]), strings.Repeat(" ", to-from))
}

// beginOfText returns the start of a quoted text by the offset of its closing quote.
func (p jsonPlace) beginOfText(end int) int {
	for i := end - 1; i > 0; i-- {
		slashes := len(p.text[:i]) - len(bytes.TrimRight(p.text[:i], `\`))
		if p.text[i] == '"' && slashes%2 == 0 {
			return i
		}
	}
	return 0
}

// explainTrailing explains text after the whole value. The repair removes the text.
func (p jsonPlace) explainTrailing() *syntaxFault {
	f := p.faultAt(p.offset, "the definition has ended before this: leave it out, or see which bracket closes too early")
	var all faultRepair
	line, column := p.lineColumn(p.offset)
	for rest := range bytes.Lines(p.text[p.offset:]) {
		all = append(all, lineEdit{line, column, utf8.RuneCount(bytes.TrimRight(rest, "\n")), ""})
		line, column = line+1, 1
	}
	f.repairs = []faultRepair{all}
	return f
}
