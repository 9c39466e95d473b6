package types

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/troupe-engine/troupe/flow/expr"
)

// Form is the declared type of one value. It is immutable. A nil Form accepts anything.
type Form struct {
	text json.RawMessage // the JSON Schema
	root *schemaNode
}

// ReadForm parses a declared type: a name such as int or list of text, [TYPE], or an object with
// the keys of long forms or JSON Schema. The form is nil for empty input, and if one of the
// problems is an error.
func ReadForm(raw json.RawMessage) (*Form, []Problem) {
	if len(raw) == 0 || expr.KindOf(raw) == expr.KindNull {
		return nil, nil
	}
	f := &formReader{origins: map[string][]string{}}
	of, optional := f.readForm(expr.Compact(raw), formPlace{})
	if len(f.problems) > 0 {
		return nil, f.problems[:min(len(f.problems), maxProblems)]
	}
	if optional { // null means no value
		of = jsonObject{{"anyOf", jsonArray([]json.RawMessage{of.toJSON(), jsonObject{{"type", quoteText("null")}}.toJSON()})}}
	}
	text := of.toJSON()
	root, problems := compileSchema(text)
	for i := range problems {
		problems[i].Path = f.writtenPath(problems[i].Path)
	}
	if slices.ContainsFunc(problems, func(p Problem) bool { return !p.Warning }) {
		return nil, problems
	}
	return &Form{text, root}, problems
}

// Size returns the approximate memory size in bytes.
func (f *Form) Size() int {
	if f == nil {
		return 0
	}
	return 20 * len(f.text)
}

// Check returns all problems of a value.
func (f *Form) Check(v json.RawMessage) Problems {
	k := newCheck()
	k.checkValue(f.root, v, nil, nil)
	if k.exhausted {
		return Problems{{Msg: "takes more work to check than the limit of 3,000,000 units: return less, or declare it more simply"}}
	}
	return k.problems
}

// Below returns the problems in one line. name replaces the beginning of their places, such as
// output.
func (p Problems) Below(name string) string {
	const most = 5
	var texts []string
	for _, problem := range p[:min(len(p), most)] {
		texts = append(texts, strings.Replace(problem.String(), "$params", name, 1))
	}
	if len(p) > most {
		texts = append(texts, "…")
	}
	return strings.Join(texts, "; ")
}

// Schema returns the JSON Schema of the form.
func (f *Form) Schema() json.RawMessage {
	if f == nil {
		return nil
	}
	return f.text
}
