package flows

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/troupe-engine/troupe/api/client"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/definition"
	"github.com/troupe-engine/troupe/definition/compile"
	"github.com/troupe-engine/troupe/dialect/ork"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/cases"
	"github.com/troupe-engine/troupe/internal/cli/console"
)

// StrictFlag is the flag of commands that check definitions.
type StrictFlag struct {
	Strict bool `help:"Treat warnings as errors."`
}

func (f StrictFlag) checkOptions() []client.CheckOption {
	if f.Strict {
		return []client.CheckOption{client.Strict()}
	}
	return nil
}

// refusalOf returns the problems of a file as errors if the flag is set and a warning is among
// them, else nil.
func (f StrictFlag) refusalOf(found []wire.DefinitionProblem) []wire.DefinitionProblem {
	isWarning := func(p wire.DefinitionProblem) bool { return p.Severity == string(definition.SeverityWarning) }
	if !f.Strict || !slices.ContainsFunc(found, isWarning) {
		return nil
	}
	refusal := slices.Clone(found)
	for i, p := range refusal {
		if isWarning(p) {
			refusal[i].Severity = string(definition.SeverityError)
		}
	}
	return refusal
}

type flowValidateCmd struct {
	Files []string `arg:"" name:"file" help:"Definitions in YAML or JSON, or folders; - is stdin."`
	StrictFlag
	Server string `placeholder:"URL" help:"Validate on this server, with its limits and flows. Without it, called flows are looked up in the given files."`
	Token  string `env:"TROUPE_TOKEN" help:"Bearer token for the server."`
	console.TrustFlags
	console.OutputFlag
}

// Help describes the stable output format.
func (*flowValidateCmd) Help() string {
	return `Each problem is a line FILE:LINE:COLUMN: error|warning|note: PATH: message.
A note is about a fact that only a server knows; --server checks it.

Exit codes: 0 = all definitions are valid; 1 = a definition has an error (with --strict: or a warning);
2 = invalid command line or unreadable file.`
}

// definitionSource is a file with a definition.
type definitionSource struct {
	file string
	text []byte
}

// checkedFile is the validation result of a file.
type checkedFile struct {
	File string `json:"file"`
	*wire.Validation
}

func (c *flowValidateCmd) Run(ctx context.Context, a *console.App) error {
	sources, err := readSources(a, c.Files)
	if err != nil {
		return console.UsageError{Err: err}
	}
	check, err := c.newChecker(sources)
	if err != nil {
		return err
	}
	var failed error
	together := compareSources(sources)
	for _, s := range sources {
		v, err := &wire.Validation{Problems: noFlow(s.file)}, error(nil)
		if v.Problems == nil {
			v, err = check(ctx, s)
		}
		if err != nil {
			return console.SubjectError{Subject: s.file, Err: err}
		}
		problems := together.problemsOf(s.file, c.Strict)
		v.Problems, v.Valid = append(v.Problems, toWire(problems)...), v.Valid && problems.Err() == nil
		if !v.Valid {
			failed = console.ErrFailed
		}
		if err := c.printValidation(a, s, v); err != nil {
			return err
		}
	}
	return failed
}

// compareSources reports problems of the labels of several files.
func compareSources(sources []definitionSource) fileProblems {
	var labels []flowLabel
	for _, s := range sources {
		if label, ok := labelOf(s.file, s.text); ok {
			labels = append(labels, label)
		}
	}
	return compareLabels(labels)
}

// newChecker returns a function that checks definitions: on a server if one is given, otherwise
// locally.
func (c *flowValidateCmd) newChecker(sources []definitionSource) (func(context.Context,
	definitionSource) (*wire.Validation, error), error) {
	if c.Server == "" {
		return func(_ context.Context, s definitionSource) (*wire.Validation, error) {
			return c.checkLocally(s, sources), nil
		}, nil
	}
	server, err := (&console.RemoteFlags{Server: c.Server, Token: c.Token, TrustFlags: c.TrustFlags}).NewClient()
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, s definitionSource) (*wire.Validation, error) {
		if s.isBesideOrk() {
			return c.checkLocally(s, sources), nil
		}
		r, err := rootFlag{}.translateOrk(s.file, s.text)
		if err != nil || r.text == nil {
			return &wire.Validation{Problems: r.problems}, err
		}
		refusal := c.refusalOf(r.problems)
		if refusal != nil {
			r.problems = refusal
		}
		v, err := server.Validate(ctx, r.text, c.checkOptions()...)
		if err == nil {
			v.Problems, v.Valid = r.allProblems(v.Problems), v.Valid && refusal == nil
		}
		return v, err
	}, nil
}

