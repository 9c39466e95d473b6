package types

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/troupe-engine/troupe/flow/expr"
)

// list checks a list and what is in it.
func (k *check) list(n *node, v json.RawMessage, at *trail, had *seen) bool {
	if n.minItems == nil && n.maxItems == nil && !n.unique && n.prefix == nil && n.items == nil && n.contains == nil {
		return true
	}
	if !k.pay(1 + len(v)/32) {
		return true
	}
	elements, _ := expr.Elements(v)
	fits := k.many(n.minItems, n.maxItems, len(elements), "item", at)
	if n.unique {
		fits = k.distinct(elements, at) && fits
	}
	for i, e := range elements {
		of := n.items
		if i < len(n.prefix) {
			of = n.prefix[i]
		}
		if of == nil || k.tooMuch {
			break
		}
		had.item(i)
		fits = k.value(of, e, at.element(i), nil) && fits
	}
	if n.contains != nil {
		fits = k.holds(n, elements, at, had) && fits
	}
	return fits
}

// distinct refuses the same item twice.
func (k *check) distinct(elements []json.RawMessage, at *trail) bool {
	first := make(map[string]int, len(elements))
	for i, e := range elements {
		if !k.pay(2 + len(e)/2) {
			return true
		}
		key := string(expr.AppendCanonical(nil, e))
		if before, twice := first[key]; twice {
			return k.wrong(at, "has the same item twice: %s and %s", index(before), index(i))
		}
		first[key] = i
	}
	return true
}

// holds counts the elements that fit contains.
func (k *check) holds(n *node, elements []json.RawMessage, at *trail, had *seen) bool {
	held := 0
	for i, e := range elements {
		if k.whether(n.contains, e, at, nil) {
			had.item(i)
			held++
		}
	}
	least := 1
	if n.minHeld != nil {
		least = *n.minHeld
	}
	switch {
	case k.tooMuch:
	case held < least:
		return k.wrong(at, "has %s of the kind that was declared to be in it, at least %d %s", plural(held, "item"), least, were(least))
	case n.maxHeld != nil && held > *n.maxHeld:
		return k.wrong(at, "has %s of the kind that was declared to be in it, at most %d %s", plural(held, "item"), *n.maxHeld, were(*n.maxHeld))
	}
	return true
}

// object checks an object and its fields.
func (k *check) object(n *node, v json.RawMessage, at *trail, had *seen) bool {
	if !n.aboutFields() {
		return true
	}
	if !k.pay(1 + len(v)/32) {
		return true
	}
	fields, there := fieldsOf(v)
	fits := k.many(n.minFields, n.maxFields, len(fields), "field", at)
	for _, name := range n.required {
		if _, ok := there[name]; !ok {
			fits = k.missing(n, name, at)
		}
	}
	for _, f := range fields {
		if k.tooMuch {
			return true
		}
		fits = k.field(n, f, at, had) && fits
	}
	return k.dependent(n, v, there, at, had) && fits
}

func (n *node) aboutFields() bool {
	return n.properties != nil || n.required != nil || n.additional != nil || n.patterns != nil || n.propertyNames != nil ||
		n.minFields != nil || n.maxFields != nil || n.needs != nil || n.implies != nil
}

// fieldsOf are the fields of an object; of several equal keys the last counts.
func fieldsOf(v json.RawMessage) (fields []expr.Member, there map[string]int) {
	members, _ := expr.Members(v)
	there = make(map[string]int, len(members))
	for _, m := range members {
		if i, again := there[m.Key]; again {
			fields[i] = m
			continue
		}
		there[m.Key] = len(fields)
		fields = append(fields, m)
	}
	return fields, there
}

func (k *check) missing(n *node, name string, at *trail) bool {
	declared := n.properties[name]
	if declared == nil {
		return k.wrong(at.key(name), "is missing")
	}
	what := declared.typeName() + " was declared"
	if declared.description != "" {
		what += " (" + shorten(declared.description) + ")"
	}
	return k.wrong(at.key(name), "is missing: %s", what)
}

// field checks one field by all that is said of it.
func (k *check) field(n *node, f expr.Member, at *trail, had *seen) bool {
	fits, known := true, false
	at = at.key(f.Key)
	if of := n.properties[f.Key]; of != nil {
		known, fits = true, k.value(of, f.Value, at, nil)
	}
	for _, p := range n.patterns {
		if k.matches(p.pattern, f.Key) == yes {
			known, fits = true, k.value(p.node, f.Value, at, nil) && fits
		}
	}
	if !known && n.additional != nil {
		known, fits = true, k.undeclared(n, n.additional, f, at) && fits
	}
	if known {
		had.field(f.Key)
	}
	if n.propertyNames != nil && !k.whether(n.propertyNames, expr.Quote(f.Key), at, nil) {
		return k.wrong(at, "has a name that was not declared")
	}
	return fits
}

// undeclared checks a field that is not mentioned.
func (k *check) undeclared(n, of *node, f expr.Member, at *trail) bool {
	if !of.never {
		return k.value(of, f.Value, at, nil)
	}
	if near := Nearest(f.Key, n.names); near != "" {
		return k.wrong(at, "is not declared: did you mean %s?", near)
	}
	if len(n.names) == 0 {
		return k.wrong(at, "is not declared")
	}
	return k.wrong(at, "is not declared: there is %s", someOf(n.names))
}

func someOf(names []string) string {
	const most = 12
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return strings.Join(names[:most], ", ") + ", …"
}

// dependent applies what is said for the case that a field is there.
func (k *check) dependent(n *node, v json.RawMessage, there map[string]int, at *trail, had *seen) bool {
	fits := true
	for _, name := range slices.Sorted(maps.Keys(n.needs)) {
		if _, ok := there[name]; !ok {
			continue
		}
		for _, other := range n.needs[name] {
			if _, ok := there[other]; !ok {
				fits = k.wrong(at.key(other), "is missing: with %s it has to be there", shorten(name))
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(n.implies)) {
		if _, ok := there[name]; ok {
			fits = k.value(n.implies[name], v, at, had) && fits
		}
	}
	return fits
}

// rest applies what is said of all that nothing else has had to do with.
func (k *check) rest(n *node, v json.RawMessage, at *trail, had *seen) bool {
	fits := true
	if n.unseen != nil && expr.KindOf(v) == expr.KindObject {
		fields, _ := fieldsOf(v)
		for _, f := range fields {
			if !had.fields[f.Key] && !k.tooMuch {
				had.field(f.Key)
				fits = k.undeclared(n, n.unseen, f, at.key(f.Key)) && fits
			}
		}
	}
	if elements, ok := expr.Elements(v); ok && n.unseenItems != nil {
		for i, e := range elements {
			if !had.items[i] && !k.tooMuch {
				had.item(i)
				fits = k.value(n.unseenItems, e, at.element(i), nil) && fits
			}
		}
	}
	return fits
}
