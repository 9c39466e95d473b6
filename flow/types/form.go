package types

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/troupe-engine/troupe/flow/expr"
)

// formReader converts forms to a schema. It records the origin of each part, so that problems of
// the schema are reported at their place in the user's text.
type formReader struct {
	problems []Problem
	// origins maps places in the schema to their origins in the text.
	origins map[string][]string
}

// formPlace is a place in the schema, and its origin in the text.
type formPlace struct{ schema, written []string }

func (p formPlace) keyPlace(key string) formPlace {
	return formPlace{childPath(p.schema, key), childPath(p.written, key)}
}

// renamedPlace returns the place of a key that has another name in the schema.
func (p formPlace) renamedPlace(written string, schema ...string) formPlace {
	at := p.schema
	for _, key := range schema {
		at = childPath(at, key)
	}
	return formPlace{at, childPath(p.written, written)}
}

func (f *formReader) addProblem(at formPlace, format string, args ...any) {
	f.problems = append(f.problems, Problem{Path: at.written, Msg: fmt.Sprintf(format, args...)})
}

func (f *formReader) recordOrigin(at formPlace) {
	f.origins[strings.Join(at.schema, "\x00")] = at.written
}

// writtenPath returns the origin of a part of the schema.
func (f *formReader) writtenPath(path []string) []string {
	for i := len(path); i > 0; i-- {
		if written, ok := f.origins[strings.Join(path[:i], "\x00")]; ok {
			return append(written[:len(written):len(written)], path[i:]...)
		}
	}
	return path
}

// mergeProblems returns the problems of the forms and of the resulting schema, at their origins. If
// a form itself is wrong, further problems of that part are omitted.
func (f *formReader) mergeProblems(schema []Problem) []Problem {
	all := f.problems
	for _, p := range schema {
		p.Path = f.writtenPath(p.Path)
		if !slices.ContainsFunc(f.problems, func(told Problem) bool { return len(told.Path) > 0 && isWithin(p.Path, told.Path) }) {
			all = append(all, p)
		}
	}
	return all[:min(len(all), maxProblems)]
}

// isWithin reports whether a place is equal to another place or inside it.
func isWithin(path, of []string) bool {
	return len(path) >= len(of) && slices.Equal(path[:len(of)], of)
}

// isSchema reports whether the inputs are written as one JSON Schema, and not input by input.
func isSchema(raw json.RawMessage) bool {
	if _, says := expr.Field(raw, "$schema"); says {
		return true
	}
	of, _ := expr.Field(raw, "type")
	kind, _ := expr.String(of)
	properties, _ := expr.Field(raw, "properties")
	return kind == "object" && expr.KindOf(properties) == expr.KindObject
}

// readSchema returns inputs that were written as one schema. Undeclared fields are rejected, unless
// the schema allows them.
func (f *formReader) readSchema(raw json.RawMessage) json.RawMessage {
	of, _ := expr.Field(raw, "type")
	if kind, _ := expr.String(of); kind != "object" {
		f.addProblem(formPlace{}, "must say type: object, because what a task is started with is one")
	}
	for _, key := range []string{"additionalProperties", "unevaluatedProperties"} {
		if _, says := expr.Field(raw, key); says {
			return raw
		}
	}
	return expr.Merge(raw, jsonObject{{"unevaluatedProperties", json.RawMessage("false")}}.toJSON())
}

// readFields returns the schema for an object that maps names to forms.
func (f *formReader) readFields(raw json.RawMessage, at func(name string) formPlace) jsonObject {
	var properties jsonObject
	var required []json.RawMessage
	members, _ := expr.Members(raw)
	for _, m := range members {
		where := at(m.Key)
		f.recordOrigin(where)
		f.checkName(m.Key, where)
		of, optional := f.readForm(m.Value, where)
		properties = properties.withMember(m.Key, of.toJSON())
		if !optional {
			required = append(required, expr.Quote(m.Key))
		}
	}
	o := jsonObject{{"type", quoteText("object")}, {"properties", properties.toJSON()}}
	if len(required) > 0 {
		o = o.withMember("required", jsonArray(required))
	}
	return o.withMember("additionalProperties", json.RawMessage("false"))
}

// checkName rejects a name that no reference can contain.
func (f *formReader) checkName(name string, at formPlace) {
	if name == "" || len(name) > 256 || strings.ContainsAny(name, ".[]") {
		f.addProblem(at, "%q is no name: one has 1 to 256 bytes and no dots or brackets, so that $params.NAME finds it", shortenText(name))
	}
}

// readForm returns the schema of a form, and whether the value is optional.
func (f *formReader) readForm(raw json.RawMessage, at formPlace) (of jsonObject, optional bool) {
	switch expr.KindOf(raw) {
	case expr.KindString:
		text, _ := expr.String(raw)
		return f.readShortForm(text, at)
	case expr.KindArray:
		return f.readListForm(raw, at), false
	case expr.KindObject:
		return f.readLongForm(raw, at)
	case expr.KindNull:
		f.addProblem(at, "names no type: write %s", proposals)
	default:
		f.addProblem(at, "must be a type such as text or int, or an object that describes one, is %s", expr.KindOf(raw))
	}
	return nil, true
}

