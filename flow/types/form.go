package types

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/troupe-engine/troupe/flow/expr"
)

// former makes a schema of forms. It remembers what each part was made of, so that whatever is wrong with the schema
// is told where somebody wrote it.
type former struct {
	problems []Problem
	origins  map[string][]string // where parts of the schema were written, by their place in the schema
}

// place is where something is: in the schema, and where it was written.
type place struct{ schema, written []string }

func (p place) key(key string) place { return place{below(p.schema, key), below(p.written, key)} }

// as is a key that was written under another name.
func (p place) as(written string, schema ...string) place {
	at := p.schema
	for _, key := range schema {
		at = below(at, key)
	}
	return place{at, below(p.written, written)}
}

func (f *former) report(at place, format string, args ...any) {
	f.problems = append(f.problems, Problem{Path: at.written, Msg: fmt.Sprintf(format, args...)})
}

func (f *former) made(at place) { f.origins[strings.Join(at.schema, "\x00")] = at.written }

// origin is where a part of the schema was written.
func (f *former) origin(path []string) []string {
	for i := len(path); i > 0; i-- {
		if written, ok := f.origins[strings.Join(path[:i], "\x00")]; ok {
			return append(written[:len(written):len(written)], path[i:]...)
		}
	}
	return path
}

// with are the problems of the forms and those of the schema that was made of them, where they were written. A part whose form is wrong is
// not what was meant, so nothing more is told of it.
func (f *former) with(schema []Problem) []Problem {
	all := f.problems
	for _, p := range schema {
		p.Path = f.origin(p.Path)
		if !slices.ContainsFunc(f.problems, func(told Problem) bool { return len(told.Path) > 0 && within(p.Path, told.Path) }) {
			all = append(all, p)
		}
	}
	return all[:min(len(all), maxProblems)]
}

// within says whether a place is another one or inside it.
func within(path, of []string) bool {
	return len(path) >= len(of) && slices.Equal(path[:len(of)], of)
}

// isSchema says whether inputs are written as one JSON Schema, and not one by one.
func isSchema(raw json.RawMessage) bool {
	if _, says := expr.Field(raw, "$schema"); says {
		return true
	}
	of, _ := expr.Field(raw, "type")
	kind, _ := expr.String(of)
	properties, _ := expr.Field(raw, "properties")
	return kind == "object" && expr.KindOf(properties) == expr.KindObject
}

// whole is a schema that was written as one. What it does not mention is refused, unless it says otherwise.
func (f *former) whole(raw json.RawMessage) json.RawMessage {
	of, _ := expr.Field(raw, "type")
	if kind, _ := expr.String(of); kind != "object" {
		f.report(place{}, "must say type: object, because what a task is started with is one")
	}
	for _, key := range []string{"additionalProperties", "unevaluatedProperties"} {
		if _, says := expr.Field(raw, key); says {
			return raw
		}
	}
	return expr.Merge(raw, object{{"unevaluatedProperties", json.RawMessage("false")}}.text())
}

// fields makes the schema of an object of forms, by name.
func (f *former) fields(raw json.RawMessage, at func(name string) place) object {
	var properties object
	var required []json.RawMessage
	members, _ := expr.Members(raw)
	for _, m := range members {
		where := at(m.Key)
		f.made(where)
		f.name(m.Key, where)
		of, optional := f.form(m.Value, where)
		properties = properties.with(m.Key, of.text())
		if !optional {
			required = append(required, expr.Quote(m.Key))
		}
	}
	o := object{{"type", quoted("object")}, {"properties", properties.text()}}
	if len(required) > 0 {
		o = o.with("required", array(required))
	}
	return o.with("additionalProperties", json.RawMessage("false"))
}

// name checks that a reference can lead to an input.
func (f *former) name(name string, at place) {
	if name == "" || len(name) > 256 || strings.ContainsAny(name, ".[]") {
		f.report(at, "%q is no name: one has 1 to 256 bytes and no dots or brackets, so that $params.NAME finds it", shorten(name))
	}
}

// form makes the schema of a form, and says whether it may be left out.
func (f *former) form(raw json.RawMessage, at place) (of object, optional bool) {
	switch expr.KindOf(raw) {
	case expr.KindString:
		text, _ := expr.String(raw)
		return f.short(text, at)
	case expr.KindArray:
		return f.listOf(raw, at), false
	case expr.KindObject:
		return f.long(raw, at)
	case expr.KindNull:
		f.report(at, "names no type: write %s", proposals)
	default:
		f.report(at, "must be a type such as text or int, or an object that describes one, is %s", expr.KindOf(raw))
	}
	return nil, true
}