// checkLocally makes the same checks as a member before it publishes a definition. It finds
// embedded flows only among the given files.
func (c *flowValidateCmd) checkLocally(s definitionSource, sources []definitionSource) *wire.Validation {
	problems := checkHere(s, sources)
	if c.Strict {
		problems = problems.Strict()
	}
	return &wire.Validation{Valid: problems.Err() == nil, Problems: toWire(problems)}
}

func checkHere(s definitionSource, sources []definitionSource) definition.Problems {
	if s.isBesideOrk() {
		return ork.CheckBeside(ork.Beside{Name: filepath.Base(s.file), Text: s.text})
	}
	if ork.Is(s.text) {
		return checkOrk(s)
	}
	d, err := definition.Parse(s.text)
	if d == nil {
		var problems definition.Problems
		errors.As(err, &problems)
		return problems
	}
	among := definition.Embedding{Self: s.flowSlug(), Elsewhere: true,
		Lookup: func(name string) ([]byte, error) { return findDefinition(name, sources), nil }}
	if _, err := among.Embed(d, s.text); err != nil {
		panic(fmt.Sprintf("looking up files does not fail: %v", err))
	}
	return compile.Check(d, flow.Limits{})
}

// findDefinition returns the definition of a flow from some files; nil if there is none that can be
// read.
func findDefinition(name string, sources []definitionSource) []byte {
	for _, s := range sources {
		if s.flowSlug() != name {
			continue
		}
		if _, err := definition.Parse(s.text); err == nil {
			return s.text
		}
	}
	return nil
}

// noFlow returns the problem of a file that contains no flow, by its name.
func noFlow(file string) []wire.DefinitionProblem {
	if !cases.IsCases(file) {
		return nil
	}
	return []wire.DefinitionProblem{{Severity: string(definition.SeverityError),
		Message: "this is a test case file: run troupe flow test " + file}}
}

// isBesideOrk reports whether the file contains no flow, but accompanies workflows of Ork.
func (s definitionSource) isBesideOrk() bool { return ork.IsBeside(filepath.Base(s.file), s.text) }

// flowSlug returns the slug under which the flow would be published.
func (s definitionSource) flowSlug() string {
	if s.file == "-" {
		return ""
	}
	return SlugOf(s.file)
}

// readSources reads files, and the definitions in folders.
func readSources(a *console.App, paths []string) (all []definitionSource, err error) {
	files, err := filesOf(paths)
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		text, err := a.ReadFile(file)
		if err != nil {
			return nil, err
		}
		all = append(all, definitionSource{file, text})
	}
	return all, nil
}

// filesOf returns the files of paths. A folder stands for the definitions inside the folder.
func filesOf(paths []string) (files []string, err error) {
	for _, path := range paths {
		in := []string{path}
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			if in, err = definitionsIn(path); err != nil {
				return nil, err
			}
		}
		files = append(files, in...)
	}
	return files, nil
}

// definitionsIn returns the files in a folder that troupe dev would publish.
func definitionsIn(dir string) (files []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if e.Type()&fs.ModeType == 0 && isDefinition(e.Name()) {
			files = append(files, filepath.Join(dir, e.Name()))
		}
	}
	if files == nil {
		return nil, fmt.Errorf("the folder %s has no definitions (.yaml, .yml or .json)", dir)
	}
	return files, nil
}

func (c *flowValidateCmd) printValidation(a *console.App, s definitionSource, v *wire.Validation) error {
	file, kind := s.file, ""
	switch {
	case s.isBesideOrk():
		kind = " (beside workflows of Ork)"
	case ork.Is(s.text):
		kind = " (a workflow of Ork)"
	}
	if c.IsJSON() {
		return console.PrintLine(a.Stdout, checkedFile{file, v})
	}
	printProblems(a.Stdout, file, v.Problems)
	if v.Valid {
		fmt.Fprintf(a.Stdout, "%s: valid%s\n", file, kind)
	}
	return nil
}