func (f *formReader) readShortForm(text string, at formPlace) (of jsonObject, optional bool) {
	s, err := readShort(text)
	if err != nil {
		f.addProblem(at, "%s", err)
		return nil, true
	}
	if of = s.schema; s.description != "" {
		of = of.withMember("description", expr.Quote(s.description))
	}
	if s.fallback != nil {
		of = of.withMember("default", s.fallback)
	}
	return of, s.optional || s.fallback != nil
}

// readListForm reads [form], which means a list of elements of that form.
func (f *formReader) readListForm(raw json.RawMessage, at formPlace) jsonObject {
	elements, _ := expr.Elements(raw)
	if len(elements) != 1 {
		f.addProblem(at, "a list has one type inside, such as [text]; this one has %d: for choices write one of a | b", len(elements))
		return nil
	}
	inside := at.renamedPlace("[0]", "items")
	f.recordOrigin(inside)
	of, optional := f.readForm(elements[0], inside)
	if optional && of.valueOf("default") != nil {
		f.addProblem(inside, "what is in a list has no default")
	}
	return jsonObject{{"type", quoteText("array")}, {"items", of.toJSON()}}
}

// readLongForm reads a form that is an object: a JSON Schema with additional words.
func (f *formReader) readLongForm(raw json.RawMessage, at formPlace) (of jsonObject, optional bool) {
	members, _ := expr.Members(raw)
	slices.SortStableFunc(members, func(a, b expr.Member) int { return keyRank(a.Key) - keyRank(b.Key) })
	for _, m := range members {
		where := at.keyPlace(m.Key)
		switch m.Key {
		case "type":
			var may bool
			of, may = f.readTyped(m.Value, of, where)
			optional = optional || may
		case "optional", "required":
			optional = f.readOptional(m, where) || optional
			if m.Key == "required" && expr.KindOf(m.Value) == expr.KindArray {
				of = of.withMember(m.Key, m.Value)
			}
		case "choices":
			f.recordOrigin(at.renamedPlace(m.Key, "enum"))
			of = of.withMember("enum", m.Value)
		case "min", "max":
			of = f.readBound(m, of, at)
		case "fields":
			of = f.readNested(m.Value, of, at)
		case "items":
			of = of.withMember(m.Key, f.readItems(m.Value, where))
		default:
			of = of.withMember(m.Key, m.Value)
			optional = optional || m.Key == "default"
		}
	}
	return of, optional
}

// keyRank sorts the key type before the keys that depend on it.
func keyRank(key string) int {
	if key == "type" {
		return 0
	}
	return 1
}

// readTyped reads the type of a long form. The type may be a short form itself.
func (f *formReader) readTyped(raw json.RawMessage, of jsonObject, at formPlace) (typed jsonObject, optional bool) {
	text, ok := expr.String(raw)
	if !ok {
		return of.withMember("type", raw), false
	}
	said, optional := f.readShortForm(text, at)
	for _, m := range said {
		of = of.withMember(m.key, m.value)
	}
	return of, optional
}

func (f *formReader) readOptional(m expr.Member, at formPlace) bool {
	kind := expr.KindOf(m.Value)
	switch {
	case m.Key == "required" && kind == expr.KindArray:
	case m.Key == "required":
		f.addProblem(at, "inputs are required unless they are optional: leave it out, or write optional: true")
	case kind != expr.KindBool:
		f.addProblem(at, "must be true or false, is %s", kind)
	default:
		return string(m.Value) == "true"
	}
	return false
}

// boundSuffixes completes min and max to the keywords of a type.
var boundSuffixes = map[string]string{"integer": "imum", "number": "imum", "string": "Length", "array": "Items"}

func (f *formReader) readBound(m expr.Member, of jsonObject, at formPlace) jsonObject {
	kind, _ := expr.String(of.valueOf("type"))
	if boundSuffixes[kind] == "" {
		f.addProblem(at.keyPlace(m.Key), "has a meaning for text, int, number and list alone: say the type")
		return of
	}
	name := m.Key + boundSuffixes[kind]
	f.recordOrigin(at.renamedPlace(m.Key, name))
	return of.withMember(name, m.Value)
}

// readNested reads the key fields of an object.
func (f *formReader) readNested(raw json.RawMessage, of jsonObject, at formPlace) jsonObject {
	if kind := expr.KindOf(raw); kind != expr.KindObject {
		f.addProblem(at.keyPlace("fields"), "must be an object of names and types, is %s", kind)
		return of
	}
	inside := f.readFields(raw, func(name string) formPlace { return at.renamedPlace("fields", "properties").keyPlace(name) })
	for _, m := range inside {
		of = of.withMember(m.key, m.value)
	}
	return of
}

func (f *formReader) readItems(raw json.RawMessage, at formPlace) json.RawMessage {
	if expr.KindOf(raw) == expr.KindBool {
		return raw
	}
	of, _ := f.readForm(raw, at)
	return of.toJSON()
}
