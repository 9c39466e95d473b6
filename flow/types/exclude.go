package types

import (
	"encoding/json"
	"slices"

	"github.com/troupe-engine/troupe/flow/expr"
)

// Excludes reports whether a fitting value can never have a value of this kind at a path. In that
// case it also returns the name of the declared type. An element of a list is written as [2].
func (in *Inputs) Excludes(path []string, kind expr.Kind) (declared string, excluded bool) {
	if in == nil {
		return "", false
	}
	at := []*schemaNode{in.root}
	for _, key := range path {
		if elementPattern.MatchString(key) {
			at = elementsOf(at)
			continue
		}
		at, _, _ = fieldSchemas(at, key)
	}
	for _, n := range at {
		if n.mayBe(kind, map[*schemaNode]bool{}) {
			return "", false
		}
	}
	if len(at) == 0 {
		return "", false
	}
	return at[0].typeName(), true
}

// kindsOf maps kinds of values to the types that such values may have.
var kindsOf = map[expr.Kind]typeSet{expr.KindNull: isNull, expr.KindBool: isBool,
	expr.KindNumber: isNumeric, expr.KindString: isText, expr.KindArray: isList, expr.KindObject: isObject}

// mayBe reports whether a value of a kind may fit a schema. It considers types and choices, also
// those of its parts.
func (n *schemaNode) mayBe(kind expr.Kind, seen map[*schemaNode]bool) bool {
	if seen[n] {
		return true
	}
	seen[n] = true
	switch {
	case n.never, n.types != 0 && n.types&kindsOf[kind] == 0,
		n.choices != nil && !hasKind(n.choices, kind), n.only != nil && expr.KindOf(n.only) != kind:
		return false
	case n.ref != nil && !n.ref.mayBe(kind, seen):
		return false
	}
	may := func(part *schemaNode) bool { return part.mayBe(kind, seen) }
	return !slices.ContainsFunc(n.all, func(part *schemaNode) bool { return !may(part) }) &&
		(n.any == nil || slices.ContainsFunc(n.any, may)) && (n.one == nil || slices.ContainsFunc(n.one, may))
}

// hasKind reports whether one of the values has this kind.
func hasKind(values []json.RawMessage, kind expr.Kind) bool {
	return slices.ContainsFunc(values, func(v json.RawMessage) bool { return expr.KindOf(v) == kind })
}
