package ork

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/troupe-engine/troupe/definition"
	"github.com/troupe-engine/troupe/flow/expr"
	"github.com/troupe-engine/troupe/flow/types"
)

// orkType is a type: a scalar, an object or a list.
type orkType struct {
	scalar   string
	fields   []objectField // fields of an object
	of       *orkType      // element type of a list
	optional bool          // may be null; as a field of an object, may be missing
}

type objectField struct {
	name string
	is   *orkType
}

func (t *orkType) isObject() bool { return t.scalar == "" && t.of == nil }

func (t *orkType) fieldType(name string) *orkType {
	for _, f := range t.fields {
		if f.name == name {
			return f.is
		}
	}
	return nil
}

// scalars are the types without parts.
var scalars = []string{"str", "int", "float", "bool", "date", "datetime_notz", "datetime_tz", "datetime_utc"}

// legacyTypes are names of types that Ork no longer accepts.
var legacyTypes = []string{"string", "integer", "number", "boolean", "datetime", "object", "array", "list", "dict", "any"}

// withoutOptional returns the type without null.
func (t *orkType) withoutOptional() *orkType {
	is := *t
	is.optional = false
	return &is
}

func (t *orkType) String() string {
	switch {
	case t.optional:
		return t.withoutOptional().String() + "?"
	case t.of != nil:
		return "[" + t.of.String() + "]"
	case t.scalar != "":
		return t.scalar
	}
	var parts []string
	for _, f := range t.fields {
		parts = append(parts, f.name+": "+f.is.String())
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// typeSet holds the aliases of a workflow. An alias that is being read has no type yet.
type typeSet map[string]*typeAlias

type typeAlias struct {
	raw           json.RawMessage
	at            *definition.Place
	is            *orkType
	reading, read bool
}

var nameForm = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func (r *reader) readAliases(p textPart) {
	all, _ := p.getObject("types")
	members, _ := expr.Members(all.raw)
	r.types = typeSet{}
	for _, m := range members {
		at := all.at.Key(m.Key)
		switch {
		case !nameForm.MatchString(m.Key):
			r.Errorf(at, "types.%.80s must contain only [A-Za-z0-9_]", m.Key)
		case slices.Contains(scalars, m.Key):
			r.Errorf(at, "the alias %s would hide the type of that name", m.Key)
		default:
			r.types[m.Key] = &typeAlias{raw: m.Value, at: at}
		}
	}
	for _, m := range members {
		if a := r.types[m.Key]; a != nil {
			r.resolveAlias(a)
		}
	}
}

func (r *reader) resolveAlias(a *typeAlias) *orkType {
	switch {
	case a.reading:
		r.Errorf(a.at, "the alias is a part of itself")
		return nil
	case a.read:
		return a.is
	}
	a.reading = true
	a.is = r.readType(a.raw, a.at)
	a.reading, a.read = false, true
	return a.is
}

// readType reads a type expression. It returns nil if the expression is invalid.
func (r *reader) readType(raw json.RawMessage, at *definition.Place) *orkType {
	switch expr.KindOf(raw) {
	case expr.KindString:
		text, _ := expr.String(raw)
		return r.typeNamed(text, at)
	case expr.KindArray:
		elements, _ := expr.Elements(raw)
		if len(elements) != 1 {
			r.Errorf(at, "a list has one type inside, such as [str]; this one has %d", len(elements))
			return nil
		}
		if of := r.readType(elements[0], at.Index(0)); of != nil {
			return &orkType{of: of}
		}
		return nil
	case expr.KindObject:
		return r.objectType(raw, at)
	}
	r.Errorf(at, "must be a type such as str, [int] or {id: int}, is %s", expr.KindOf(raw))
	return nil
}

func (r *reader) typeNamed(text string, at *definition.Place) *orkType {
	if needed, optional := cutOptional(text); optional {
		is := r.typeNamed(needed, at)
		if is != nil {
			is = is.withoutOptional()
			is.optional = true
		}
		return is
	}
	name, aliased := strings.CutPrefix(text, "types.")
	switch a := r.types[name]; {
	case a != nil && (aliased || !slices.Contains(scalars, text)):
		return r.resolveAlias(a)
	case slices.Contains(scalars, text):
		return &orkType{scalar: text}
	case slices.Contains(legacyTypes, text):
		r.Errorf(at, "%s uses legacy type '%s'; use builtins: %s", at, text, strings.Join(scalars, ", "))
	default:
		r.Errorf(at, "unknown type %.80q: write one of %s, or types.NAME for one of types", text, strings.Join(scalars, ", "))
	}
	return nil
}

// cutOptional reads the two notations for an optional value: str? and str | None.
func cutOptional(text string) (needed string, optional bool) {
	if needed, optional = strings.CutSuffix(text, "?"); optional {
		return needed, true
	}
	needed, other, both := strings.Cut(text, "|")
	return strings.TrimSpace(needed), both && strings.TrimSpace(other) == "None"
}

func (r *reader) objectType(raw json.RawMessage, at *definition.Place) *orkType {
	t, whole := &orkType{}, true
	members, _ := expr.Members(raw)
	for _, m := range members {
		at := at.Key(m.Key)
		if !nameForm.MatchString(m.Key) {
			r.Errorf(at, "%s must contain only [A-Za-z0-9_]", at)
			whole = false
			continue
		}
		is := r.readType(m.Value, at)
		whole = whole && is != nil
		t.fields = append(t.fields, objectField{m.Key, is})
	}
	if !whole {
		return nil
	}
	return t
}

// readTypes reads the input and output types of a task. Ork's documentation also writes them as
// input and output.
func (t *task) readTypes() {
	t.inType = t.typeField("input_type", "input")
	t.outType = t.typeField("output_type", "output")
	t.unchecked = !t.getBool("validate_output", !t.settings.unchecked)
	if t.inType != nil && !t.inType.isObject() {
		t.Errorf(t.at.Key("input_type"), "task '%s' has invalid type schema at 'input_type': it "+
			"must be an object of names and types", t.name)
		t.inType = nil
	}
}

func (t *task) typeField(name, other string) *orkType {
	if v, has := t.getField(name); has {
		return t.readType(v, t.at.Key(name))
	}
	switch v, _ := t.getField(other); expr.KindOf(v) {
	case expr.KindString:
		return t.readType(v, t.at.Key(other))
	case expr.KindObject:
		if other == "output" && t.image == nil {
			t.Errorf(t.at.Key(other), "is for tasks with an image: leave it out, or name a type")
		}
	}
	return nil
}

// isAssignable reports whether a value of one type is allowed where another type is wanted.
func isAssignable(is, wanted *orkType) bool { return fitsIn(is, wanted, strictScalar) }

func strictScalar(is, wanted string) bool {
	return is == wanted || is == "datetime_utc" && wanted == "datetime_tz"
}

// fitsIn is like isAssignable, but with the given comparison of scalars.
func fitsIn(is, wanted *orkType, scalar func(is, wanted string) bool) bool {
	switch {
	case is == nil || wanted == nil:
		return true // its problem was reported
	case wanted.optional:
		return fitsIn(is.withoutOptional(), wanted.withoutOptional(), scalar)
	case is.optional:
		return false
	case wanted.of != nil:
		return is.of != nil && fitsIn(is.of, wanted.of, scalar)
	case wanted.scalar != "":
		return is.scalar != "" && scalar(is.scalar, wanted.scalar)
	}
	known := func(f objectField) bool { return wanted.fieldType(f.name) != nil }
	given := func(f objectField) bool {
		of := is.fieldType(f.name)
		return of == nil && f.is != nil && f.is.optional || of != nil && fitsIn(of, f.is, scalar)
	}
	return is.isObject() && allFields(is.fields, known) && allFields(wanted.fields, given)
}

func allFields(fields []objectField, are func(objectField) bool) bool {
	return !slices.ContainsFunc(fields, func(f objectField) bool { return !are(f) })
}

// toDefinition returns the type in the form of a definition.
func (t *orkType) toDefinition() json.RawMessage {
	switch {
	case t.optional:
		of, _ := types.ReadForm(t.withoutOptional().toDefinition())
		var o jsonObject
		o.putField("anyOf", append(append([]byte{'['}, of.Schema()...), `,{"type":"null"}]`...))
		o.putField("optional", json.RawMessage("true"))
		return o.toJSON()
	case t.of != nil:
		return append(append([]byte{'['}, t.of.toDefinition()...), ']')
	case t.scalar != "":
		return expr.Quote(nativeTypes[t.scalar])
	}
	fields := jsonObject{}
	for _, f := range t.fields {
		fields.putField(f.name, f.is.toDefinition())
	}
	var o jsonObject
	o.putField("type", expr.Quote("object"))
	o.putField("fields", fields.toJSON())
	return o.toJSON()
}

// nativeTypes maps scalars to their names in definitions.
var nativeTypes = map[string]string{"str": "text", "int": "int", "float": "number", "bool": "bool", "date": "date",
	"datetime_notz": "datetime_notz", "datetime_tz": "datetime_tz", "datetime_utc": "datetime_utc"}
