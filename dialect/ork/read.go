package ork

import (
	"encoding/json"
	"math"
	"slices"
	"strings"

	"github.com/troupe-engine/troupe/definition"
	"github.com/troupe-engine/troupe/flow/expr"
)

// reader reads one workflow.
type reader struct {
	*definition.Reporter
	Options
	name     string
	types    typeSet
	tasks    []*task
	byName   map[string]*task
	defaults taskDefaults

	settings orkSettings
	workers  workerSet
	projects []*dbtProject // imported projects, and their models
	models   []*dbtModel
	byModel  map[string]*dbtModel

	others        []besideFile        // other files that were read
	foundProblems definition.Problems // problems of other files and of projects
}

// taskDefaults are the defaults for tasks.
type taskDefaults struct {
	timeout, delay *float64 // seconds
	retries        *int
}

// textPart is an object of the text.
type textPart struct {
	*reader
	at  *definition.Place
	raw json.RawMessage
}

// getField returns a field; null counts as absent.
func (p textPart) getField(name string) (json.RawMessage, bool) {
	v, has := expr.Field(p.raw, name)
	return v, has && expr.KindOf(v) != expr.KindNull
}

// getKind returns a field of the given kind. A field of another kind is reported and counts as
// absent.
func (p textPart) getKind(name string, kind expr.Kind) (json.RawMessage, bool) {
	v, has := p.getField(name)
	if has && expr.KindOf(v) != kind {
		p.Errorf(p.at.Key(name), "must be %s, is %s", kind, expr.KindOf(v))
		return nil, false
	}
	return v, has
}

func (p textPart) getText(name string) string {
	v, _ := p.getKind(name, expr.KindString)
	text, _ := expr.String(v)
	return text
}

func (p textPart) getBool(name string, otherwise bool) bool {
	v, has := p.getKind(name, expr.KindBool)
	if !has {
		return otherwise
	}
	return string(v) == "true"
}

// getTexts returns a list of texts.
func (p textPart) getTexts(name string) []string {
	v, _ := p.getKind(name, expr.KindArray)
	elements, _ := expr.Elements(v)
	var list []string
	for i, e := range elements {
		text, ok := expr.String(e)
		if !ok {
			p.Errorf(p.at.Key(name).Index(i), "must be a text, is %s", expr.KindOf(e))
			continue
		}
		list = append(list, text)
	}
	return list
}

// getCount returns a whole number with a minimum. It returns nil if the field is absent.
func (p textPart) getCount(name string, least int) *int {
	v, has := p.getKind(name, expr.KindNumber)
	if !has {
		return nil
	}
	f, _ := expr.Number(v)
	if f != math.Trunc(f) || f < float64(least) || f > math.MaxInt32 {
		p.Errorf(p.at.Key(name), "must be a whole number of at least %d, is %.40s", least, v)
		return nil
	}
	n := int(f)
	return &n
}

// getSeconds returns a time in seconds, possibly with a fraction. It returns nil if the field is
// absent.
func (p textPart) getSeconds(name string) *float64 {
	v, has := p.getKind(name, expr.KindNumber)
	if !has {
		return nil
	}
	f, _ := expr.Number(v)
	if !(f >= 0) || f > 10*365*24*3600 {
		p.Errorf(p.at.Key(name), "must be seconds, 0 at least, is %.40s", v)
		return nil
	}
	return &f
}

// getObject returns a field that is an object.
func (p textPart) getObject(name string) (textPart, bool) {
	v, has := p.getKind(name, expr.KindObject)
	return textPart{p.reader, p.at.Key(name), v}, has
}

// refuseUnknown reports unknown fields.
func (p textPart) refuseUnknown(fields ...string) {
	members, _ := expr.Members(p.raw)
	for _, m := range members {
		if slices.Contains(fields, m.Key) {
			continue
		}
		p.Errorf(p.at.Key(m.Key), "unknown field%s", definition.Guess{Word: m.Key, Names: func() []string { return fields }})
	}
}

var workflowFields = []string{"name", "description", "schedule", "types", "import", "tasks",
	"on_error", "input_shape", "defaults", "introspect"}

// readWorkflow reads the whole text.
func (r *reader) readWorkflow(p textPart) *Workflow {
	if _, replicated := p.getField("job_name"); replicated {
		return r.readReplicated(p)
	}
	p.refuseUnknown(workflowFields...)
	r.name = r.workflowName(p)
	r.readSettings(r.readBeside(SettingsFile))
	if r.Workers.Name == "" {
		r.Workers = r.readBeside(WorkersFile)
	}
	r.readWorkers(r.Workers)
	r.readImports(p)
	r.readAliases(p)
	r.readDefaults(p)
	r.readTasks(p)
	r.connectTasks()
	r.compareSignatures(p)
	schedule, _ := p.getField("schedule")
	w := &Workflow{Name: r.name, Schedule: schedule}
	for _, t := range r.tasks {
		w.Tasks = append(w.Tasks, Task{t.name, t.key, t.executor, t.depNames()})
	}
	w.Definition = r.writeDefinition(p)
	return w
}

// workflowName returns the name of the workflow, which is a part of URLs.
func (r *reader) workflowName(p textPart) string {
	name := p.getText("name")
	at := definition.At("name")
	switch _, said := p.getKind("name", expr.KindString); {
	case strings.TrimSpace(name) == "":
		if _, has := p.getField("name"); said || !has {
			r.Errorf(at, "workflow name cannot be empty")
		}
	default:
		if err := CheckName(name); err != nil {
			r.Errorf(at, "%s", err)
		}
	}
	if text, has := p.getKind("description", expr.KindString); has {
		if said, _ := expr.String(text); strings.TrimSpace(said) == "" {
			r.Errorf(definition.At("description"), "workflow description cannot be empty")
		}
	}
	return name
}

func (r *reader) readDefaults(p textPart) {
	d, has := p.getObject("defaults")
	if !has {
		return
	}
	d.refuseUnknown("timeout", "retries", "retry_delay")
	r.defaults = taskDefaults{d.getSeconds("timeout"), d.getSeconds("retry_delay"), d.getCount("retries", 0)}
}
