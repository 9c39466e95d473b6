package flows

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"

	"github.com/troupe-engine/troupe/dialect/ork"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/cli/console"
	"github.com/troupe-engine/troupe/internal/program"
)

// OrkCommand prints types for Ork workflow files.
type OrkCommand struct {
	Schema orkSchemaCmd `cmd:"" help:"Print the types of Python functions in the form of Ork workflow files. The files are imported, so their top-level code runs."`
}

type orkSchemaCmd struct {
	Files  []string `arg:"" name:"file" type:"existingfile" help:"Python files."`
	Root   string   `placeholder:"DIR" type:"existingdir" help:"Root folder of modules (the folder of the file)."`
	Python string   `placeholder:"COMMAND" help:"Python interpreter (that of the root folder, or python3)."`
	console.OutputFlag
}

func (c *orkSchemaCmd) Run(ctx context.Context, a *console.App) error {
	runner := program.New(program.Options{})
	defer runner.Close()
	all := make([]ork.Signatures, len(c.Files))
	for i, file := range c.Files {
		var err error
		if all[i], err = c.inspectFile(ctx, a, runner, file); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	if c.IsJSON() {
		return console.PrintJSON(a.Stdout, all)
	}
	for _, s := range all {
		if len(all) > 1 {
			fmt.Fprintf(a.Stdout, "# %s\n", s.File)
		}
		fmt.Fprint(a.Stdout, s.YAML())
	}
	return nil
}

func (c *orkSchemaCmd) inspectFile(ctx context.Context, a *console.App, runner *program.Runner, file string) (s ork.Signatures, err error) {
	path, err := filepath.Abs(file)
	if err != nil {
		return s, err
	}
	root := filepath.Dir(path)
	if c.Root != "" {
		if root, err = filepath.Abs(c.Root); err != nil {
			return s, err
		}
	}
	said, err := runner.Inspect(ctx, &flow.Program{File: path, Root: root, Python: c.Python}, a.Stderr)
	if err != nil {
		return s, err
	}
	s.File = file
	return s, json.Unmarshal(said, &s)
}
