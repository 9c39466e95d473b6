package ork

import (
	"encoding/json"
	"math"
	"slices"
	"strings"

	"github.com/troupe-engine/troupe/flow/define"
	"github.com/troupe-engine/troupe/flow/expr"
)

// reader reads one workflow.
type reader struct {
	*define.Reporter
	Options
	name     string
	types    typeSet
	tasks    []*task
	byName   map[string]*task
	defaults defaults

	settings settings
	workers  workerSet
	projects []*project // imported, and their models
	models   []*model
	byModel  map[string]*model

	others []other         // files that were read beside the workflow
	found  define.Problems // of them, and of those of projects
}

// defaults are what tasks take that say nothing themselves.
type defaults struct {
	timeout, delay *float64 // seconds
	retries        *int
}

// part is an object of the text.
type part struct {
	*reader
	at  *define.Place
	raw json.RawMessage
}

// get is a field; a null counts as none.
func (p part) get(name string) (json.RawMessage, bool) {
	v, has := expr.Field(p.raw, name)
	return v, has && expr.KindOf(v) != expr.KindNull
}

// want is a field of a kind. What is of another one is told and counts as none.
func (p part) want(name string, kind expr.Kind) (json.RawMessage, bool) {
	v, has := p.get(name)
	if has && expr.KindOf(v) != kind {
		p.Errorf(p.at.Key(name), "must be %s, is %s", kind, expr.KindOf(v))
		return nil, false
	}
	return v, has
}

func (p part) text(name string) string {
	v, _ := p.want(name, expr.KindString)
	text, _ := expr.String(v)
	return text
}

func (p part) truth(name string, otherwise bool) bool {
	v, has := p.want(name, expr.KindBool)
	if !has {
		return otherwise
	}
	return string(v) == "true"
}

// texts is a list of texts.
func (p part) texts(name string) []string {
	v, _ := p.want(name, expr.KindArray)
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

// count is a whole number that is at least so much; nil when nothing is said.
func (p part) count(name string, least int) *int {
	v, has := p.want(name, expr.KindNumber)
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

// seconds is a time in seconds, fractions included; nil when nothing is said.
func (p part) seconds(name string) *float64 {
	v, has := p.want(name, expr.KindNumber)
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

// below is a field that is an object.
func (p part) below(name string) (part, bool) {
	v, has := p.want(name, expr.KindObject)
	return part{p.reader, p.at.Key(name), v}, has
}

// known refuses fields that are none.
func (p part) known(fields ...string) {
	members, _ := expr.Members(p.raw)
	for _, m := range members {
		if slices.Contains(fields, m.Key) {
			continue
		}
		p.Errorf(p.at.Key(m.Key), "unknown field%s", define.Guess{Word: m.Key, Names: func() []string { return fields }})
	}
}

var workflowFields = []string{"name", "description", "schedule", "types", "import", "tasks", "on_error", "input_shape", "defaults", "introspect"}

// workflow reads the whole text.
func (r *reader) workflow(p part) *Workflow {
	if _, replicated := p.get("job_name"); replicated {
		return r.replicated(p)
	}
	p.known(workflowFields...)
	r.name = r.workflowName(p)
	r.readSettings(r.beside(SettingsFile))
	if r.Workers.Name == "" {
		r.Workers = r.beside(WorkersFile)
	}
	r.readWorkers(r.Workers)
	r.imports(p)
	r.aliases(p)
	r.readDefaults(p)
	r.readTasks(p)
	r.connect()
	r.introspect(p)
	schedule, _ := p.get("schedule")
	w := &Workflow{Name: r.name, Schedule: schedule}
	for _, t := range r.tasks {
		w.Tasks = append(w.Tasks, Task{t.name, t.key, t.executor, t.names()})
	}
	w.Definition = r.definition(p)
	return w
}

// workflowName is what the workflow is addressed by. It is a part of URLs.
func (r *reader) workflowName(p part) string {
	name := p.text("name")
	at := define.At("name")
	switch _, said := p.want("name", expr.KindString); {
	case strings.TrimSpace(name) == "":
		if _, has := p.get("name"); said || !has {
			r.Errorf(at, "workflow name cannot be empty")
		}
	default:
		if err := CheckName(name); err != nil {
			r.Errorf(at, "%s", err)
		}
	}
	if text, has := p.want("description", expr.KindString); has {
		if said, _ := expr.String(text); strings.TrimSpace(said) == "" {
			r.Errorf(define.At("description"), "workflow description cannot be empty")
		}
	}
	return name
}

func (r *reader) readDefaults(p part) {
	d, has := p.below("defaults")
	if !has {
		return
	}
	d.known("timeout", "retries", "retry_delay")
	r.defaults = defaults{d.seconds("timeout"), d.seconds("retry_delay"), d.count("retries", 0)}
}
