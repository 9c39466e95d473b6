package types

import (
	"encoding/json"
	"slices"

	"github.com/troupe-engine/troupe/flow/expr"
)

// Inputs are the declared inputs of a flow. They are immutable.
type Inputs struct {
	text json.RawMessage // the JSON Schema
	root *schemaNode
}

// Input is a declared input, for display.
type Input struct {
	Name        string          `json:"name"`
	Type        string          `json:"type"` // in the notation of short forms, if possible
	Required    bool            `json:"required,omitempty"`
	Default     json.RawMessage `json:"default,omitempty"`
	Description string          `json:"description,omitempty"`
}

// String returns the input as a short form.
func (i Input) String() string {
	text := i.Name + ": "
	if !i.Required && i.Default == nil {
		text += "optional "
	}
	text += i.Type
	if i.Default != nil {
		text += " = " + i.DefaultText()
	}
	if i.Description != "" {
		text += " (" + i.Description + ")"
	}
	return text
}

// DefaultText returns the default in the notation of short forms.
func (i Input) DefaultText() string { return shortenText(bareText(i.Default)) }

// Named returns inputs that accept any type for the declared names. It serves further checks after
// Read has found problems. It returns nil if even the names are unknown.
func Named(raw json.RawMessage) *Inputs {
	if isSchema(raw) {
		raw, _ = expr.Field(raw, "properties")
	}
	members, ok := expr.Members(raw)
	if !ok {
		return nil
	}
	root := &schemaNode{types: isObject, properties: map[string]*schemaNode{}, additional: &schemaNode{never: true}}
	for _, m := range members {
		root.names = append(root.names, m.Key)
		root.properties[m.Key] = &schemaNode{}
	}
	return &Inputs{root: root}
}

// Read parses declared inputs: an object that maps names to forms, or one JSON Schema. raw must be
// valid JSON. All problems are returned with their places. The inputs are nil if one of the
// problems is an error.
func Read(raw json.RawMessage) (*Inputs, []Problem) {
	if kind := expr.KindOf(raw); kind != expr.KindObject {
		return nil, []Problem{{Msg: "must be an object such as {amount: int}, is " + kind.String()}}
	}
	f := &formReader{origins: map[string][]string{}}
	text := expr.Compact(raw)
	if isSchema(raw) {
		text = f.readSchema(text)
	} else {
		text = f.readFields(text, func(name string) formPlace { return formPlace{}.renamedPlace(name, "properties", name) }).toJSON()
	}
	root, found := compileSchema(text)
	problems := f.mergeProblems(found)
	if slices.ContainsFunc(problems, func(p Problem) bool { return !p.Warning }) {
		return nil, problems
	}
	return &Inputs{text, root}, problems
}

// Schema returns the JSON Schema of the inputs. Read accepts it, too.
func (in *Inputs) Schema() json.RawMessage {
	if in == nil {
		return nil
	}
	return in.text
}

// Size returns the approximate memory size in bytes.
func (in *Inputs) Size() int {
	if in == nil {
		return 0
	}
	return 20 * len(in.text)
}

// Check compares the params of a task with the declared inputs. Missing params count as {}. filled
// is the params with defaults filled in, and problems lists all problems. A nil Inputs accepts
// anything.
func (in *Inputs) Check(params json.RawMessage) (filled json.RawMessage, problems Problems) {
	if in == nil {
		return params, nil
	}
	if expr.KindOf(params) == expr.KindNull {
		params = json.RawMessage("{}")
	}
	f := filler{left: maxWritten}
	filled = f.fillValue(in.root, params, 0)
	if f.left < 0 {
		return params, Problems{{Msg: "takes too much to fill in: send it whole, or declare fewer defaults"}}
	}
	k := newCheck()
	k.checkValue(in.root, filled, nil, nil)
	if k.exhausted {
		return params, Problems{{Msg: "takes more work to check than the limit of 3,000,000 units: send less, or declare it more simply"}}
	}
	return filled, k.problems
}

// maxWritten is the maximum number of bytes that filling in defaults may write.
const maxWritten = 64 << 20

// Fill returns params with the defaults filled in. Params that do not fit are returned unchanged.
func (in *Inputs) Fill(params json.RawMessage) json.RawMessage {
	filled, _ := in.Check(params)
	return filled
}

// Only returns params without undeclared fields. It is for values that other readers see, too.
func (in *Inputs) Only(params json.RawMessage) json.RawMessage {
	if in == nil || in.root.isOpen() {
		return params
	}
	fields, ok := expr.Members(params)
	if !ok {
		return params
	}
	kept := jsonObject{}
	for _, f := range fields {
		if found, _, _ := fieldSchemas([]*schemaNode{in.root}, f.Key); len(found) > 0 {
			kept = kept.withMember(f.Key, f.Value)
		}
	}
	if len(kept) == len(fields) {
		return params
	}
	return kept.toJSON()
}

// List returns the inputs that are declared by name, in written order.
func (in *Inputs) List() []Input {
	list := []Input{}
	if in == nil {
		return list
	}
	for _, name := range in.root.names {
		n := in.root.properties[name]
		list = append(list, Input{name, n.shortType(), n.defaultValue == nil &&
			slices.Contains(in.root.required, name), n.defaultValue, n.description})
	}
	return list
}

// Text converts a text that a person entered for an input to a value. For an input of type text,
// the value is the text, without quotes around it. For other inputs the text is parsed as JSON; if
// that fails, the value is the text.
func (in *Inputs) Text(name, text string) json.RawMessage {
	raw := json.RawMessage(text)
	if in != nil {
		if n := in.root.properties[name]; n != nil && n.onlyText(0) {
			return literalText(text)
		}
	}
	if expr.Valid(raw) {
		return raw
	}
	return expr.Quote(text)
}

// onlyText reports whether only texts fit, and perhaps null.
func (n *schemaNode) onlyText(depth int) bool {
	switch {
	case n.types != 0:
		return n.types&^isNull == isText
	case n.choices != nil:
		return !slices.ContainsFunc(n.choices, func(v json.RawMessage) bool { return expr.KindOf(v) != expr.KindString })
	case n.ref != nil && depth < 10:
		return n.ref.onlyText(depth + 1)
	}
	return false
}
