package flow

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"sort"
	"sync"
	"unicode/utf8"

	"github.com/troupe-engine/troupe/flow/expr"
)

// jsonText is a valid JSON text and where its lines begin.
type jsonText struct {
	text  []byte
	lines []int
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

func (t *jsonText) at(offset int) position { return position{text: t, offset: offset} }

func (t *jsonText) count(offset int) (line, column int) {
	offset = min(max(offset, 0), len(t.text))
	line = sort.SearchInts(t.lines, offset+1)
	return line, utf8.RuneCount(t.text[t.lines[line-1]:offset]) + 1
}

// readJSON checks a JSON text and stands at its root.
func readJSON(text []byte, r *reporter) value {
	text = slices.Clone(text)
	t := newJSONText(text)
	if i := invalidUTF8(text); i >= 0 {
		r.add(SeverityError, nil, t.at(i), "the text is not valid UTF-8")
		return nil
	}
	var root json.RawMessage
	if err := json.Unmarshal(text, &root); err != nil {
		var syntax *json.SyntaxError
		at := t.at(0)
		if errors.As(err, &syntax) {
			at = t.at(int(syntax.Offset) - 1)
		}
		r.add(SeverityError, nil, at, "invalid JSON: %s", err)
		return nil
	}
	start := bytes.IndexFunc(text, func(c rune) bool { return c > ' ' })
	return &jsonValue{in: t, start: start, end: start + len(bytes.TrimSpace(text))}
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
	once       sync.Once
	fields     []member
	list       []value
}

func (v *jsonValue) text() json.RawMessage { return v.in.text[v.start:v.end:v.end] }

func (v *jsonValue) kind() expr.Kind    { return expr.KindOf(v.text()) }
func (v *jsonValue) position() position { return v.in.at(v.start) }

func (v *jsonValue) raw() json.RawMessage { return expr.Compact(v.text()) }

func (v *jsonValue) members() []member {
	v.once.Do(v.open)
	return v.fields
}

func (v *jsonValue) elements() []value {
	v.once.Do(v.open)
	return v.list
}

// open reads one level. The text is known to be valid, so nothing here can fail.
func (v *jsonValue) open() {
	kind := v.kind()
	if kind != expr.KindObject && kind != expr.KindArray {
		return
	}
	dec := json.NewDecoder(bytes.NewReader(v.text()))
	_, _ = dec.Token()
	for dec.More() {
		m := member{}
		if kind == expr.KindObject {
			m = v.key(dec)
		}
		var part json.RawMessage
		if dec.Decode(&part) != nil {
			return
		}
		end := v.start + int(dec.InputOffset())
		m.value = &jsonValue{in: v.in, start: end - len(part), end: end}
		if kind == expr.KindObject {
			v.fields = append(v.fields, m)
		} else {
			v.list = append(v.list, m.value)
		}
	}
}

// key reads a key; its first quote is the next one behind what was read before.
func (v *jsonValue) key(dec *json.Decoder) member {
	start := v.start + int(dec.InputOffset())
	start += bytes.IndexByte(v.in.text[start:], '"')
	token, _ := dec.Token()
	key, _ := token.(string)
	return member{key: key, at: v.in.at(start)}
}
