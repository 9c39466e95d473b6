package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/ork"
	"github.com/troupe-engine/troupe/internal/program"
)

type orkCmd struct {
	Schema orkSchemaCmd `cmd:"" help:"Print the types of Python functions as workflow files of Ork write them. The files are imported, so what they do then is done."`
}

type orkSchemaCmd struct {
	Files  []string `arg:"" name:"file" type:"existingfile" help:"Files of Python."`
	Root   string   `placeholder:"DIR" type:"existingdir" help:"Folder that modules are found in, as the root of a workflow is (that of the file)."`
	Python string   `placeholder:"COMMAND" help:"The interpreter (that of the root, or python3)."`
	outputFlag
}

func (c *orkSchemaCmd) Run(ctx context.Context, a *app) error {
	runner := program.New(program.Options{})
	defer runner.Close()
	all := make([]ork.Signatures, len(c.Files))
	for i, file := range c.Files {
		var err error
		if all[i], err = c.inspectFile(ctx, a, runner, file); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	if c.isJSON() {
		return printJSON(a.stdout, all)
	}
	for _, s := range all {
		if len(all) > 1 {
			fmt.Fprintf(a.stdout, "# %s\n", s.File)
		}
		fmt.Fprint(a.stdout, s.YAML())
	}
	return nil
}

func (c *orkSchemaCmd) inspectFile(ctx context.Context, a *app, runner *program.Runner, file string) (s ork.Signatures, err error) {
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
	said, err := runner.Inspect(ctx, &flow.Program{File: path, Root: root, Python: c.Python}, a.stderr)
	if err != nil {
		return s, err
	}
	s.File = file
	return s, json.Unmarshal(said, &s)
}
