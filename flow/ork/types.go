package ork

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/troupe-engine/troupe/flow/define"
	"github.com/troupe-engine/troupe/flow/expr"
	"github.com/troupe-engine/troupe/flow/types"
)

// typ is a type: a scalar, an object or a list.
type typ struct {
	scalar   string
	fields   []field // of an object
	of       *typ    // of a list
	optional bool    // it may be null, and a field of an object may be left out
}

type field struct {
	name string
	is   *typ
}

func (t *typ) object() bool { return t.scalar == "" && t.of == nil }

func (t *typ) field(name string) *typ {
	for _, f := range t.fields {
		if f.name == name {
			return f.is
		}
	}
	return nil
}

// scalars are the types that have no parts.
var scalars = []string{"str", "int", "float", "bool", "date", "datetime_notz", "datetime_tz", "datetime_utc"}

// legacy are names of types that Ork no longer takes.
var legacy = []string{"string", "integer", "number", "boolean", "datetime", "object", "array", "list", "dict", "any"}

// needed is the type of what is there.
func (t *typ) needed() *typ {
	is := *t
	is.optional = false
	return &is
}

func (t *typ) String() string {
	switch {
	case t.optional:
		return t.needed().String() + "?"
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

// typeSet are the aliases of a workflow. One that is being read has no type yet.
type typeSet map[string]*alias

type alias struct {
	raw           json.RawMessage
	at            *define.Place
	is            *typ
	reading, read bool
}

var nameForm = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func (r *reader) aliases(p part) {
	all, _ := p.below("types")
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
			r.types[m.Key] = &alias{raw: m.Value, at: at}
		}
	}
	for _, m := range members {
		if a := r.types[m.Key]; a != nil {
			r.resolve(a)
		}
	}
}

func (r *reader) resolve(a *alias) *typ {
	switch {
	case a.reading:
		r.Errorf(a.at, "the alias is a part of itself")
		return nil
	case a.read:
		return a.is
	}
	a.reading = true
	a.is = r.typ(a.raw, a.at)
	a.reading, a.read = false, true
	return a.is
}

// typ reads a type expression, nil when it is none.
func (r *reader) typ(raw json.RawMessage, at *define.Place) *typ {
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
		if of := r.typ(elements[0], at.Index(0)); of != nil {
			return &typ{of: of}
		}
		return nil
	case expr.KindObject:
		return r.objectType(raw, at)
	}
	r.Errorf(at, "must be a type such as str, [int] or {id: int}, is %s", expr.KindOf(raw))
	return nil
}

func (r *reader) typeNamed(text string, at *define.Place) *typ {
	if needed, optional := cutOptional(text); optional {
		is := r.typeNamed(needed, at)
		if is != nil {
			is = is.needed()
			is.optional = true
		}
		return is
	}
	name, aliased := strings.CutPrefix(text, "types.")
	switch a := r.types[name]; {
	case a != nil && (aliased || !slices.Contains(scalars, text)):
		return r.resolve(a)
	case slices.Contains(scalars, text):
		return &typ{scalar: text}
	case slices.Contains(legacy, text):
		r.Errorf(at, "%s uses legacy type '%s'; use builtins: %s", at, text, strings.Join(scalars, ", "))
	default:
		r.Errorf(at, "unknown type %.80q: write one of %s, or types.NAME for one of types", text, strings.Join(scalars, ", "))
	}
	return nil
}

// cutOptional reads the two ways to say that a value may be missing: str? and str | None.
func cutOptional(text string) (needed string, optional bool) {
	if needed, optional = strings.CutSuffix(text, "?"); optional {
		return needed, true
	}
	needed, other, both := strings.Cut(text, "|")
	return strings.TrimSpace(needed), both && strings.TrimSpace(other) == "None"
}

func (r *reader) objectType(raw json.RawMessage, at *define.Place) *typ {
	t, whole := &typ{}, true
	members, _ := expr.Members(raw)
	for _, m := range members {
		at := at.Key(m.Key)
		if !nameForm.MatchString(m.Key) {
			r.Errorf(at, "%s must contain only [A-Za-z0-9_]", at)
			whole = false
			continue
		}
		is := r.typ(m.Value, at)
		whole = whole && is != nil
		t.fields = append(t.fields, field{m.Key, is})
	}
	if !whole {
		return nil
	}
	return t
}

// readTypes reads what a task takes and what it puts out. The documents of Ork write them as input and output, too.
func (t *task) readTypes() {
	t.inType = t.typeField("input_type", "input")
	t.outType = t.typeField("output_type", "output")
	t.unchecked = !t.truth("validate_output", !t.settings.unchecked)
	if t.inType != nil && !t.inType.object() {
		t.Errorf(t.at.Key("input_type"), "task '%s' has invalid type schema at 'input_type': it must be an object of names and types", t.name)
		t.inType = nil
	}
}

func (t *task) typeField(name, other string) *typ {
	if v, has := t.get(name); has {
		return t.typ(v, t.at.Key(name))
	}
	switch v, _ := t.get(other); expr.KindOf(v) {
	case expr.KindString:
		return t.typ(v, t.at.Key(other))
	case expr.KindObject:
		if other == "output" && t.image == nil {
			t.Errorf(t.at.Key(other), "is for tasks with an image: leave it out, or name a type")
		}
	}
	return nil
}

// fits says whether a value of one type may stand where another one is wanted.
func fits(is, wanted *typ) bool { return fitsIn(is, wanted, strictScalar) }

func strictScalar(is, wanted string) bool {
	return is == wanted || is == "datetime_utc" && wanted == "datetime_tz"
}

// fitsIn is fits where scalars are compared in a way of its own.
func fitsIn(is, wanted *typ, scalar func(is, wanted string) bool) bool {
	switch {
	case is == nil || wanted == nil:
		return true // what is wrong with it was told
	case wanted.optional:
		return fitsIn(is.needed(), wanted.needed(), scalar)
	case is.optional:
		return false
	case wanted.of != nil:
		return is.of != nil && fitsIn(is.of, wanted.of, scalar)
	case wanted.scalar != "":
		return is.scalar != "" && scalar(is.scalar, wanted.scalar)
	}
	known := func(f field) bool { return wanted.field(f.name) != nil }
	given := func(f field) bool {
		of := is.field(f.name)
		return of == nil && f.is != nil && f.is.optional || of != nil && fitsIn(of, f.is, scalar)
	}
	return is.object() && all(is.fields, known) && all(wanted.fields, given)
}

func all(fields []field, are func(field) bool) bool {
	return !slices.ContainsFunc(fields, func(f field) bool { return !are(f) })
}

// native is the type in our words.
func (t *typ) native() json.RawMessage {
	switch {
	case t.optional:
		of, _ := types.ReadForm(t.needed().native())
		var o object
		o.put("anyOf", append(append([]byte{'['}, of.Schema()...), `,{"type":"null"}]`...))
		o.put("optional", json.RawMessage("true"))
		return o.text()
	case t.of != nil:
		return append(append([]byte{'['}, t.of.native()...), ']')
	case t.scalar != "":
		return expr.Quote(words[t.scalar])
	}
	fields := object{}
	for _, f := range t.fields {
		fields.put(f.name, f.is.native())
	}
	var o object
	o.put("type", expr.Quote("object"))
	o.put("fields", fields.text())
	return o.text()
}

// words are our names of scalars.
var words = map[string]string{"str": "text", "int": "int", "float": "number", "bool": "bool", "date": "date",
	"datetime_notz": "datetime_notz", "datetime_tz": "datetime_tz", "datetime_utc": "datetime_utc"}