func (f *former) short(text string, at place) (of object, optional bool) {
	s, err := readShort(text)
	if err != nil {
		f.report(at, "%s", err)
		return nil, true
	}
	if of = s.schema; s.description != "" {
		of = of.with("description", expr.Quote(s.description))
	}
	if s.fallback != nil {
		of = of.with("default", s.fallback)
	}
	return of, s.optional || s.fallback != nil
}

// listOf reads [form], a list of what its one element says.
func (f *former) listOf(raw json.RawMessage, at place) object {
	elements, _ := expr.Elements(raw)
	if len(elements) != 1 {
		f.report(at, "a list has one type inside, such as [text]; this one has %d: for choices write one of a | b", len(elements))
		return nil
	}
	inside := at.as("[0]", "items")
	f.made(inside)
	of, optional := f.form(elements[0], inside)
	if optional && of.get("default") != nil {
		f.report(inside, "what is in a list has no default")
	}
	return object{{"type", quoted("array")}, {"items", of.text()}}
}

// long reads a form that is an object: a JSON Schema with our words beside those of the standard.
func (f *former) long(raw json.RawMessage, at place) (of object, optional bool) {
	members, _ := expr.Members(raw)
	slices.SortStableFunc(members, func(a, b expr.Member) int { return rank(a.Key) - rank(b.Key) })
	for _, m := range members {
		where := at.key(m.Key)
		switch m.Key {
		case "type":
			var may bool
			of, may = f.typed(m.Value, of, where)
			optional = optional || may
		case "optional", "required":
			optional = f.mayBeAbsent(m, where) || optional
			if m.Key == "required" && expr.KindOf(m.Value) == expr.KindArray {
				of = of.with(m.Key, m.Value)
			}
		case "choices":
			f.made(at.as(m.Key, "enum"))
			of = of.with("enum", m.Value)
		case "min", "max":
			of = f.bound(m, of, at)
		case "fields":
			of = f.nested(m.Value, of, at)
		case "items":
			of = of.with(m.Key, f.items(m.Value, where))
		default:
			of = of.with(m.Key, m.Value)
			optional = optional || m.Key == "default"
		}
	}
	return of, optional
}

// rank has a type be read before what depends on it.
func rank(key string) int {
	if key == "type" {
		return 0
	}
	return 1
}

// typed reads the type of a long form, which may be a short form itself.
func (f *former) typed(raw json.RawMessage, of object, at place) (typed object, optional bool) {
	text, ok := expr.String(raw)
	if !ok {
		return of.with("type", raw), false
	}
	said, optional := f.short(text, at)
	for _, m := range said {
		of = of.with(m.key, m.value)
	}
	return of, optional
}

func (f *former) mayBeAbsent(m expr.Member, at place) bool {
	kind := expr.KindOf(m.Value)
	switch {
	case m.Key == "required" && kind == expr.KindArray:
	case m.Key == "required":
		f.report(at, "inputs are required unless they are optional: leave it out, or write optional: true")
	case kind != expr.KindBool:
		f.report(at, "must be true or false, is %s", kind)
	default:
		return string(m.Value) == "true"
	}
	return false
}

// bounds are what min and max mean to a type.
var bounds = map[string]string{"integer": "imum", "number": "imum", "string": "Length", "array": "Items"}

func (f *former) bound(m expr.Member, of object, at place) object {
	kind, _ := expr.String(of.get("type"))
	if bounds[kind] == "" {
		f.report(at.key(m.Key), "has a meaning for text, int, number and list alone: say the type")
		return of
	}
	name := m.Key + bounds[kind]
	f.made(at.as(m.Key, name))
	return of.with(name, m.Value)
}

// nested reads the fields of an object.
func (f *former) nested(raw json.RawMessage, of object, at place) object {
	if kind := expr.KindOf(raw); kind != expr.KindObject {
		f.report(at.key("fields"), "must be an object of names and types, is %s", kind)
		return of
	}
	inside := f.fields(raw, func(name string) place { return at.as("fields", "properties").key(name) })
	for _, m := range inside {
		of = of.with(m.key, m.value)
	}
	return of
}

func (f *former) items(raw json.RawMessage, at place) json.RawMessage {
	if expr.KindOf(raw) == expr.KindBool {
		return raw
	}
	of, _ := f.form(raw, at)
	return of.text()
}
