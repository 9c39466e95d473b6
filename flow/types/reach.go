package types

import (
	"fmt"
	"strings"
)

// Reaches returns "" if a path may lead to a value in a fitting value, and the problem otherwise.
// An element of a list is written as [2].
func (in *Inputs) Reaches(path []string) (wrong string) {
	if in == nil {
		return ""
	}
	at := []*schemaNode{in.root}
	for i, key := range path {
		if elementPattern.MatchString(key) {
			at = elementsOf(at)
			continue
		}
		next, open, names := fieldSchemas(at, key)
		switch {
		case len(next) > 0:
			at = next
		case open:
			return ""
		default:
			return unreachedText(path[:i], key, at, names)
		}
	}
	return ""
}

func unreachedText(before []string, key string, at []*schemaNode, names []string) string {
	holder := "the inputs"
	if len(before) > 0 {
		holder = "the input " + strings.TrimPrefix(Problem{Path: before}.Where(), "$params.")
	}
	if len(at) == 1 && at[0].types != 0 && at[0].types&isObject == 0 {
		return fmt.Sprintf("there is no %s in %s, which is declared as %s", shortenText(key), holder, at[0].typeName())
	}
	if near := Nearest(key, names); near != "" {
		return fmt.Sprintf("%s is not declared among %s: did you mean %s?", shortenText(key), holder, near)
	}
	if len(names) == 0 {
		return fmt.Sprintf("%s is not declared: %s have none", shortenText(key), holder)
	}
	return fmt.Sprintf("%s is not declared among %s: there is %s", shortenText(key), holder, someOf(names))
}

// withApplied returns the given schemas with all schemas that apply to the same value.
func withApplied(list []*schemaNode) []*schemaNode {
	seen := map[*schemaNode]bool{}
	var all []*schemaNode
	for len(list) > 0 {
		n := list[0]
		list = list[1:]
		if !seen[n] {
			seen[n] = true
			all = append(all, n)
			list = append(list, n.appliedParts()...)
		}
	}
	return all
}

// fieldSchemas returns the schemas of a field. open reports whether undeclared fields are allowed,
// and names are the declared ones.
func fieldSchemas(list []*schemaNode, key string) (found []*schemaNode, open bool, names []string) {
	closed := false
	for _, n := range withApplied(list) {
		if n.types != 0 && n.types&isObject == 0 {
			closed = true
		}
		if of := n.properties[key]; of != nil {
			found = append(found, of)
		}
		for _, p := range n.patterns {
			if p.MatchString(key) {
				found = append(found, p.schemaNode)
			}
		}
		names = append(names, n.names...)
		closed = closed || !n.isOpen()
		for _, other := range []*schemaNode{n.additional, n.unevaluatedFields} {
			if other != nil && !other.never {
				found = append(found, other)
			}
		}
	}
	return found, !closed, names
}

// isOpen reports whether undeclared fields are allowed.
func (n *schemaNode) isOpen() bool {
	return (n.additional == nil || !n.additional.never) && (n.unevaluatedFields == nil || !n.unevaluatedFields.never)
}

func elementsOf(list []*schemaNode) []*schemaNode {
	var found []*schemaNode
	for _, n := range withApplied(list) {
		if n.items != nil {
			found = append(found, n.items)
		}
		found = append(found, n.prefix...)
	}
	if len(found) == 0 {
		return []*schemaNode{{}}
	}
	return found
}
