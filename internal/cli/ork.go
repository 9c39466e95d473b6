package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/compile"
	"github.com/troupe-engine/troupe/flow/define"
	"github.com/troupe-engine/troupe/flow/ork"
	"github.com/troupe-engine/troupe/internal/program"
)

// rootFlag is for what reads files of Ork.
type rootFlag struct {
	Root string `placeholder:"DIR" help:"Of a workflow file of Ork: the folder, as the server knows it, in which its tasks run and their files are; by default that of the workflow file. It has to be inside the server's --script-dir."`
}

// loadedDefinition is a definition in our form: the text itself, or what a workflow file of Ork
// becomes.
type loadedDefinition struct {
	text     []byte
	workflow *ork.Workflow // nil = it was none
	problems []wire.DefinitionProblem
}

// translateOrk reads a file that may be one of Ork. One that is, and is wrong, has no text.
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
	o, err := orkOptions(root)
	if err != nil {
		return loadedDefinition{}, err
	}
	w, problems := ork.Translate(text, o)
	r := loadedDefinition{workflow: w, problems: toWire(prefixFolder(orElse(f.Root, filepath.Dir(file)), problems))}
	if w != nil {
		r.text = w.Definition
	}
	return r, nil
}

// orkOptions are those of a workflow whose files are here, below a root; "" = it has none.
func orkOptions(root string) (o ork.Options, err error) {
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

// prefixFolder are problems with the paths of other files as somebody here would write them.
func prefixFolder(folder string, problems define.Problems) define.Problems {
	for i, p := range problems {
		if p.File != "" {
			problems[i].File = filepath.Join(folder, filepath.FromSlash(p.File))
		}
	}
	return problems
}

// folderOf is where a workflow file is, which its tasks take for their root; "" = it comes from
// stdin.
func folderOf(file string) (string, error) {
	if file == "-" {
		return "", nil
	}
	return filepath.Abs(filepath.Dir(file))
}

// inspecting is how long importing one file may take.
const inspecting = 30 * time.Second

// inspectHere has functions of Python say what they take: of workflows that ask for it, since their
// files are imported for that.
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

// checkOrk tells everything that is wrong with a workflow file of Ork.
func checkOrk(s definitionSource) define.Problems {
	root, _ := folderOf(s.file) // of one that was read
	o, err := orkOptions(root)
	if err != nil {
		return define.Problems{{Severity: define.SeverityError, Msg: err.Error()}}
	}
	w, problems := ork.Translate(s.text, o)
	problems = prefixFolder(filepath.Dir(s.file), problems)
	if w == nil || w.Definition == nil {
		return problems
	}
	d, err := define.ParseJSON(w.Definition)
	if err != nil {
		panic(fmt.Sprintf("a translation can be read: %v", err)) // a bug of ours
	}
	return append(problems, w.InItsWords(compile.Check(d, flow.Limits{}))...)
}

// flowSlug is what a file is published as: one of Ork by its own name.
func (r *loadedDefinition) flowSlug(file string) string {
	switch {
	case r.workflow != nil && r.workflow.Name != "":
		return slugOf(r.workflow.Name + ".yaml")
	case file == "-":
		return ""
	}
	return slugOf(file)
}

func toWire(problems define.Problems) []wire.DefinitionProblem {
	list := []wire.DefinitionProblem{}
	for _, p := range problems {
		list = append(list, wire.DefinitionProblem{File: p.File, Path: p.Path, Line: p.Line, Column: p.Column, Severity: string(p.Severity), Msg: p.Msg})
	}
	return list
}

// allProblems is what was found in the file, and what a server has found in the definition: of one
// of Ork by what the file calls it.
func (r *loadedDefinition) allProblems(found []wire.DefinitionProblem) []wire.DefinitionProblem {
	if r.workflow == nil {
		return found
	}
	all := make(define.Problems, len(found))
	for i, p := range found {
		all[i] = define.Problem{Path: p.Path, Severity: define.Severity(p.Severity), Msg: p.Msg}
	}
	return append(r.problems, toWire(r.workflow.InItsWords(all))...)
}

// originNote says of a file that it was one of Ork.
func (r *loadedDefinition) originNote() string {
	if r.workflow == nil {
		return ""
	}
	return " (translated from a workflow of Ork)"
}

// readDefinition reads a definition, in our form or in Ork's.
func (f rootFlag) readDefinition(a *app, file string) (loadedDefinition, error) {
	text, err := a.readFile(file)
	if err != nil {
		return loadedDefinition{}, err
	}
	return f.translateOrk(file, text)
}
