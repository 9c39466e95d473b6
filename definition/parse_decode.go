package definition

import (
	"cmp"
	"encoding/json"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/expr"
)

// decodeDefinition decodes the definition of a text. Unlike encoding/json, it continues after a
// problem, knows the place of each problem, and accepts JSON and YAML.
func decodeDefinition(r *Reporter, nodes int, known bool) *Definition {
	if kind := r.root.kind(); kind != expr.KindObject {
		r.addProblem(SeverityError, nil, r.root.position(), "a definition must be an object, is %s", kind)
		return nil
	}
	d := &Definition{source: r}
	decoder{r, &nodes, known}.decodeValue(r.root, reflect.ValueOf(d).Elem(), nil)
	return d
}

type decoder struct {
	*Reporter
	nodesLeft *int // remaining number of nodes
	strict    bool // an unknown field is an error
}

// MaxNodes is the maximum number of nodes of a flow, including nested flows. Each takes about 2 KB
// of memory while the flow is checked, and 1 KB while tasks of it run.
const MaxNodes = 50_000

// maxNesting is the maximum nesting of the fields of a definition. The code that reads a value
// checks the nesting inside it. The limit is far beyond any useful Limits.Depth.
const maxNesting = 500

var nodeType = reflect.TypeFor[*Node]()

var rawType = reflect.TypeFor[json.RawMessage]()

// unionField is a field with several notations.
type unionField interface {
	decodeValue(from decoder, v textValue, at *Place)
}

func (d decoder) decodeHandler(v textValue, to *Handler, at *Place) {
	d.decodeObject(v, reflect.ValueOf(to).Elem(), at)
}

// decodeValue sets a field from a value. A null leaves the field unchanged.
func (d decoder) decodeValue(v textValue, to reflect.Value, at *Place) {
	switch {
	case v.kind() == expr.KindNull:
		return
	case at != nil && at.depth > maxNesting:
		d.addProblem(SeverityError, at, v.position(), "definitions nest no deeper than %d", maxNesting)
		return
	case to.Type() == rawType:
		if expr.Deeper(v.rawJSON(), flow.DefaultLimits.Levels) {
			d.addProblem(SeverityError, at, v.position(),
				"the value nests arrays and objects deeper than %d levels", flow.DefaultLimits.Levels)
			return
		}
		d.refuseDuplicatesInside(v, at)
		to.SetBytes(v.rawJSON())
		return
	}
	if u, ok := to.Addr().Interface().(unionField); ok {
		u.decodeValue(d, v, at)
		return
	}
	switch to.Kind() {
	case reflect.Pointer:
		to.Set(reflect.New(to.Type().Elem()))
		d.decodeValue(v, to.Elem(), at)
	case reflect.Struct:
		d.decodeObject(v, to, at)
	case reflect.Map:
		d.decodeMap(v, to, at)
	case reflect.Slice:
		d.decodeList(v, to, at)
	case reflect.String:
		if d.expectKind(v, expr.KindString, at) {
			text, _ := expr.String(v.rawJSON())
			to.SetString(text)
		}
	case reflect.Bool:
		if d.expectKind(v, expr.KindBool, at) {
			to.SetBool(string(v.rawJSON()) == "true")
		}
	case reflect.Float64:
		if d.expectKind(v, expr.KindNumber, at) {
			f, _ := expr.Number(v.rawJSON())
			to.SetFloat(f)
		}
	default:
		d.decodeInt(v, to, at)
	}
}

func (d decoder) expectKind(v textValue, kind expr.Kind, at *Place) bool {
	if v.kind() == kind {
		return true
	}
	d.addProblem(SeverityError, at, v.position(), "must be %s, is %s", kind, v.kind())
	return false
}

func (d decoder) decodeList(v textValue, to reflect.Value, at *Place) {
	if !d.expectKind(v, expr.KindArray, at) {
		return
	}
	elements := v.elements()
	to.Set(reflect.MakeSlice(to.Type(), len(elements), len(elements)))
	for i, e := range elements {
		d.decodeValue(e, to.Index(i), at.Index(i))
	}
}

