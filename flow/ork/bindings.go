package ork

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/troupe-engine/troupe/flow/define"
	"github.com/troupe-engine/troupe/flow/expr"
	"github.com/troupe-engine/troupe/flow/types"
)

// binding is one argument of a task.
type binding struct {
	name  string
	value json.RawMessage // of a constant
	ref   *reference
}

// readInputs reads the arguments of a task, and compares them with the types it declares.
func (t *task) readInputs() {
	p, has := t.below("inputs")
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
		wanted := (*typ)(nil)
		if t.inType != nil {
			if wanted = t.inType.field(m.Key); wanted == nil {
				t.Errorf(at, "task '%s' inputs contains unknown binding '%s'", t.name, m.Key)
			}
		}
		if b := t.bind(m, wanted, at); b != nil {
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

// typedChain tells who has types what is missing beside them: a task that others depend on, and one that depends on others.
func (t *task) typedChain() {
	for _, d := range t.deps {
		if t.inType != nil && d.outType == nil && !t.said(d, "output_type", "output") {
			t.Warnf(d.at, "task '%s' requires 'output_type' because task '%s' depends on it", d.name, t.name)
		}
	}
}

func (*task) said(of *task, fields ...string) bool {
	return slices.ContainsFunc(fields, func(f string) bool { _, has := of.get(f); return has })
}

// bind reads one argument, nil when it means nothing.
func (t *task) bind(m expr.Member, wanted *typ, at *define.Place) *binding {
	p := part{t.reader, at, m.Value}
	value, constant := expr.Field(m.Value, "const")
	ref, referred := p.get("ref")
	if expr.KindOf(m.Value) != expr.KindObject || constant == referred {
		t.Errorf(at, "task '%s' input binding '%s' must define exactly one of: const, ref", t.name, m.Key)
		return nil
	}
	p.known("const", "ref")
	if constant {
		if wanted != nil {
			t.constant(value, wanted, at.Key("const"))
		}
		return &binding{name: m.Key, value: value}
	}
	text, _ := expr.String(ref)
	to := t.output(m.Key, text, at.Key("ref"))
	if to == nil {
		return nil
	}
	t.assignable(to, wanted, at.Key("ref"))
	return &binding{name: m.Key, ref: to}
}

// output reads a reference of the form tasks.TASK.output.FIELD.
func (t *task) output(name, text string, at *define.Place) *reference {
	inside, begins := strings.CutPrefix(text, "tasks.")
	to, rest := t.named(inside)
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
	return &reference{text, to, strings.TrimSuffix(path, ".")}
}

// assignable compares what a reference leads to with what the argument is to be.
func (t *task) assignable(f *reference, wanted *typ, at *define.Place) {
	is := f.to.outType
	if is == nil || f.to.items != nil || f.to.count != nil || f.to.parallel != nil {
		if is == nil && wanted != nil && !t.said(f.to, "output_type", "output") {
			t.Warnf(f.to.at, "task '%s' requires 'output_type' because task '%s' depends on it", f.to.name, t.name)
		}
		return
	}
	for name := range strings.SplitSeq(f.path, ".") {
		if f.path == "" {
			break
		}
		if !is.object() {
			t.Errorf(at, "task '%s' ref '%s' cannot access field '%s' on non-object value", t.name, f.text, name)
			return
		}
		if is = is.field(name); is == nil {
			t.Errorf(at, "task '%s' ref '%s' missing field '%s'", t.name, f.text, name)
			return
		}
	}
	if !fits(is, wanted) {
		t.Errorf(at, "the value is %s, the argument wants %s", is, wanted)
	}
}

// constant compares a value with a type.
func (r *reader) constant(v json.RawMessage, wanted *typ, at *define.Place) {
	kind := expr.KindOf(v)
	switch {
	case wanted.optional && kind == expr.KindNull:
	case wanted.of != nil:
		elements, ok := expr.Elements(v)
		if !ok {
			r.Errorf(at, "%s expected list, got %s", at, kind)
		}
		for i, e := range elements {
			r.constant(e, wanted.of, at.Index(i))
		}
	case wanted.scalar != "":
		if !scalarFits(v, wanted.scalar) {
			r.Errorf(at, "%s expected %s, got %s", at, wanted.scalar, kind)
		}
	case kind != expr.KindObject:
		r.Errorf(at, "%s expected object, got %s", at, kind)
	default:
		r.constantObject(v, wanted, at)
	}
}

func (r *reader) constantObject(v json.RawMessage, wanted *typ, at *define.Place) {
	members, _ := expr.Members(v)
	for _, m := range members {
		if is := wanted.field(m.Key); is == nil {
			r.Errorf(at.Key(m.Key), "%s has unexpected field '%s'", at, m.Key)
		} else {
			r.constant(m.Value, is, at.Key(m.Key))
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
