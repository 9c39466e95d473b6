package define

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

// decodeDefinition makes a definition of a text. It differs from encoding/json in that it goes
// on after a problem, knows where each one is, and does not care which kind of text it reads.
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
	nodesLeft *int // how many nodes there may still be
	strict    bool // a field that is not known is an error
}

// MaxNodes is how many nodes a flow may have, those inside of it included: each takes about 2 KB of
// memory while the flow is checked, and 1 KB while tasks of it are running.
const MaxNodes = 50_000

// maxNesting is how deep the fields of a definition may be nested; that of values is up to whoever
// looks inside. It is far beyond any Limits.Depth of use.
const maxNesting = 500

var nodeType = reflect.TypeFor[*Node]()

var rawType = reflect.TypeFor[json.RawMessage]()

// unionField is a field that can be written in several ways.
type unionField interface {
	decodeValue(from decoder, v textValue, at *Place)
}

func (d decoder) decodeHandler(v textValue, to *Handler, at *Place) {
	d.decodeObject(v, reflect.ValueOf(to).Elem(), at)
}

// decodeValue sets a field from a value. A null leaves the field as it is.
func (d decoder) decodeValue(v textValue, to reflect.Value, at *Place) {
	switch {
	case v.kind() == expr.KindNull:
		return
	case at != nil && at.depth > maxNesting:
		d.addProblem(SeverityError, at, v.position(), "definitions nest no deeper than %d", maxNesting)
		return
	case to.Type() == rawType:
		if expr.Deeper(v.rawJSON(), flow.DefaultLimits.Levels) {
			d.addProblem(SeverityError, at, v.position(), "the value nests arrays and objects deeper than %d levels", flow.DefaultLimits.Levels)
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

// hasNodeRoom reports whether there may be another node, and tells once that there may not.
func (d decoder) hasNodeRoom(m objectMember, at *Place) bool {
	if *d.nodesLeft--; *d.nodesLeft == -1 {
		d.addProblem(SeverityError, at.Key(m.key), m.at, "the flow has more than %d nodes: give some of them a flow of their own, and start tasks of it", MaxNodes)
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

// fieldRecorder wants to know which of its fields were written, because a 0 that is written is not
// one that is absent.
type fieldRecorder interface{ recordField(field string) }

func (n *Node) recordField(field string) {
	n.noTimeout = n.noTimeout || field == "timeout_ms" && n.TimeoutMS == 0
}

func (r *RetrySpec) recordField(field string) {
	r.noAttempts = r.noAttempts || field == "max_attempts" && r.MaxAttempts == 0
}

// refuseDuplicate refuses a key that is there again: nobody could tell what was lost with the other
// one.
func (d decoder) refuseDuplicate(seen map[string]textPosition, key string, m objectMember, at *Place) {
	if first, twice := seen[key]; twice {
		line, _ := first.lineColumn()
		d.addProblem(SeverityError, at.Key(m.key), m.at, "the key is there twice, first in line %d", line)
		return
	}
	seen[key] = m.at
}

// refuseDuplicatesInside refuses such keys in what is only passed on. In YAML that was done when it
// was read.
func (d decoder) refuseDuplicatesInside(v textValue, at *Place) {
	if v, ok := v.(*jsonValue); ok {
		kept := v.source.caching
		v.source.caching = false // nobody looks there again
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

// reportUnknown warns of a key that is no field, or refuses it. Keys that people use for notes of
// their own are left alone.
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
	const exact = 1 << 53 // beyond it a float does not say which integer is meant
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

// fieldNames are the names of a struct's fields in texts, and where they are.
type fieldNames map[string][]int

// knownFields says the fields of each struct that a definition is made of.
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
		for _, f := range reflect.VisibleFields(t) { // those of embedded structs too
			if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
				names[name] = f.Index
				collectFields(known, f.Type)
			}
		}
	case t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map:
		collectFields(known, t.Elem())
	}
}

// findField matches a key to a field as encoding/json does: exactly, else whatever its case.
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

// foreignFields are fields of other dialects and what to write here, for nodes and for the whole.
var foreignFields = map[string][]string{
	"tasks": {"nodes"}, "steps": {"nodes"},
	"maxattempts": {"retry: {max_attempts: …}", "defaults: {retry: {max_attempts: …}}"}, "retries": {"max_retries, or retry: {max_attempts: …}"},
	"basedelay": {"retry: {delay: …}", "defaults: {retry: {delay: …}}"}, "retrydelay": {"retry: {delay: …}"},
	"if": {"when: {if: …}"}, "ifnot": {"when: {if_not: …}"}, "whenexhausted": {"on_exhausted"}, "onfailure": {"run_on"},
	"requiredinputpattern": {"when: {if: …}"}, "forbiddeninputpattern": {"when: {if_not: …}"},
	"dependencies": {"depends_on"}, "deps": {"depends_on"}, "array": {"depends_on, with kind: map"}, "runner": {"labels"},
	"foreach": {"each: {items: …}"}, "handler": {"service"},
}

// foreignField is what a field of another dialect is called here, or "".
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
