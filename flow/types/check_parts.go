package types

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/troupe-engine/troupe/flow/expr"
)

// checkList checks a list and its elements.
func (k *valueCheck) checkList(n *schemaNode, v json.RawMessage, at *valuePath, had *evaluatedParts) bool {
	if n.minItems == nil && n.maxItems == nil && !n.unique && n.prefix == nil && n.items == nil && n.contains == nil {
		return true
	}
	if !k.spendBudget(1 + len(v)/32) {
		return true
	}
	elements, _ := expr.Elements(v)
	fits := k.checkCount(n.minItems, n.maxItems, len(elements), "item", at)
	if n.unique {
		fits = k.checkUnique(elements, at) && fits
	}
	for i, e := range elements {
		of := n.items
		if i < len(n.prefix) {
			of = n.prefix[i]
		}
		if of == nil || k.exhausted {
			break
		}
		had.addItem(i)
		fits = k.checkValue(of, e, at.childIndex(i), nil) && fits
	}
	if n.contains != nil {
		fits = k.checkContains(n, elements, at, had) && fits
	}
	return fits
}

// checkUnique rejects a list with equal elements.
func (k *valueCheck) checkUnique(elements []json.RawMessage, at *valuePath) bool {
	first := make(map[string]int, len(elements))
	for i, e := range elements {
		if !k.spendBudget(2 + len(e)/2) {
			return true
		}
		key := string(expr.AppendCanonical(nil, e))
		if before, twice := first[key]; twice {
			return k.reportProblem(at, "has the same item twice: %s and %s", indexText(before), indexText(i))
		}
		first[key] = i
	}
	return true
}

// checkContains counts the elements that fit the schema contains.
func (k *valueCheck) checkContains(n *schemaNode, elements []json.RawMessage, at *valuePath, had *evaluatedParts) bool {
	held := 0
	for i, e := range elements {
		if k.checkQuietly(n.contains, e, at, nil) {
			had.addItem(i)
			held++
		}
	}
	least := 1
	if n.minContains != nil {
		least = *n.minContains
	}
	switch {
	case k.exhausted:
	case held < least:
		return k.reportProblem(at,
			"has %s of the kind that was declared to be in it, at least %d %s",
			countText(held, "item"), least, wasOrWere(least))
	case n.maxContains != nil && held > *n.maxContains:
		return k.reportProblem(at,
			"has %s of the kind that was declared to be in it, at most %d %s",
			countText(held, "item"), *n.maxContains, wasOrWere(*n.maxContains))
	}
	return true
}

// checkObject checks an object and its fields.
func (k *valueCheck) checkObject(n *schemaNode, v json.RawMessage, at *valuePath, had *evaluatedParts) bool {
	if !n.aboutFields() {
		return true
	}
	if !k.spendBudget(1 + len(v)/32) {
		return true
	}
	fields, there := fieldsOf(v)
	fits := k.checkCount(n.minFields, n.maxFields, len(fields), "field", at)
	for _, name := range n.required {
		if _, ok := there[name]; !ok {
			fits = k.reportMissing(n, name, at)
		}
	}
	for _, f := range fields {
		if k.exhausted {
			return true
		}
		fits = k.checkField(n, f, at, had) && fits
	}
	return k.checkDependent(n, v, there, at, had) && fits
}

func (n *schemaNode) aboutFields() bool {
	return n.properties != nil || n.required != nil || n.additional != nil || n.patterns != nil || n.propertyNames != nil ||
		n.minFields != nil || n.maxFields != nil || n.dependentRequired != nil || n.dependentSchemas != nil
}

// fieldsOf returns the fields of an object and their indexes by key. If a key occurs several times,
// the last one counts.
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

func (k *valueCheck) reportMissing(n *schemaNode, name string, at *valuePath) bool {
	declared := n.properties[name]
	if declared == nil {
		return k.reportProblem(at.childKey(name), "is missing")
	}
	what := declared.typeName() + " was declared"
	if declared.description != "" {
		what += " (" + shortenText(declared.description) + ")"
	}
	return k.reportProblem(at.childKey(name), "is missing: %s", what)
}

// checkField checks one field against all schemas that apply to it.
func (k *valueCheck) checkField(n *schemaNode, f expr.Member, at *valuePath, had *evaluatedParts) bool {
	fits, known := true, false
	at = at.childKey(f.Key)
	if of := n.properties[f.Key]; of != nil {
		known, fits = true, k.checkValue(of, f.Value, at, nil)
	}
	for _, p := range n.patterns {
		if k.matchPattern(p.pattern, f.Key) == matchYes {
			known, fits = true, k.checkValue(p.schemaNode, f.Value, at, nil) && fits
		}
	}
	if !known && n.additional != nil {
		known, fits = true, k.checkUndeclared(n, n.additional, f, at) && fits
	}
	if known {
		had.addField(f.Key)
	}
	if n.propertyNames != nil && !k.checkQuietly(n.propertyNames, expr.Quote(f.Key), at, nil) {
		return k.reportProblem(at, "has a name that was not declared")
	}
	return fits
}

// checkUndeclared checks a field that is not declared against the schema for such fields.
func (k *valueCheck) checkUndeclared(n, of *schemaNode, f expr.Member, at *valuePath) bool {
	if !of.never {
		return k.checkValue(of, f.Value, at, nil)
	}
	if near := Nearest(f.Key, n.names); near != "" {
		return k.reportProblem(at, "is not declared: did you mean %s?", near)
	}
	if len(n.names) == 0 {
		return k.reportProblem(at, "is not declared")
	}
	return k.reportProblem(at, "is not declared: there is %s", someOf(n.names))
}

func someOf(names []string) string {
	const most = 12
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return strings.Join(names[:most], ", ") + ", …"
}

// checkDependent applies the schemas that depend on the presence of a field.
func (k *valueCheck) checkDependent(n *schemaNode, v json.RawMessage, there map[string]int, at *valuePath, had *evaluatedParts) bool {
	fits := true
	for _, name := range slices.Sorted(maps.Keys(n.dependentRequired)) {
		if _, ok := there[name]; !ok {
			continue
		}
		for _, other := range n.dependentRequired[name] {
			if _, ok := there[other]; !ok {
				fits = k.reportProblem(at.childKey(other), "is missing: with %s it has to be there", shortenText(name))
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(n.dependentSchemas)) {
		if _, ok := there[name]; ok {
			fits = k.checkValue(n.dependentSchemas[name], v, at, had) && fits
		}
	}
	return fits
}

// checkUnevaluated applies the schemas for parts that no other schema has evaluated.
func (k *valueCheck) checkUnevaluated(n *schemaNode, v json.RawMessage, at *valuePath, had *evaluatedParts) bool {
	fits := true
	if n.unevaluatedFields != nil && expr.KindOf(v) == expr.KindObject {
		fields, _ := fieldsOf(v)
		for _, f := range fields {
			if !had.fields[f.Key] && !k.exhausted {
				had.addField(f.Key)
				fits = k.checkUndeclared(n, n.unevaluatedFields, f, at.childKey(f.Key)) && fits
			}
		}
	}
	if elements, ok := expr.Elements(v); ok && n.unevaluatedItems != nil {
		for i, e := range elements {
			if !had.items[i] && !k.exhausted {
				had.addItem(i)
				fits = k.checkValue(n.unevaluatedItems, e, at.childIndex(i), nil) && fits
			}
		}
	}
	return fits
}
