package flows

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/definition"
	"github.com/troupe-engine/troupe/definition/compile"
	"github.com/troupe-engine/troupe/dialect/ork"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/cli/console"
	"github.com/troupe-engine/troupe/internal/program"
)

// rootFlag holds the flag of commands that read files of Ork.
type rootFlag struct {
	Root string `placeholder:"DIR" help:"For Ork workflow files: folder on the server in which tasks run, inside the server's --script-dir. Default: the folder of the workflow file."`
}

// loadedDefinition is a definition in Troupe's form: the file's text, or the translation of a
// workflow file of Ork.
type loadedDefinition struct {
	text     []byte
	workflow *ork.Workflow // nil unless the file is a workflow of Ork
	problems []wire.DefinitionProblem
}

// translateOrk reads a file that may be a workflow of Ork. The result of a faulty workflow has no
// text.
func (f rootFlag) translateOrk(file string, text []byte) (loadedDefinition, error) {
	if !ork.Is(text) {
		return loadedDefinition{text: text}, nil
	}
	root := f.Root
	if root == "" {
		var err error
		if root, err = folderOf(file); err != nil {
			return loadedDefinition{}, err
		}
	}
	o, err := ReadOrkOptions(root)
	if err != nil {
		return loadedDefinition{}, err
	}
	w, problems := ork.Translate(text, o)
	r := loadedDefinition{workflow: w, problems: toWire(prefixFolder(cmp.Or(f.Root, filepath.Dir(file)), problems))}
	if w != nil {
		r.text = w.Definition
	}
	return r, nil
}

// ReadOrkOptions reads the options for a workflow with local files below root; root is "" for a
// workflow without files.
func ReadOrkOptions(root string) (o ork.Options, err error) {
	o = ork.Options{Root: root, Inspect: inspectHere}
	if root != "" {
		o.Files = os.DirFS(root)
	}
	if file := os.Getenv("ORK_WORKERS_CONFIG"); file != "" {
		o.Workers.Name = ork.WorkersFile
		if o.Workers.Text, err = os.ReadFile(file); err != nil {
			return o, fmt.Errorf("ORK_WORKERS_CONFIG: %w", err)
		}
	}
	return o, nil
}

// prefixFolder makes the paths of other files in problems relative to the current folder.
func prefixFolder(folder string, problems definition.Problems) definition.Problems {
	for i, p := range problems {
		if p.File != "" {
			problems[i].File = filepath.Join(folder, filepath.FromSlash(p.File))
		}
	}
	return problems
}

// folderOf returns the folder of a workflow file, which is the root of its tasks; "" for stdin.
func folderOf(file string) (string, error) {
	if file == "-" {
		return "", nil
	}
	return filepath.Abs(filepath.Dir(file))
}

// inspecting is the time limit for importing one file.
const inspecting = 30 * time.Second

// inspectHere returns the parameters of Python functions. It imports the files of a workflow, and
// so is used only for workflows that need the parameters.
func inspectHere(p *flow.Program) (s ork.Signatures, err error) {
	ctx, cancel := context.WithTimeoutCause(context.Background(), inspecting, fmt.Errorf("importing it takes longer than %s", inspecting))
	defer cancel()
	runner := program.New(program.Options{Dir: p.Root})
	defer runner.Close()
	said, err := runner.Inspect(ctx, p, nil)
	if err != nil {
		return s, err
	}
	return s, json.Unmarshal(said, &s)
}

// checkOrk returns all problems of a workflow file of Ork.
func checkOrk(s definitionSource) definition.Problems {
	root, _ := folderOf(s.file) // cannot fail, because the file was read
	o, err := ReadOrkOptions(root)
	if err != nil {
		return definition.Problems{{Severity: definition.SeverityError, Msg: err.Error()}}
	}
	w, problems := ork.Translate(s.text, o)
	problems = prefixFolder(filepath.Dir(s.file), problems)
	if w == nil || w.Definition == nil {
		return problems
	}
	d, err := definition.ParseJSON(w.Definition)
	if err != nil {
		panic(fmt.Sprintf("a translation can be read: %v", err)) // an error is a bug of Troupe
	}
	return append(problems, w.InItsWords(compile.Check(d, flow.Limits{}))...)
}

// flowSlug returns the slug under which a file is published; for a workflow of Ork, its own name.
func (r *loadedDefinition) flowSlug(file string) string {
	switch {
	case r.workflow != nil && r.workflow.Name != "":
		return SlugOf(r.workflow.Name + ".yaml")
	case file == "-":
		return ""
	}
	return SlugOf(file)
}

func toWire(problems definition.Problems) []wire.DefinitionProblem {
	list := []wire.DefinitionProblem{}
	for _, p := range problems {
		list = append(list, wire.DefinitionProblem{File: p.File, Path: p.Path, Line: p.Line,
			Column: p.Column, Severity: string(p.Severity), Message: p.Msg})
	}
	return list
}

// allProblems returns the problems found in the file and the problems that a server found in the
// definition. For a workflow of Ork they use the names from its file.
func (r *loadedDefinition) allProblems(found []wire.DefinitionProblem) []wire.DefinitionProblem {
	if r.workflow == nil {
		return found
	}
	all := make(definition.Problems, len(found))
	for i, p := range found {
		all[i] = definition.Problem{Path: p.Path, Severity: definition.Severity(p.Severity), Msg: p.Message}
	}
	return append(r.problems, toWire(r.workflow.InItsWords(all))...)
}

// originNote returns a remark if the file is a workflow of Ork.
func (r *loadedDefinition) originNote() string {
	if r.workflow == nil {
		return ""
	}
	return " (translated from a workflow of Ork)"
}

// readDefinition reads a definition in Troupe's form or in Ork's.
func (f rootFlag) readDefinition(a *console.App, file string) (loadedDefinition, error) {
	text, err := a.ReadFile(file)
	if err != nil {
		return loadedDefinition{}, err
	}
	return f.translateOrk(file, text)
}
