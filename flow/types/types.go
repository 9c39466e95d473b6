package types

import (
	"encoding/json"
	"slices"

	"github.com/troupe-engine/troupe/flow/expr"
)

// Inputs are what a flow takes. They are immutable.
type Inputs struct {
	text json.RawMessage // the JSON Schema
	root *schemaNode
}

// Input is one of them, as people look at it.
type Input struct {
	Name        string          `json:"name"`
	Type        string          `json:"type"` // in the words of short forms, as far as they go
	Required    bool            `json:"required,omitempty"`
	Default     json.RawMessage `json:"default,omitempty"`
	Description string          `json:"description,omitempty"`
}

// String is the input as a short form has it.
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

// DefaultText is the default as a short form has it, "" when there is none.
func (i Input) DefaultText() string { return shortenText(bareText(i.Default)) }

// Named are inputs of which only the names are known, for whoever looks for more that is wrong
// where Read has found something: names that are declared are there, whatever they are. It is nil
// where even those are not known.
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

// Read makes inputs of what somebody has written: an object of forms by name, or one JSON Schema.
// The JSON is valid. Everything that is wrong is told with its place in that; inputs are nil if
// there is an error among the problems.
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

// Schema is what Read made of what was written: a JSON Schema, which Read takes as well.
func (in *Inputs) Schema() json.RawMessage {
	if in == nil {
		return nil
	}
	return in.text
}

// Size is about how many bytes of memory they take.
func (in *Inputs) Size() int {
	if in == nil {
		return 0
	}
	return 20 * len(in.text)
}

// Check compares what a task is to be started with to what was declared. Filled is that with
// defaults where something is left out; nothing at all is {}. The problems are all that does not
// fit. A nil Inputs takes anything.
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

// maxWritten bounds what filling in may write, in bytes.
const maxWritten = 64 << 20

// Fill is what Check fills in of a value that fits, and another one as it is.
func (in *Inputs) Fill(params json.RawMessage) json.RawMessage {
	filled, _ := in.Check(params)
	return filled
}

// Only leaves out the fields that are not declared, of what others see beside them.
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

// List are the inputs that are declared by name, in the order written.
func (in *Inputs) List() []Input {
	list := []Input{}
	if in == nil {
		return list
	}
	for _, name := range in.root.names {
		n := in.root.properties[name]
		list = append(list, Input{name, n.shortType(), n.defaultValue == nil && slices.Contains(in.root.required, name), n.defaultValue, n.description})
	}
	return list
}

// Text is the value that a person means who writes a text for an input: what is declared as text
// stays one, without quotes around it, and all else is JSON, or else a text.
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

// onlyText says that nothing but a text fits, and perhaps null.
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
