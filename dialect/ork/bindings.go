package ork

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/troupe-engine/troupe/definition"
	"github.com/troupe-engine/troupe/flow/expr"
	"github.com/troupe-engine/troupe/flow/types"
)

// inputBinding is one argument of a task.
type inputBinding struct {
	name  string
	value json.RawMessage // value of a constant
	ref   *outputRef
}

// readInputs reads the arguments of a task, and compares them with the types that the task
// declares.
func (t *task) readInputs() {
	p, has := t.getObject("inputs")
	if !has {
		t.typedChain()
		return
	}
	if t.static != nil {
		t.Errorf(t.at.Key("input"), "the arguments are said by inputs: give one of them")
	}
	if t.inType == nil {
		t.Warnf(p.at, "task '%s' defines 'inputs' but is missing 'input_type'", t.name)
	}
	members, _ := expr.Members(p.raw)
	for _, m := range members {
		at := p.at.Key(m.Key)
		wanted := (*orkType)(nil)
		if t.inType != nil {
			if wanted = t.inType.fieldType(m.Key); wanted == nil {
				t.Errorf(at, "task '%s' inputs contains unknown binding '%s'", t.name, m.Key)
			}
		}
		if b := t.readBinding(m, wanted, at); b != nil {
			t.bindings = append(t.bindings, *b)
		}
	}
	if t.inType == nil {
		return
	}
	for _, f := range t.inType.fields {
		if f.is != nil && f.is.optional {
			continue
		}
		if !slices.ContainsFunc(members, func(m expr.Member) bool { return m.Key == f.name }) {
			t.Errorf(p.at, "task '%s' inputs missing binding for '%s'", t.name, f.name)
		}
	}
}

// typedChain warns about missing types: of a task on which a typed task depends, and of a task that
// depends on a typed task.
func (t *task) typedChain() {
	for _, d := range t.deps {
		if t.inType != nil && d.outType == nil && !t.hasField(d, "output_type", "output") {
			t.Warnf(d.at, "task '%s' requires 'output_type' because task '%s' depends on it", d.name, t.name)
		}
	}
}

func (*task) hasField(of *task, fields ...string) bool {
	return slices.ContainsFunc(fields, func(f string) bool { _, has := of.getField(f); return has })
}

// readBinding reads one argument. It returns nil if the argument is invalid.
func (t *task) readBinding(m expr.Member, wanted *orkType, at *definition.Place) *inputBinding {
	p := textPart{t.reader, at, m.Value}
	value, constant := expr.Field(m.Value, "const")
	ref, referred := p.getField("ref")
	if expr.KindOf(m.Value) != expr.KindObject || constant == referred {
		t.Errorf(at, "task '%s' input binding '%s' must define exactly one of: const, ref", t.name, m.Key)
		return nil
	}
	p.refuseUnknown("const", "ref")
	if constant {
		if wanted != nil {
			t.checkConstant(value, wanted, at.Key("const"))
		}
		return &inputBinding{name: m.Key, value: value}
	}
	text, _ := expr.String(ref)
	to := t.parseOutputRef(m.Key, text, at.Key("ref"))
	if to == nil {
		return nil
	}
	t.checkAssignable(to, wanted, at.Key("ref"))
	return &inputBinding{name: m.Key, ref: to}
}

// parseOutputRef reads a reference of the form tasks.TASK.output.FIELD.
func (t *task) parseOutputRef(name, text string, at *definition.Place) *outputRef {
	inside, begins := strings.CutPrefix(text, "tasks.")
	to, rest := t.findTask(inside)
	path, isOutput := strings.CutPrefix(rest+".", "output.")
	switch {
	case begins && to == nil && strings.Contains(inside, ".output"):
		head, _, _ := strings.Cut(inside, ".output")
		t.Errorf(at, "task '%s' input binding '%s' ref '%.80s' targets '%.80s' which is not listed in depends_on", t.name, name, text, head)
		return nil
	case !begins || to == nil || !isOutput:
		t.Errorf(at, "task '%s' input binding '%s' has invalid ref '%.80s'; expected tasks.<task>.output[.<field>...]", t.name, name, text)
		return nil
	case !slices.Contains(t.deps, to):
		t.Errorf(at, "task '%s' input binding '%s' ref '%.80s' targets '%s' which is not listed in depends_on", t.name, name, text, to.name)
		return nil
	}
	return &outputRef{text, to, strings.TrimSuffix(path, ".")}
}

// checkAssignable compares the type of a reference with the type of the argument.
func (t *task) checkAssignable(f *outputRef, wanted *orkType, at *definition.Place) {
	is := f.to.outType
	if is == nil || f.to.items != nil || f.to.count != nil || f.to.parallel != nil {
		if is == nil && wanted != nil && !t.hasField(f.to, "output_type", "output") {
			t.Warnf(f.to.at, "task '%s' requires 'output_type' because task '%s' depends on it", f.to.name, t.name)
		}
		return
	}
	for name := range strings.SplitSeq(f.path, ".") {
		if f.path == "" {
			break
		}
		if !is.isObject() {
			t.Errorf(at, "task '%s' ref '%s' cannot access field '%s' on non-object value", t.name, f.text, name)
			return
		}
		if is = is.fieldType(name); is == nil {
			t.Errorf(at, "task '%s' ref '%s' missing field '%s'", t.name, f.text, name)
			return
		}
	}
	if !isAssignable(is, wanted) {
		t.Errorf(at, "the value is %s, the argument wants %s", is, wanted)
	}
}

// checkConstant compares a value with a type.
func (r *reader) checkConstant(v json.RawMessage, wanted *orkType, at *definition.Place) {
	kind := expr.KindOf(v)
	switch {
	case wanted.optional && kind == expr.KindNull:
	case wanted.of != nil:
		elements, ok := expr.Elements(v)
		if !ok {
			r.Errorf(at, "%s expected list, got %s", at, kind)
		}
		for i, e := range elements {
			r.checkConstant(e, wanted.of, at.Index(i))
		}
	case wanted.scalar != "":
		if !scalarFits(v, wanted.scalar) {
			r.Errorf(at, "%s expected %s, got %s", at, wanted.scalar, kind)
		}
	case kind != expr.KindObject:
		r.Errorf(at, "%s expected object, got %s", at, kind)
	default:
		r.checkConstantObject(v, wanted, at)
	}
}

func (r *reader) checkConstantObject(v json.RawMessage, wanted *orkType, at *definition.Place) {
	members, _ := expr.Members(v)
	for _, m := range members {
		if is := wanted.fieldType(m.Key); is == nil {
			r.Errorf(at.Key(m.Key), "%s has unexpected field '%s'", at, m.Key)
		} else {
			r.checkConstant(m.Value, is, at.Key(m.Key))
		}
	}
	for _, f := range wanted.fields {
		if _, has := expr.Field(v, f.name); !has && !f.is.optional {
			r.Errorf(at, "%s missing required field '%s'", at, f.name)
		}
	}
}

func scalarFits(v json.RawMessage, scalar string) bool {
	switch expr.KindOf(v) {
	case expr.KindBool:
		return scalar == "bool"
	case expr.KindNumber:
		return scalar == "float" || scalar == "int" && expr.Whole(v)
	case expr.KindString:
		text, _ := expr.String(v)
		return scalar == "str" || types.IsTime(scalar, text)
	}
	return false
}
