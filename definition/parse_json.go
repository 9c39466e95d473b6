package definition

import (
	"bytes"
	"encoding/json"
	"slices"
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/troupe-engine/troupe/flow/expr"
)

// jsonText is a valid JSON text. It contains the starts of its lines and the ends of its arrays and
// objects, so one level can be read without its contents.
type jsonText struct {
	text        []byte
	lines       []int
	open, close []int // offsets of opening brackets in order, and offsets after their partners
	// caching makes values remember their parts. It ends when the definition has been read, so that
	// later concurrent readers change nothing.
	caching bool

	mended *repairedText // repairs that made the text valid, or nil
}

func newJSONText(text []byte) *jsonText {
	t := &jsonText{text: text, lines: []int{0}}
	for i, b := range text {
		if b == '\n' {
			t.lines = append(t.lines, i+1)
		}
	}
	return t
}

// matchBrackets finds the partners of all brackets. The text must be valid.
func (t *jsonText) matchBrackets() {
	var inside []int // indexes of open brackets
	for i := 0; i < len(t.text); {
		switch t.text[i] {
		case '"':
			i = t.stringEnd(i)
			continue
		case '{', '[':
			inside = append(inside, len(t.open))
			t.open, t.close = append(t.open, i), append(t.close, 0)
		case '}', ']':
			t.close[inside[len(inside)-1]] = i + 1
			inside = inside[:len(inside)-1]
		}
		i++
	}
}

func (t *jsonText) stringEnd(i int) int {
	for i++; t.text[i] != '"'; i++ {
		if t.text[i] == '\\' {
			i++
		}
	}
	return i + 1
}

// valueEnd returns the offset after the value that begins at i.
func (t *jsonText) valueEnd(i int) int {
	switch t.text[i] {
	case '"':
		return t.stringEnd(i)
	case '{', '[':
		return t.close[sort.SearchInts(t.open, i)]
	}
	for i < len(t.text) && !strings.ContainsRune(" \t\r\n,]}", rune(t.text[i])) {
		i++
	}
	return i
}

// skipSpace returns the first offset from i on that is neither a space nor one of the marks.
func (t *jsonText) skipSpace(i int, marks string) int {
	for i < len(t.text) && strings.IndexByte(" \t\r\n"+marks, t.text[i]) >= 0 {
		i++
	}
	return i
}

func (t *jsonText) positionAt(offset int) textPosition { return textPosition{text: t, offset: offset} }

func (t *jsonText) lineColumn(offset int) (line, column int) {
	offset = min(max(offset, 0), len(t.text))
	line = sort.SearchInts(t.lines, offset+1)
	column = utf8.RuneCount(t.text[t.lines[line-1]:offset]) + 1
	if t.mended != nil {
		return t.mended.originalPosition(line, column)
	}
	return line, column
}

// readJSON checks a JSON text and returns its root.
func readJSON(text []byte, r *Reporter) textValue {
	t, ok := checkJSON(text, r)
	if !ok {
		return nil
	}
	if !json.Valid(t.text) {
		f := (&jsonSyntax{}).explainFault(t.text)
		r.addSyntaxError(textPosition{line: f.line, column: f.column}, f.msg)
		return nil
	}
	return t.rootValue()
}

// mendJSON is readJSON, but repairs syntax errors and continues.
func mendJSON(text []byte, r *Reporter) textValue {
	t, ok := checkJSON(text, r)
	switch {
	case !ok:
		return nil
	case json.Valid(t.text):
		return t.rootValue()
	case looksLikeFlowStyle(t.text):
		offset, _ := (&jsonSyntax{}).firstError(t.text)
		r.addSyntaxError(t.positionAt(offset),
			`invalid JSON: a text that begins with { is read as JSON: put keys and texts into `+
				`double quotes, or put a line "---" before YAML`)
		return readYAML(text, r)
	}
	m := &repairedText{textSyntax: &jsonSyntax{left: jsonBudget}, text: t.text}
	if !m.repairAll(r) {
		return nil
	}
	t = newJSONText(m.text)
	t.mended = m
	return t.rootValue()
}

func checkJSON(text []byte, r *Reporter) (t *jsonText, ok bool) {
	if rejectUTF16(text, r) {
		return nil, false
	}
	t = newJSONText(slices.Clone(text))
	if i := invalidUTF8(text); i >= 0 {
		r.addProblem(SeverityError, nil, t.positionAt(i), "the text is not valid UTF-8")
		return nil, false
	}
	return t, true
}

// rootValue returns the root of a valid text.
func (t *jsonText) rootValue() textValue {
	t.matchBrackets()
	t.caching = true
	start := t.skipSpace(0, "")
	return &jsonValue{source: t, start: start, end: t.valueEnd(start)}
}

// looksLikeFlowStyle reports whether a text that begins with { is YAML: its first key is not
// quoted.
func looksLikeFlowStyle(text []byte) bool {
	inside, begins := bytes.CutPrefix(bytes.TrimLeft(text, " \t\r\n"), []byte{'{'})
	inside = bytes.TrimLeft(inside, " \t\r\n")
	if !begins || len(inside) == 0 || inside[0] != '_' && !unicode.IsLetter(rune(inside[0])) || len(text) > yamlBudget/8 {
		return false
	}
	_, _, err := decodeYAML(text)
	return err == nil
}

func invalidUTF8(text []byte) int {
	if utf8.Valid(text) {
		return -1
	}
	for i := 0; ; {
		c, size := utf8.DecodeRune(text[i:])
		if c == utf8.RuneError && size <= 1 {
			return i
		}
		i += size
	}
}

// jsonValue is a part of a JSON text. Its parts are read on demand, so values that are only passed
// on, such as params, cost nothing.
type jsonValue struct {
	source     *jsonText
	start, end int
	opened     bool
	fields     []objectMember
	list       []textValue
}

func (v *jsonValue) rawText() json.RawMessage { return v.source.text[v.start:v.end:v.end] }

func (v *jsonValue) kind() expr.Kind          { return expr.KindOf(v.rawText()) }
func (v *jsonValue) position() textPosition   { return v.source.positionAt(v.start) }
func (v *jsonValue) rawJSON() json.RawMessage { return expr.Compact(v.rawText()) }

func (v *jsonValue) members() []objectMember {
	if v.opened || v.kind() != expr.KindObject {
		return v.fields
	}
	var fields []objectMember
	t := v.source
	for i := t.skipSpace(v.start+1, ""); t.text[i] != '}'; i = t.skipSpace(i, ",") {
		m := objectMember{at: t.positionAt(i)}
		end := t.stringEnd(i)
		m.key, _ = expr.String(t.text[i:end])
		i = t.skipSpace(end, ":")
		end = t.valueEnd(i)
		m.value = &jsonValue{source: t, start: i, end: end}
		fields, i = append(fields, m), end
	}
	if t.caching {
		v.opened, v.fields = true, fields
	}
	return fields
}

func (v *jsonValue) elements() []textValue {
	if v.opened || v.kind() != expr.KindArray {
		return v.list
	}
	var list []textValue
	t := v.source
	for i := t.skipSpace(v.start+1, ""); t.text[i] != ']'; i = t.skipSpace(i, ",") {
		end := t.valueEnd(i)
		list, i = append(list, &jsonValue{source: t, start: i, end: end}), end
	}
	if t.caching {
		v.opened, v.list = true, list
	}
	return list
}
