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

// strictFlag is for what checks definitions.
type strictFlag struct {
	Strict bool `help:"Take warnings for errors."`
}

func (f strictFlag) options() []client.CheckOption {
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

// Help says what a script can rely on.
func (*flowValidateCmd) Help() string {
	return `Each problem is a line FILE:LINE:COLUMN: error|warning|note: PATH: what is wrong, and what to write instead.
A note is about something that only a server can know; ask one with --server.

Exit codes: 0 = all definitions can be used; 1 = one of them has an error (with --strict: or a warning);
2 = the command line is wrong, or a file cannot be read.`
}

// source is a file with a definition.
type source struct {
	file string
	text []byte
}

// checked is what is said about the definition in a file.
type checked struct {
	File string `json:"file"`
	*wire.Validation
}

func (c *flowValidateCmd) Run(ctx context.Context, a *app) error {
	sources, err := a.sources(c.Files)
	if err != nil {
		return usageError{err}
	}
	check, err := c.checker(sources)
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
			return about{s.file, err}
		}
		problems := together.of(s.file, c.Strict)
		v.Problems, v.Valid = append(v.Problems, toWire(problems)...), v.Valid && problems.Err() == nil
		if !v.Valid {
			failed = errFailed
		}
		if err := c.show(a, s, v); err != nil {
			return err
		}
	}
	return failed
}

// compareSources reports what is wrong with the labels of several files.
func compareSources(sources []source) fileProblems {
	var labels []flowLabel
	for _, s := range sources {
		if label, ok := labelOf(s.file, s.text); ok {
			labels = append(labels, label)
		}
	}
	return compareLabels(labels)
}

// checker has a server check definitions if one is named, else it is done here.
func (c *flowValidateCmd) checker(sources []source) (func(context.Context, source) (*wire.Validation, error), error) {
	if c.Server == "" {
		return func(_ context.Context, s source) (*wire.Validation, error) { return c.here(s, sources), nil }, nil
	}
	server, err := (&remote{Server: c.Server, Token: c.Token, trustFlags: c.trustFlags}).client()
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, s source) (*wire.Validation, error) {
		if s.beside() {
			return c.here(s, sources), nil
		}
		r, err := rootFlag{}.translate(s.file, s.text)
		if err != nil || r.text == nil {
			return &wire.Validation{Problems: r.problems}, err
		}
		v, err := server.Validate(ctx, r.text, c.options()...)
		if err == nil {
			v.Problems = r.told(v.Problems)
		}
		return v, err
	}, nil
}

// here does what a member does with a definition before it publishes it. Of the flows that it embeds only those are known
// that are in a file, too.
func (c *flowValidateCmd) here(s source, sources []source) *wire.Validation {
	problems := checkHere(s, sources)
	if c.Strict {
		problems = problems.Strict()
	}
	return &wire.Validation{Valid: problems.Err() == nil, Problems: toWire(problems)}
}

func checkHere(s source, sources []source) define.Problems {
	if s.beside() {
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
	among := define.Embedding{Self: s.slug(), Elsewhere: true, Lookup: func(name string) ([]byte, error) { return usable(name, sources), nil }}
	if _, err := among.Embed(d, s.text); err != nil {
		panic(fmt.Sprintf("looking among files does not fail: %v", err))
	}
	return compile.Check(d, flow.Limits{})
}

// usable is the definition of a flow among some files, nil when there is none that can be read.
func usable(name string, sources []source) []byte {
	for _, s := range sources {
		if s.slug() != name {
			continue
		}
		if _, err := define.Parse(s.text); err == nil {
			return s.text
		}
	}
	return nil
}

// noFlow is the problem with a file that by its name holds no flow.
func noFlow(file string) []wire.DefinitionProblem {
	if !cases.IsCases(file) {
		return nil
	}
	return []wire.DefinitionProblem{{Severity: string(define.SeverityError), Msg: "this is a file of cases, which test a flow: play it with troupe flow test " + file}}
}

// beside says whether the file is none of a flow, but stands beside those of Ork.
func (s source) beside() bool { return ork.IsBeside(filepath.Base(s.file), s.text) }

// slug is what the flow would be published as.
func (s source) slug() string {
	if s.file == "-" {
		return ""
	}
	return slugOf(s.file)
}

// sources reads files, and those in folders which are definitions.
func (a *app) sources(paths []string) (all []source, err error) {
	files, err := filesOf(paths)
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		text, err := a.read(file)
		if err != nil {
			return nil, err
		}
		all = append(all, source{file, text})
	}
	return all, nil
}

// filesOf returns the files of paths: in the place of a folder, the definitions in it.
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

// definitionsIn are the files in a folder that troupe dev would publish.
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

func (c *flowValidateCmd) show(a *app, s source, v *wire.Validation) error {
	file, kind := s.file, ""
	switch {
	case s.beside():
		kind = " (beside workflows of Ork)"
	case ork.Is(s.text):
		kind = " (a workflow of Ork)"
	}
	if c.json() {
		return printLine(a.stdout, checked{file, v})
	}
	printProblems(a.stdout, file, v.Problems)
	if v.Valid {
		fmt.Fprintf(a.stdout, "%s: valid%s\n", file, kind)
	}
	return nil
}
