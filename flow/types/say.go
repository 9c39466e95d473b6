package types

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/troupe-engine/troupe/flow/expr"
)

// describe says what a value is.
func describe(v json.RawMessage) string {
	switch expr.KindOf(v) {
	case expr.KindString:
		text, _ := expr.String(v)
		return "text " + string(expr.Quote(shorten(text)))
	case expr.KindArray:
		return "a list"
	case expr.KindObject:
		return "an object"
	case expr.KindNull:
		return "null"
	}
	return shorten(strings.TrimSpace(string(v)))
}

// kindNames are what types are called, in the order in which they are told.
var kindNames = []struct {
	kinds
	name, article string
}{
	{isText, "text", ""}, {isNumeric, "number", "a "}, {isInt, "int", "an "}, {isFloat, "number", "a "}, {isBool, "bool", "a "},
	{isList, "list", "a "}, {isObject, "object", "an "}, {isNull, "null", ""},
}

// typeName is what was declared, with its article.
func (n *node) typeName() string {
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
		if left&k.kinds == k.kinds {
			names = append(names, k.article+k.name)
			left &^= k.kinds
		}
	}
	return strings.Join(names, " or ")
}

// word is what is declared in the words of short forms.
func (n *node) word() string {
	switch {
	case n.types == 0 && n.choices != nil:
		return "one of " + strings.Join(n.choicesAs(bare), " | ")
	case n.types == 0 && n.ref != nil && n.ref.ref == nil:
		return n.ref.word()
	case n.types == 0:
		return "any"
	case n.types == isList && n.items != nil && n.items.types != isList:
		return "list of " + n.items.word()
	}
	var names []string
	left := n.types
	for _, k := range kindNames {
		if left&k.kinds == k.kinds {
			names = append(names, k.name)
			left &^= k.kinds
		}
	}
	return strings.Join(names, " or ")
}

func (n *node) choiceNames() string {
	return strings.Join(n.choicesAs(func(v json.RawMessage) string { return strings.TrimSpace(string(v)) }), ", ")
}

func (n *node) choicesAs(text func(json.RawMessage) string) []string {
	const most = 12
	var names []string
	for _, choice := range n.choices {
		if len(names) == most {
			return append(names, "…")
		}
		names = append(names, shorten(text(choice)))
	}
	return names
}

// bare is a value as a short form has it: a text without its quotes, unless it would be taken for something else.
func bare(v json.RawMessage) string {
	text, ok := expr.String(v)
	if !ok || text == "" || text != strings.TrimSpace(text) || strings.ContainsAny(text, "\"|()\n") {
		return strings.TrimSpace(string(v))
	}
	return text
}

// alternatives names the types of what a value might have been.
func alternatives(list []*node) string {
	var names []string
	for _, n := range list {
		if n.types == 0 && n.choices == nil || len(names) == 5 {
			return ""
		}
		names = append(names, n.typeName())
	}
	return ": " + strings.Join(names, ", ")
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func were(n int) string {
	if n == 1 {
		return "was"
	}
	return "were"
}
