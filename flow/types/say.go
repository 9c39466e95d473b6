package types

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/troupe-engine/troupe/flow/expr"
)

// describeValue returns a short description of a value.
func describeValue(v json.RawMessage) string {
	switch expr.KindOf(v) {
	case expr.KindString:
		text, _ := expr.String(v)
		return "text " + string(expr.Quote(shortenText(text)))
	case expr.KindArray:
		return "a list"
	case expr.KindObject:
		return "an object"
	case expr.KindNull:
		return "null"
	}
	return shortenText(strings.TrimSpace(string(v)))
}

// kindNames lists the names of types, in the order in which messages use them.
var kindNames = []struct {
	typeSet
	name, article string
}{
	{isText, "text", ""}, {isNumeric, "number", "a "}, {isInt, "int", "an "}, {isFloat, "number", "a "}, {isBool, "bool", "a "},
	{isList, "list", "a "}, {isObject, "object", "an "}, {isNull, "null", ""},
}

// typeName returns the name of the declared type, with an article.
func (n *schemaNode) typeName() string {
	switch {
	case n.types == 0 && n.choices != nil:
		return "one of " + n.choiceNames()
	case n.types == 0 && n.ref != nil && n.ref.types != 0:
		return n.ref.typeName()
	case n.types == 0:
		return "a value"
	}
	var names []string
	left := n.types
	for _, k := range kindNames {
		if left&k.typeSet == k.typeSet {
			names = append(names, k.article+k.name)
			left &^= k.typeSet
		}
	}
	return strings.Join(names, " or ")
}

// shortType returns the declared type in the notation of short forms.
func (n *schemaNode) shortType() string {
	switch {
	case n.types == 0 && n.choices != nil:
		return "one of " + strings.Join(n.choicesAs(bareText), " | ")
	case n.types == 0 && n.ref != nil && n.ref.ref == nil:
		return n.ref.shortType()
	case n.types == 0:
		return "any"
	case n.types == isList && n.items != nil && n.items.types != isList:
		return "list of " + n.items.shortType()
	}
	var names []string
	left := n.types
	for _, k := range kindNames {
		if left&k.typeSet == k.typeSet {
			names = append(names, k.name)
			left &^= k.typeSet
		}
	}
	return strings.Join(names, " or ")
}

func (n *schemaNode) choiceNames() string {
	return strings.Join(n.choicesAs(func(v json.RawMessage) string { return strings.TrimSpace(string(v)) }), ", ")
}

func (n *schemaNode) choicesAs(text func(json.RawMessage) string) []string {
	const most = 12
	var names []string
	for _, choice := range n.choices {
		if len(names) == most {
			return append(names, "…")
		}
		names = append(names, shortenText(text(choice)))
	}
	return names
}

// bareText returns a value in the notation of short forms. A text has no quotes, unless it would be
// ambiguous.
func bareText(v json.RawMessage) string {
	text, ok := expr.String(v)
	if !ok || text == "" || text != strings.TrimSpace(text) || strings.ContainsAny(text, "\"|()\n") {
		return strings.TrimSpace(string(v))
	}
	return text
}

// alternativesText returns the types of the alternatives of a value, or "" if they have no short
// description.
func alternativesText(list []*schemaNode) string {
	var names []string
	for _, n := range list {
		if n.types == 0 && n.choices == nil || len(names) == 5 {
			return ""
		}
		names = append(names, n.typeName())
	}
	return ": " + strings.Join(names, ", ")
}

func countText(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func wasOrWere(n int) string {
	if n == 1 {
		return "was"
	}
	return "were"
}
