package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/troupe-engine/troupe/api/client"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/compile"
	"github.com/troupe-engine/troupe/flow/define"
	"github.com/troupe-engine/troupe/flow/ork"
	"github.com/troupe-engine/troupe/internal/cases"
)

// strictFlag is the flag of commands that check definitions.
type strictFlag struct {
	Strict bool `help:"Take warnings for errors."`
}

func (f strictFlag) checkOptions() []client.CheckOption {
	if f.Strict {
		return []client.CheckOption{client.Strict()}
	}
	return nil
}

type flowValidateCmd struct {
	Files []string `arg:"" name:"file" help:"Definitions in YAML or JSON, or folders of them; - is stdin."`
	strictFlag
	Server string `placeholder:"URL" help:"Have this server check them instead: it knows its limits and the flows that it has. Without it flows that a definition names are looked for among the files."`
	Token  string `env:"TROUPE_TOKEN" help:"Bearer token for the server."`
	trustFlags
	outputFlag
}

// Help describes the stable output format.
func (*flowValidateCmd) Help() string {
	return `Each problem is a line FILE:LINE:COLUMN: error|warning|note: PATH: what is wrong, and what to write instead.
A note is about something that only a server can know; ask one with --server.

Exit codes: 0 = all definitions can be used; 1 = one of them has an error (with --strict: or a warning);
2 = the command line is wrong, or a file cannot be read.`
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

func (c *flowValidateCmd) Run(ctx context.Context, a *app) error {
	sources, err := a.readSources(c.Files)
	if err != nil {
		return usageError{err}
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
			return subjectError{s.file, err}
		}
		problems := together.of(s.file, c.Strict)
		v.Problems, v.Valid = append(v.Problems, toWire(problems)...), v.Valid && problems.Err() == nil
		if !v.Valid {
			failed = errFailed
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
	server, err := (&remoteFlags{Server: c.Server, Token: c.Token, trustFlags: c.trustFlags}).newClient()
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
		v, err := server.Validate(ctx, r.text, c.checkOptions()...)
		if err == nil {
			v.Problems = r.allProblems(v.Problems)
		}
		return v, err
	}, nil
}

// checkLocally makes the same checks as a member before it publishes a definition. It knows only
// those embedded flows that are in one of the files.
func (c *flowValidateCmd) checkLocally(s definitionSource, sources []definitionSource) *wire.Validation {
	problems := checkHere(s, sources)
	if c.Strict {
		problems = problems.Strict()
	}
	return &wire.Validation{Valid: problems.Err() == nil, Problems: toWire(problems)}
}

func checkHere(s definitionSource, sources []definitionSource) define.Problems {
	if s.isBesideOrk() {
		return ork.CheckBeside(ork.Beside{Name: filepath.Base(s.file), Text: s.text})
	}
	if ork.Is(s.text) {
		return checkOrk(s)
	}
	d, err := define.Parse(s.text)
	if d == nil {
		var problems define.Problems
		errors.As(err, &problems)
		return problems
	}
	among := define.Embedding{Self: s.flowSlug(), Elsewhere: true,
		Lookup: func(name string) ([]byte, error) { return findDefinition(name, sources), nil }}
	if _, err := among.Embed(d, s.text); err != nil {
		panic(fmt.Sprintf("looking among files does not fail: %v", err))
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
		if _, err := define.Parse(s.text); err == nil {
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
	return []wire.DefinitionProblem{{Severity: string(define.SeverityError),
		Msg: "this is a file of cases, which test a flow: play it with troupe flow test " + file}}
}

// isBesideOrk reports whether the file contains no flow, but accompanies workflows of Ork.
func (s definitionSource) isBesideOrk() bool { return ork.IsBeside(filepath.Base(s.file), s.text) }

// flowSlug returns the slug under which the flow would be published.
func (s definitionSource) flowSlug() string {
	if s.file == "-" {
		return ""
	}
	return slugOf(s.file)
}

// readSources reads files, and the definitions in folders.
func (a *app) readSources(paths []string) (all []definitionSource, err error) {
	files, err := filesOf(paths)
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		text, err := a.readFile(file)
		if err != nil {
			return nil, err
		}
		all = append(all, definitionSource{file, text})
	}
	return all, nil
}

// filesOf returns the files of paths; a folder stands for the definitions in it.
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
		return nil, fmt.Errorf("%s is a folder without definitions: it has no file that ends in .yaml, .yml or .json", dir)
	}
	return files, nil
}

func (c *flowValidateCmd) printValidation(a *app, s definitionSource, v *wire.Validation) error {
	file, kind := s.file, ""
	switch {
	case s.isBesideOrk():
		kind = " (beside workflows of Ork)"
	case ork.Is(s.text):
		kind = " (a workflow of Ork)"
	}
	if c.isJSON() {
		return printLine(a.stdout, checkedFile{file, v})
	}
	printProblems(a.stdout, file, v.Problems)
	if v.Valid {
		fmt.Fprintf(a.stdout, "%s: valid%s\n", file, kind)
	}
	return nil
}
