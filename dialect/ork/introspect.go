package ork

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/troupe-engine/troupe/definition"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/expr"
)

// compareSignatures compares the types of tasks with the signatures of their functions. It only
// warns, because a function may accept more than it declares. Each file is imported once.
func (r *reader) compareSignatures(p textPart) {
	if !p.getBool("introspect", false) || r.allProblems().Err() != nil {
		return
	}
	if r.Inspect == nil {
		r.Warnf(definition.At("introspect"), "is not done here: programs are not run, so functions cannot say what they take")
		return
	}
	known := map[string]*functionSet{}
	for _, t := range r.tasks {
		if t.executor != python || t.custom != nil {
			continue
		}
		p := t.inspectedProgram()
		of := cmp.Or(p.File, p.Module) + "\x00" + p.Python
		if known[of] == nil {
			known[of] = r.functionsOf(p)
		}
		t.compareFunction(known[of], cmp.Or(p.Function, "main"))
	}
}

// inspectedProgram returns the program of a task in the form that Inspect needs.
func (t *task) inspectedProgram() *flow.Program {
	return &flow.Program{File: t.file, Module: t.module, Function: t.function, Root: t.Root, Python: t.options.textOf("python")}
}

func (f execFields) textOf(name string) string {
	for _, m := range f {
		if m.Key == name {
			text, _ := expr.String(m.Value)
			return text
		}
	}
	return ""
}

// functionSet holds the signatures of a file's functions, or the reason why they are unknown.
type functionSet struct {
	failure string
	byName  map[string]*functionSignature
}

type functionSignature struct {
	params      []objectField // in written order; nil for a type without a name in workflow files
	required    []string
	takesOthers bool // the function accepts further parameters
	out         *orkType
}

func (r *reader) functionsOf(p *flow.Program) *functionSet {
	said, err := r.Inspect(p)
	if err != nil {
		return &functionSet{failure: err.Error()}
	}
	// recursive types have no form here, which is not a problem of the file
	theirs := &reader{Reporter: &definition.Reporter{}}
	theirs.readAliases(textPart{theirs, nil, append(append([]byte(`{"types":`), orObject(said.Types)...), '}')})
	all := &functionSet{byName: map[string]*functionSignature{}}
	members, _ := expr.Members(said.Functions)
	for _, m := range members {
		all.byName[m.Key] = theirs.readSignature(m.Value)
	}
	return all
}

func orObject(raw json.RawMessage) json.RawMessage {
	if expr.KindOf(raw) != expr.KindObject {
		return json.RawMessage("{}")
	}
	return raw
}

func (r *reader) readSignature(raw json.RawMessage) *functionSignature {
	f := &functionSignature{}
	in, _ := expr.Field(raw, "input_type")
	members, _ := expr.Members(in)
	for _, m := range members {
		f.params = append(f.params, objectField{m.Key, r.readKnownType(m.Value)})
	}
	required, _ := expr.Field(raw, "required")
	elements, _ := expr.Elements(required)
	for _, e := range elements {
		name, _ := expr.String(e)
		f.required = append(f.required, name)
	}
	_, f.takesOthers = expr.Field(raw, "more")
	out, _ := expr.Field(raw, "output_type")
	f.out = r.readKnownType(out)
	return f
}

// readKnownType reads a type of a function's signature. It returns nil if the type has no name in
// workflow files.
func (r *reader) readKnownType(raw json.RawMessage) *orkType {
	if expr.KindOf(raw) == expr.KindNull {
		return nil
	}
	return r.readType(raw, nil)
}

// compareFunction reports differences between a task and its function.
func (t *task) compareFunction(all *functionSet, name string) {
	at := t.at.Key("function")
	if t.function == "" {
		at = t.at
	}
	f := all.byName[name]
	switch {
	case all.failure != "":
		t.Warnf(at, "what the function %s takes could not be told: %.300s", name, all.failure)
		return
	case f == nil:
		t.Warnf(at, "there is no function %s%s", name, definition.Guess{Word: name, Names: all.functionNames})
		return
	}
	if !takesWhole(f, t.bindings) {
		t.compareInputs(f, name)
	}
	if t.outType != nil && !t.unchecked && !fitsIn(f.out, t.outType, looseScalar) {
		t.Warnf(t.at.Key("output_type"), "the function %s returns %s, the task says %s", name, f.out, t.outType)
	}
}

func (f *functionSet) functionNames() []string {
	names := []string{}
	for name := range f.byName {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// takesWhole reports whether a function gets all inputs of its task as one argument. This is the
// case if the function has a single parameter and no input has the name of that parameter.
func takesWhole(f *functionSignature, bindings []inputBinding) bool {
	return len(f.params) == 1 && !f.takesOthers && !slices.ContainsFunc(bindings,
		func(b inputBinding) bool { return b.name == f.params[0].name })
}

// compareInputs compares inputs with parameters. For a task with units, the additional inputs of
// each unit are not known here.
func (t *task) compareInputs(f *functionSignature, name string) {
	if len(t.bindings) == 0 {
		return
	}
	at := t.at.Key("inputs")
	bound := func(name string) bool {
		return slices.ContainsFunc(t.bindings, func(b inputBinding) bool { return b.name == name })
	}
	missing := slices.DeleteFunc(slices.Clone(f.required), bound)
	if len(missing) > 0 && t.writeEach() == nil {
		t.Warnf(at, "the function %s wants %s, which inputs do not give it", name, strings.Join(missing, ", "))
	}
	for _, b := range t.bindings {
		i := slices.IndexFunc(f.params, func(p objectField) bool { return p.name == b.name })
		switch {
		case i >= 0:
			t.compareArgument(b.name, f.params[i].is, name)
		case !f.takesOthers:
			t.Warnf(at.Key(b.name), "the function %s takes no %s, so it is left out%s", name,
				b.name, definition.Guess{Word: b.name, Names: f.paramNames})
		}
	}
}

func (f *functionSignature) paramNames() []string {
	names := make([]string, len(f.params))
	for i, p := range f.params {
		names[i] = p.name
	}
	return names
}

func (t *task) compareArgument(argument string, wanted *orkType, name string) {
	if t.inType == nil {
		return
	}
	if is := t.inType.fieldType(argument); !fitsIn(is, wanted, looseScalar) {
		t.Warnf(t.at.Key("inputs").Key(argument), "the function %s takes %s, the task says %s", name, wanted, is)
	}
}

// looseScalar reports whether Python accepts one scalar as another: all datetimes have one type,
// and an int is also a float.
func looseScalar(is, wanted string) bool {
	const time = "datetime_"
	return is == wanted || is == "int" && wanted == "float" || strings.HasPrefix(is, time) && strings.HasPrefix(wanted, time)
}
