package types

import (
	"bytes"
	"encoding/json"

	"github.com/troupe-engine/troupe/flow/expr"
)

// filler fills in defaults for missing values. A value that lacks nothing stays byte for byte the
// same.
type filler struct {
	left  int // number of bytes that may still be written; negative after that
	steps int // units of work so far
}

// maxFilled is the maximum depth at which defaults are filled in.
const maxFilled = 100

// defaultParts returns the schemas whose defaults apply to a value or to its parts.
func (n *schemaNode) defaultParts() []*schemaNode {
	list := append([]*schemaNode{}, n.all...)
	if n.ref != nil {
		list = append(list, n.ref)
	}
	for _, name := range n.names {
		list = append(list, n.properties[name])
	}
	if n.items != nil {
		list = append(list, n.items)
	}
	return append(list, n.prefix...)
}

func (f *filler) fillValue(n *schemaNode, v json.RawMessage, depth int) json.RawMessage {
	if !n.hasDefaults || f.left < 0 {
		return v
	}
	if f.steps += 1 + len(v)/32; depth > maxFilled || f.steps > Budget {
		f.left = -1
		return v
	}
	switch expr.KindOf(v) {
	case expr.KindObject:
		v = f.fillObject(n, v, depth)
	case expr.KindArray:
		v = f.fillList(n, v, depth)
	}
	if n.ref != nil {
		v = f.fillValue(n.ref, v, depth+1)
	}
	for _, other := range n.all {
		v = f.fillValue(other, v, depth+1)
	}
	return v
}

func (f *filler) fillObject(n *schemaNode, v json.RawMessage, depth int) json.RawMessage {
	changed := jsonObject{}
	for _, name := range n.names {
		of := n.properties[name]
		if of.defaultValue == nil && !of.hasDefaults {
			continue
		}
		is, there := expr.Field(v, name)
		switch {
		case there:
			if full := f.fillValue(of, is, depth+1); !bytes.Equal(full, is) {
				changed = append(changed, objectMember{name, full})
			}
		case of.defaultValue != nil:
			changed = append(changed, objectMember{name, f.fillValue(of, of.defaultValue, depth+1)})
		}
	}
	return f.mergeFields(v, changed)
}

// mergeFields returns an object with some fields replaced or added.
func (f *filler) mergeFields(v json.RawMessage, changed jsonObject) json.RawMessage {
	if len(changed) == 0 {
		return v
	}
	over := changed.toJSON()
	if f.left -= len(over); f.left < 0 {
		return v
	}
	return expr.Merge(v, over)
}

func (f *filler) fillList(n *schemaNode, v json.RawMessage, depth int) json.RawMessage {
	if (n.items == nil || !n.items.hasDefaults) && len(n.prefix) == 0 {
		return v
	}
	elements, _ := expr.Elements(v)
	changed := false
	for i, e := range elements {
		of := n.items
		if i < len(n.prefix) {
			of = n.prefix[i]
		}
		if of == nil {
			break
		}
		full := f.fillValue(of, e, depth+1)
		changed = changed || !bytes.Equal(full, e)
		elements[i] = full
	}
	if !changed {
		return v
	}
	all := jsonArray(elements)
	if f.left -= len(all); f.left < 0 {
		return v
	}
	return all
}
