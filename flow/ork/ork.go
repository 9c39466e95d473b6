package ork

import (
	"encoding/json"
	"io/fs"
	"slices"
	"strings"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/define"
	"github.com/troupe-engine/troupe/flow/expr"
)

// Workflow is a workflow of Ork that has been translated.
type Workflow struct {
	Name       string
	Schedule   json.RawMessage // a cron expression or an object, as it was written; nil = none
	Tasks      []Task          // in the order written
	Definition json.RawMessage // of our own; nil if there is an error

	text *define.Reporter // knows its places
}

// Task is a task of a workflow.
type Task struct {
	Name, Key string // as it was written, and of the node it has become
	Executor  string
	DependsOn []string // names of tasks
}

// Options are what a workflow is translated with, beside its text.
type Options struct {
	Root   string                 // the folder that the paths of its tasks begin at; "" = that of the server
	Exists func(path string) bool // whether there is a file at a path below the root, or an absolute one; nil = not looked for
	// Files are those below the root: ork.yaml, workers.yaml and projects of dbt are read there;
	// nil = they are not.
	Files fs.FS
	// Workers stands for workers.yaml, if that is elsewhere.
	Workers Beside
	// What the functions of a Python program say they take and return, for workflows with
	// `introspect: true`; nil = they are not asked.
	Inspect func(*flow.Program) (Signatures, error)
}

// Is reports whether a text is a workflow of Ork, by its shape: it has tasks, imports them, or has
// a job that is to run several times, and no nodes.
func Is(text []byte) bool {
	raw, _ := define.Read(text)
	for _, own := range []string{"nodes", "start", "edges", "profile", "mode"} {
		if _, has := expr.Field(raw, own); has {
			return false
		}
	}
	return slices.ContainsFunc([]string{"tasks", "job_name", "import"}, func(field string) bool {
		_, has := expr.Field(raw, field)
		return has
	})
}

// NameOf returns the name that the text of a workflow gives it, "" for none.
func NameOf(text []byte) string {
	raw, _ := define.Read(text)
	field, _ := expr.Field(raw, "name")
	name, _ := expr.String(field)
	return name
}

// Translate makes a definition of a workflow. The workflow is what could be understood of the text,
// nil when that is nothing; it has a definition if there is no error among the problems.
func Translate(text []byte, o Options) (*Workflow, define.Problems) {
	raw, reporter := define.Read(text)
	if raw == nil {
		return nil, reporter.All()
	}
	r := &reader{Reporter: reporter, Options: o}
	if kind := expr.KindOf(raw); kind != expr.KindObject {
		r.Errorf(nil, "a workflow must be an object, is %s", kind)
		return nil, r.allProblems()
	}
	w := r.readWorkflow(textPart{r, nil, raw})
	w.text = reporter
	problems := r.allProblems()
	if problems.Err() != nil {
		w.Definition = nil
	}
	return w, problems
}

// InItsWords tells problems of the definition as problems of the workflow: with the names of its
// tasks, and with positions in its own text where that says the same as the definition.
func (w *Workflow) InItsWords(problems define.Problems) define.Problems {
	named := make(define.Problems, len(problems))
	for i, p := range problems {
		p.Line, p.Column = 0, 0
		if head, _, _ := strings.Cut(p.Path, "."); slices.Contains(sharedFields, head) {
			p.Line, p.Column = w.text.Position((*define.Place)(nil).Inside(p.Path))
		}
		if inside, ok := strings.CutPrefix(p.Path, "nodes."); ok {
			key, rest, nested := strings.Cut(inside, ".")
			p.Path = "tasks." + w.taskName(key)
			if nested {
				p.Path += "." + strings.TrimPrefix(rest, "exec.")
			}
		}
		named[i] = p
	}
	return named
}

func (w *Workflow) taskName(key string) string {
	for _, t := range w.Tasks {
		if t.Key == key {
			return t.Name
		}
	}
	return key
}