func (d decoder) decodeMap(v textValue, to reflect.Value, at *Place) {
	if !d.expectKind(v, expr.KindObject, at) {
		return
	}
	to.Set(reflect.MakeMap(to.Type()))
	seen := map[string]textPosition{}
	for i, m := range v.members() {
		if to.Type().Elem() == nodeType && !d.hasNodeRoom(m, at) {
			return
		}
		d.refuseDuplicate(seen, m.key, m, at)
		e := reflect.New(to.Type().Elem()).Elem()
		d.decodeValue(m.value, e, at.Key(m.key))
		if n, ok := e.Interface().(*Node); ok && n != nil {
			n.order = i
		}
		to.SetMapIndex(reflect.ValueOf(m.key), e)
	}
}

// hasNodeRoom reports whether another node is allowed, and reports a problem once if not.
func (d decoder) hasNodeRoom(m objectMember, at *Place) bool {
	if *d.nodesLeft--; *d.nodesLeft == -1 {
		d.addProblem(SeverityError, at.Key(m.key), m.at,
			"the flow has more than %d nodes: give some of them a flow of their own, and start "+
				"tasks of it", MaxNodes)
	}
	return *d.nodesLeft >= 0
}

func (d decoder) decodeObject(v textValue, to reflect.Value, at *Place) {
	if !d.expectKind(v, expr.KindObject, at) {
		return
	}
	names := knownFields[to.Type()]
	seen := map[string]textPosition{}
	for _, m := range v.members() {
		name, ok := names.findField(m.key)
		if !ok {
			d.reportUnknown(m, names, at)
			continue
		}
		d.refuseDuplicate(seen, name, m, at)
		d.decodeValue(m.value, to.FieldByIndex(names[name]), at.Key(name))
		if n, ok := to.Addr().Interface().(fieldRecorder); ok {
			n.recordField(name)
		}
	}
}

// fieldRecorder records which fields were written, because a written 0 differs from an absent
// field.
type fieldRecorder interface{ recordField(field string) }

func (n *Node) recordField(field string) {
	n.noTimeout = n.noTimeout || field == "timeout_ms" && n.TimeoutMS == 0
}

func (r *RetrySpec) recordField(field string) {
	r.noAttempts = r.noAttempts || field == "max_attempts" && r.MaxAttempts == 0
}

// refuseDuplicate reports a repeated key, because its first value would be lost silently.
func (d decoder) refuseDuplicate(seen map[string]textPosition, key string, m objectMember, at *Place) {
	if first, twice := seen[key]; twice {
		line, _ := first.lineColumn()
		d.addProblem(SeverityError, at.Key(m.key), m.at, "the key is there twice, first in line %d", line)
		return
	}
	seen[key] = m.at
}

// refuseDuplicatesInside reports repeated keys inside values that are only passed on. For YAML this
// was done during reading.
func (d decoder) refuseDuplicatesInside(v textValue, at *Place) {
	if v, ok := v.(*jsonValue); ok {
		kept := v.source.caching
		v.source.caching = false // avoids caching, because the value is not read again
		d.refuseDuplicatesBelow(v, at)
		v.source.caching = kept
	}
}

func (d decoder) refuseDuplicatesBelow(v textValue, at *Place) {
	nested := func(v textValue) bool { return v.kind() == expr.KindObject || v.kind() == expr.KindArray }
	seen := map[string]textPosition{}
	for _, m := range v.members() {
		d.refuseDuplicate(seen, m.key, m, at)
		if nested(m.value) {
			d.refuseDuplicatesBelow(m.value, at.Key(m.key))
		}
	}
	for i, e := range v.elements() {
		if nested(e) {
			d.refuseDuplicatesBelow(e, at.Index(i))
		}
	}
}

