package ork

import (
	"encoding/json"
	"io/fs"
	"slices"
	"strings"

	"github.com/troupe-engine/troupe/definition"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/expr"
)

// Workflow is a translated workflow of Ork.
type Workflow struct {
	Name       string
	Schedule   json.RawMessage // cron expression or object, as written; nil if there is none
	Tasks      []Task          // in the order written
	Definition json.RawMessage // the definition; nil if there is an error

	text *definition.Reporter // source of positions
}

// Task is a task of a workflow.
type Task struct {
	Name, Key string // name as written, and key of its node
	Executor  string
	DependsOn []string // names of tasks
}

// Options are the inputs of a translation besides the text.
type Options struct {
	Root string // folder of the relative paths of tasks; "" for the server's folder
	// Exists reports whether a file exists at a path below the root, or at an absolute path. If
	// Exists is nil, files are not checked.
	Exists func(path string) bool
	// Files are the files below the root: ork.yaml, workers.yaml and dbt projects are read there.
	// If Files is nil, they are not read.
	Files fs.FS
	// Workers replaces workers.yaml, if that is elsewhere.
	Workers Beside
	// Inspect returns the signatures of a Python program's functions, for workflows with
	// `introspect: true`. If Inspect is nil, programs are not inspected.
	Inspect func(*flow.Program) (Signatures, error)
}

// Is reports whether a text has the shape of an Ork workflow: it has tasks, imports, or a
// replicated job, and no nodes.
func Is(text []byte) bool {
	raw, _ := definition.Read(text)
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

// NameOf returns the name in the text of a workflow, or "" if there is none.
func NameOf(text []byte) string {
	raw, _ := definition.Read(text)
	field, _ := expr.Field(raw, "name")
	name, _ := expr.String(field)
	return name
}

// Translate converts a workflow to a definition. The workflow holds everything that could be read,
// and is nil if nothing could. It has a definition if none of the problems is an error.
func Translate(text []byte, o Options) (*Workflow, definition.Problems) {
	raw, reporter := definition.Read(text)
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

// InItsWords converts problems of the definition to problems of the workflow. The problems get the
// names of the workflow's tasks. Fields that the workflow also has get their position in its text.
func (w *Workflow) InItsWords(problems definition.Problems) definition.Problems {
	named := make(definition.Problems, len(problems))
	for i, p := range problems {
		p.Line, p.Column = 0, 0
		if head, _, _ := strings.Cut(p.Path, "."); slices.Contains(sharedFields, head) {
			p.Line, p.Column = w.text.Position((*definition.Place)(nil).Inside(p.Path))
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
