package ork

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/troupe-engine/troupe/definition"
	"github.com/troupe-engine/troupe/flow/expr"
)

// outputRef is a reference to a part of a task's output.
type outputRef struct {
	text string // as written
	to   *task
	path string
}

// toDefinition returns the reference in the form of a definition.
func (f *outputRef) toDefinition() string {
	if f.path == "" {
		return "$deps." + f.to.key
	}
	return "$deps." + f.to.key + "." + f.path
}

// connectTasks reads the references between tasks.
func (r *reader) connectTasks() {
	for _, t := range r.tasks {
		t.dependsOn()
		t.addModelDeps()
	}
	for _, t := range r.tasks {
		t.readUnits()
		t.translateTemplates()
	}
	r.checkCycle()
	for _, t := range r.tasks {
		t.readInputs()
	}
}

func (t *task) dependsOn() {
	at := t.at.Key("depends_on")
	seen := map[string]bool{}
	for i, name := range t.getTexts("depends_on") {
		dep := t.byName[name]
		switch at := at.Index(i); {
		case dep == t:
			t.Errorf(at, "task %s cannot depend on itself", t.name)
		case seen[name]:
			t.Errorf(at, "tasks.%s depends_on has duplicate '%s'", t.name, name)
		case dep == nil:
			t.Errorf(at, "task %s depends on unknown task %.80s%s", t.name, name, t.guessTask(name))
		default:
			t.deps = append(t.deps, dep)
		}
		seen[name] = true
	}
}

// guessTask suggests another task for an unknown name.
func (r *reader) guessTask(name string) definition.Guess {
	return definition.Guess{Word: name, Names: func() (names []string) {
		for _, t := range r.tasks {
			names = append(names, t.name)
		}
		return names
	}}
}

// readUnits reads the number of instances of a task.
func (t *task) readUnits() {
	if v, has := t.getField("parallel"); has {
		switch expr.KindOf(v) {
		case expr.KindNumber:
			if t.textPart.getCount("parallel", 1) != nil {
				t.parallel = v
			}
		case expr.KindString:
			t.count = t.readTaskRef("parallel", v)
		default:
			t.Errorf(t.at.Key("parallel"), "must be a number or a reference such as discover.count, is %s", expr.KindOf(v))
		}
	}
	if v, has := t.getKind("foreach", expr.KindString); has {
		t.items = t.readTaskRef("foreach", v)
	}
	if t.concurrency != nil && t.parallel == nil && t.count == nil && t.items == nil {
		t.Errorf(t.at.Key("concurrency"), "is for tasks with parallel or foreach: write one of them, or leave it out")
	}
}

// readTaskRef reads a reference of the form TASK.FIELD or tasks.TASK.output.FIELD. The named task
// becomes a dependency, as Ork documents.
func (t *task) readTaskRef(field string, v json.RawMessage) *outputRef {
	text, _ := expr.String(v)
	return t.readTaskRefAt(t.at.Key(field), text)
}

// readTaskRefAt resolves a reference at a place.
func (t *task) readTaskRefAt(at *definition.Place, text string) *outputRef {
	to, path := t.findTask(strings.TrimPrefix(text, "tasks."))
	if strings.HasPrefix(text, "tasks.") {
		path = strings.TrimPrefix(strings.TrimPrefix(path, "output"), ".")
	}
	switch {
	case to == t:
		t.Errorf(at, "task %s cannot depend on itself", t.name)
		return nil
	case to == nil:
		head, _, _ := strings.Cut(text, ".")
		t.Errorf(at, "%.80q names no task: write a task's name and a field of its output, such "+
			"as discover.files%s", text, t.guessTask(head))
		return nil
	}
	t.waitFor(to, at, text)
	return &outputRef{text, to, path}
}

// waitFor adds a dependency on a task because of a reference.
func (t *task) waitFor(to *task, at *definition.Place, text string) {
	if !slices.Contains(t.deps, to) {
		t.deps = append(t.deps, to)
		t.Warnf(at, "%.80q makes %s a dependency: add it to depends_on", text, to.name)
	}
}

// checkCycle reports one task in a cycle of dependencies.
func (r *reader) checkCycle() {
	const under, done = 1, 2
	state := map[*task]int{}
	var visit func(t *task) *task
	visit = func(t *task) *task {
		if state[t] != 0 {
			if state[t] == under {
				return t
			}
			return nil
		}
		state[t] = under
		for _, d := range t.deps {
			if found := visit(d); found != nil {
				return found
			}
		}
		state[t] = done
		return nil
	}
	for _, t := range r.tasks {
		if found := visit(t); found != nil {
			r.Errorf(found.at.Key("depends_on"), "workflow contains a cycle involving task %s", found.name)
			return
		}
	}
}
