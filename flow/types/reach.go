package types

import (
	"fmt"
	"strings"
)

// Reaches says whether a path may lead to something in what fits; else it says what is wrong with it. Elements of lists
// are [2].
func (in *Inputs) Reaches(path []string) (wrong string) {
	if in == nil {
		return ""
	}
	at := []*node{in.root}
	for i, key := range path {
		if element.MatchString(key) {
			at = elementsOf(at)
			continue
		}
		next, open, names := inside(at, key)
		switch {
		case len(next) > 0:
			at = next
		case open:
			return ""
		default:
			return unreached(path[:i], key, at, names)
		}
	}
	return ""
}

func unreached(before []string, key string, at []*node, names []string) string {
	holder := "the inputs"
	if len(before) > 0 {
		holder = "the input " + strings.TrimPrefix(Problem{Path: before}.Where(), "$params.")
	}
	if len(at) == 1 && at[0].types != 0 && at[0].types&isObject == 0 {
		return fmt.Sprintf("there is no %s in %s, which is declared as %s", shorten(key), holder, at[0].typeName())
	}
	if near := Nearest(key, names); near != "" {
		return fmt.Sprintf("%s is not declared among %s: did you mean %s?", shorten(key), holder, near)
	}
	if len(names) == 0 {
		return fmt.Sprintf("%s is not declared: %s have none", shorten(key), holder)
	}
	return fmt.Sprintf("%s is not declared among %s: there is %s", shorten(key), holder, someOf(names))
}

// together are schemas and those that a value has to do with at once.
func together(list []*node) []*node {
	seen := map[*node]bool{}
	var all []*node
	for len(list) > 0 {
		n := list[0]
		list = list[1:]
		if !seen[n] {
			seen[n] = true
			all = append(all, n)
			list = append(list, n.beside()...)
		}
	}
	return all
}

// inside are the schemas of a field, and whether there may be fields that are not mentioned.
func inside(list []*node, key string) (found []*node, open bool, names []string) {
	closed := false
	for _, n := range together(list) {
		if n.types != 0 && n.types&isObject == 0 {
			closed = true
		}
		if of := n.properties[key]; of != nil {
			found = append(found, of)
		}
		for _, p := range n.patterns {
			if p.MatchString(key) {
				found = append(found, p.node)
			}
		}
		names = append(names, n.names...)
		closed = closed || !n.open()
		for _, other := range []*node{n.additional, n.unseen} {
			if other != nil && !other.never {
				found = append(found, other)
			}
		}
	}
	return found, !closed, names
}

// open says whether there may be fields that are not mentioned.
func (n *node) open() bool {
	return (n.additional == nil || !n.additional.never) && (n.unseen == nil || !n.unseen.never)
}

func elementsOf(list []*node) []*node {
	var found []*node
	for _, n := range together(list) {
		if n.items != nil {
			found = append(found, n.items)
		}
		found = append(found, n.prefix...)
	}
	if len(found) == 0 {
		return []*node{{}}
	}
	return found
}