// reportUnknown reports an unknown key as a warning or an error. Keys for private notes are
// ignored.
func (d decoder) reportUnknown(m objectMember, names fieldNames, at *Place) {
	if m.key == "" || strings.ContainsRune(".$_", rune(m.key[0])) || strings.HasPrefix(m.key, "x-") {
		return
	}
	hint, near := "", ""
	if d.counts[SeverityWarning] < maxProblems && d.counts[SeverityError] < maxProblems {
		near = cmp.Or(names.foreignField(m.key), flow.Nearest(m.key, slices.Collect(maps.Keys(names))))
		hint = didYouMean(near)
	}
	if near == "" && at == nil && m.value.kind() == expr.KindObject {
		hint = ": a node stands below nodes"
	}
	if d.strict {
		d.addProblem(SeverityError, at.Key(m.key), m.at, "unknown field%s", hint)
		return
	}
	d.addProblem(SeverityWarning, at.Key(m.key), m.at, "unknown field, ignored%s", hint)
}

func (d decoder) decodeInt(v textValue, to reflect.Value, at *Place) {
	text := string(v.rawJSON())
	if v.kind() != expr.KindNumber {
		d.addProblem(SeverityError, at, v.position(), "must be an integer, is %s", v.kind())
		return
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && !to.OverflowInt(n) {
		to.SetInt(n)
		return
	}
	const exact = 1 << 53 // above this a float is ambiguous
	f, err := strconv.ParseFloat(text, 64)
	switch {
	case err != nil || math.Abs(f) > exact:
		d.addProblem(SeverityError, at, v.position(), "is too large: %.40s", text)
	case f != math.Trunc(f):
		d.addProblem(SeverityError, at, v.position(), "must be an integer, is %.40s", text)
	default:
		to.SetInt(int64(f))
	}
}

// fieldNames maps the names of a struct's fields in texts to their indexes.
type fieldNames map[string][]int

// knownFields holds the fields of each struct of a definition.
var knownFields = func() map[reflect.Type]fieldNames {
	known := map[reflect.Type]fieldNames{}
	collectFields(known, reflect.TypeFor[Definition]())
	collectFields(known, reflect.TypeFor[Handler]())
	collectFields(known, reflect.TypeFor[flow.Secret]())
	return known
}()

func collectFields(known map[reflect.Type]fieldNames, t reflect.Type) {
	switch {
	case t.Kind() == reflect.Struct && known[t] == nil:
		names := fieldNames{}
		known[t] = names
		for _, f := range reflect.VisibleFields(t) { // includes those of embedded structs
			if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
				names[name] = f.Index
				collectFields(known, f.Type)
			}
		}
	case t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map:
		collectFields(known, t.Elem())
	}
}

// findField matches a key to a field like encoding/json: exactly, otherwise ignoring case.
func (f fieldNames) findField(key string) (string, bool) {
	if _, ok := f[key]; ok {
		return key, true
	}
	for name := range f {
		if strings.EqualFold(name, key) {
			return name, true
		}
	}
	return "", false
}

// foreignFields maps fields of other dialects to fields of definitions, for nodes and for flows.
var foreignFields = map[string][]string{
	"tasks": {"nodes"}, "steps": {"nodes"},
	"maxattempts": {"retry: {max_attempts: …}", "defaults: {retry: {max_attempts: …}}"},
	"retries":     {"retry: {max_attempts: …}"},
	"basedelay":   {"retry: {delay: …}", "defaults: {retry: {delay: …}}"},
	"retrydelay":  {"retry: {delay: …}"},
	"if":          {"when: {if: …}"}, "ifnot": {"when: {if_not: …}"},
	"whenexhausted": {"on_exhausted"}, "onfailure": {"run_on"},
	"requiredinputpattern": {"when: {if: …}"}, "forbiddeninputpattern": {"when: {if_not: …}"},
	"dependencies": {"depends_on"}, "deps": {"depends_on"}, "array": {"depends_on, with kind: map"}, "runner": {"labels"},
	"foreach": {"each: {items: …}"}, "handler": {"service"},
}

// foreignField returns the field of definitions for a field of another dialect, or "".
func (f fieldNames) foreignField(key string) string {
	for _, here := range foreignFields[bareName(key)] {
		first := here
		if end := strings.IndexAny(here, ",:"); end >= 0 {
			first = here[:end]
		}
		if f[first] != nil {
			return here
		}
	}
	return ""
}
