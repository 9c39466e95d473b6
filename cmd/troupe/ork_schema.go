package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/expr"
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

// signatures are what a file's functions take and return. A type is null that workflow files have no word for.
type signatures struct {
	File      string          `json:"file"`
	Types     json.RawMessage `json:"types"`
	Functions json.RawMessage `json:"functions"`
}

func (c *orkSchemaCmd) Run(ctx context.Context, a *app) error {
	runner := program.New(program.Options{})
	defer runner.Close()
	all := make([]signatures, len(c.Files))
	for i, file := range c.Files {
		var err error
		if all[i], err = c.inspect(ctx, a, runner, file); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	if c.json() {
		return printJSON(a.stdout, all)
	}
	for _, s := range all {
		if len(all) > 1 {
			fmt.Fprintf(a.stdout, "# %s\n", s.File)
		}
		s.print(a.stdout)
	}
	return nil
}

func (c *orkSchemaCmd) inspect(ctx context.Context, a *app, runner *program.Runner, file string) (s signatures, err error) {
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
	res := runner.Run(ctx, program.Job{Type: flow.ExecPython, Inspect: true, Stderr: a.stderr,
		Program: &flow.Program{File: path, Root: root, Python: c.Python, OutputMode: flow.OutputMarker}})
	if res.Error != "" {
		return s, fmt.Errorf("its functions cannot be told: %s", res.Error)
	}
	s.File = file
	return s, json.Unmarshal(res.Output, &s)
}

// print writes the types, and of each function what a task of a workflow file says of it.
func (s signatures) print(w io.Writer) {
	if types, _ := expr.Members(s.Types); len(types) > 0 {
		fmt.Fprintln(w, "types:")
		for _, t := range types {
			writeFields(w, "  ", t.Key, t.Value)
		}
	}
	fmt.Fprintln(w, "functions:")
	functions, _ := expr.Members(s.Functions)
	for _, f := range functions {
		fmt.Fprintf(w, "  %s:\n", f.Key)
		in, _ := expr.Field(f.Value, "input_type")
		writeFields(w, "    ", "input_type", in)
		required, _ := expr.Field(f.Value, "required")
		fmt.Fprintf(w, "    required: %s\n", inFlow(required))
		out, _ := expr.Field(f.Value, "output_type")
		fmt.Fprintf(w, "    output_type: %s\n", orUnknown(out))
	}
}

func writeFields(w io.Writer, indent, name string, fields json.RawMessage) {
	all, _ := expr.Members(fields)
	if len(all) == 0 {
		fmt.Fprintf(w, "%s%s: {}\n", indent, name)
		return
	}
	fmt.Fprintf(w, "%s%s:\n", indent, name)
	for _, f := range all {
		fmt.Fprintf(w, "%s  %s: %s\n", indent, f.Key, orUnknown(f.Value))
	}
}

func orUnknown(of json.RawMessage) string {
	if expr.KindOf(of) == expr.KindNull || len(of) == 0 {
		return "~ # there is no word for this type"
	}
	return inFlow(of)
}

// inFlow is a type, or a list of names, in one line of YAML. None of the texts in it needs quotes.
func inFlow(of json.RawMessage) string {
	if text, ok := expr.String(of); ok {
		return text
	}
	elements, _ := expr.Elements(of)
	texts := make([]string, len(elements))
	for i, e := range elements {
		texts[i] = inFlow(e)
	}
	return "[" + strings.Join(texts, ", ") + "]"
}
