package define

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

// jsonText is a valid JSON text. It knows where its lines begin and where its arrays and objects
// end, so that each level of it can be read without what is inside.
type jsonText struct {
	text        []byte
	lines       []int
	open, close []int // offsets of brackets in the order of the opening ones, and behind their partners
	// keep says that values remember what they have read. It ends with the reading of the definition,
	// so that afterwards nothing changes and anybody may look.
	keep bool

	mended *mending // what was changed so that it is valid, or nil
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

// match finds the partners of all brackets. The text is valid.
func (t *jsonText) match() {
	var inside []int // indices of those not closed yet
	for i := 0; i < len(t.text); {
		switch t.text[i] {
		case '"':
			i = t.behindString(i)
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

func (t *jsonText) behindString(i int) int {
	for i++; t.text[i] != '"'; i++ {
		if t.text[i] == '\\' {
			i++
		}
	}
	return i + 1
}

// behind is the offset behind the value that begins at i.
func (t *jsonText) behind(i int) int {
	switch t.text[i] {
	case '"':
		return t.behindString(i)
	case '{', '[':
		return t.close[sort.SearchInts(t.open, i)]
	}
	for i < len(t.text) && !strings.ContainsRune(" \t\r\n,]}", rune(t.text[i])) {
		i++
	}
	return i
}

// skip is the offset of the first byte from i on that is neither space nor one of the marks.
func (t *jsonText) skip(i int, marks string) int {
	for i < len(t.text) && strings.IndexByte(" \t\r\n"+marks, t.text[i]) >= 0 {
		i++
	}
	return i
}

func (t *jsonText) at(offset int) position { return position{text: t, offset: offset} }

func (t *jsonText) count(offset int) (line, column int) {
	offset = min(max(offset, 0), len(t.text))
	line = sort.SearchInts(t.lines, offset+1)
	column = utf8.RuneCount(t.text[t.lines[line-1]:offset]) + 1
	if t.mended != nil {
		return t.mended.original(line, column)
	}
	return line, column
}

// readJSON checks a JSON text and stands at its root.
func readJSON(text []byte, r *Reporter) value {
	t, ok := checkJSON(text, r)
	if !ok {
		return nil
	}
	if !json.Valid(t.text) {
		f := (&jsonSyntax{}).fault(t.text)
		r.syntax(position{line: f.line, column: f.column}, f.msg)
		return nil
	}
	return t.root()
}

// mendJSON is readJSON that goes on behind mistakes in the syntax.
func mendJSON(text []byte, r *Reporter) value {
	t, ok := checkJSON(text, r)
	switch {
	case !ok:
		return nil
	case json.Valid(t.text):
		return t.root()
	case looksLikeFlowStyle(t.text):
		offset, _ := (&jsonSyntax{}).wrong(t.text)
		r.syntax(t.at(offset), `invalid JSON: a text that begins with { is read as JSON: put keys and texts into double quotes, or put a line "---" before YAML`)
		return readYAML(text, r)
	}
	m := &mending{syntax: &jsonSyntax{left: jsonBudget}, text: t.text}
	if !m.read(r) {
		return nil
	}
	t = newJSONText(m.text)
	t.mended = m
	return t.root()
}

func checkJSON(text []byte, r *Reporter) (t *jsonText, ok bool) {
	t = newJSONText(slices.Clone(text))
	if i := invalidUTF8(text); i >= 0 {
		r.add(SeverityError, nil, t.at(i), "the text is not valid UTF-8")
		return nil, false
	}
	return t, true
}

// root is the whole of a text that is valid.
func (t *jsonText) root() value {
	t.match()
	t.keep = true
	start := t.skip(0, "")
	return &jsonValue{in: t, start: start, end: t.behind(start)}
}

// looksLikeFlowStyle says whether a text that begins with { is YAML: its first key has no quotes.
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

// jsonValue is a part of a JSON text. It is opened when somebody looks inside, so that what is
// only passed on, such as params, costs nothing.
type jsonValue struct {
	in         *jsonText
	start, end int
	opened     bool
	fields     []member
	list       []value
}

func (v *jsonValue) text() json.RawMessage { return v.in.text[v.start:v.end:v.end] }

func (v *jsonValue) kind() expr.Kind      { return expr.KindOf(v.text()) }
func (v *jsonValue) position() position   { return v.in.at(v.start) }
func (v *jsonValue) raw() json.RawMessage { return expr.Compact(v.text()) }

func (v *jsonValue) members() []member {
	if v.opened || v.kind() != expr.KindObject {
		return v.fields
	}
	var fields []member
	t := v.in
	for i := t.skip(v.start+1, ""); t.text[i] != '}'; i = t.skip(i, ",") {
		m := member{at: t.at(i)}
		end := t.behindString(i)
		m.key, _ = expr.String(t.text[i:end])
		i = t.skip(end, ":")
		end = t.behind(i)
		m.value = &jsonValue{in: t, start: i, end: end}
		fields, i = append(fields, m), end
	}
	if t.keep {
		v.opened, v.fields = true, fields
	}
	return fields
}

func (v *jsonValue) elements() []value {
	if v.opened || v.kind() != expr.KindArray {
		return v.list
	}
	var list []value
	t := v.in
	for i := t.skip(v.start+1, ""); t.text[i] != ']'; i = t.skip(i, ",") {
		end := t.behind(i)
		list, i = append(list, &jsonValue{in: t, start: i, end: end}), end
	}
	if t.keep {
		v.opened, v.list = true, list
	}
	return list
}
