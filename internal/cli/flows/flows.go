// Package flows has the commands that work on definitions and flows: the commands of troupe flow
// and troupe ork, and the folder that troupe dev publishes.
package flows

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"

	"github.com/troupe-engine/troupe/api/client"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/definition"
	"github.com/troupe-engine/troupe/definition/compile"
	"github.com/troupe-engine/troupe/definition/show"
	"github.com/troupe-engine/troupe/dialect/ork"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/types"
	"github.com/troupe-engine/troupe/internal/cases"
	"github.com/troupe-engine/troupe/internal/cli/console"
)

// Command holds the commands for flows.
type Command struct {
	Apply    flowApplyCmd    `cmd:"" help:"Publish definitions."`
	Validate flowValidateCmd `cmd:"" help:"Validate definitions without a server."`
	Test     flowTestCmd     `cmd:"" help:"Test flows with their cases, in virtual time and without a server."`
	List     flowListCmd     `cmd:"" help:"List flows."`
	Run      flowRunCmd      `cmd:"" help:"Publish a definition, start a task and wait for its end."`
	Try      flowTryCmd      `cmd:"" help:"Start a task of an unpublished definition and wait for its end."`
	Show     flowShowCmd     `cmd:"" help:"Show a flow with its versions and definition, or its plan."`
	Diff     flowDiffCmd     `cmd:"" help:"Compare two versions of a flow."`
	Delete   flowDeleteCmd   `cmd:"" help:"Delete flows with their versions and tasks."`
	Schema   flowSchemaCmd   `cmd:"" help:"Print the JSON Schema of definitions or test cases, for editors."`
}

type flowApplyCmd struct {
	console.RemoteFlags
	Files []string `arg:"" name:"file" help:"Definitions in YAML or JSON, or folders; - is stdin. The file name gives the slug of the flow, unless --slug is set."`
	StrictFlag
	rootFlag
	NoReplace bool   `help:"Publish new flows only: reject files of existing flows."`
	Slug      string `help:"Flow slug. Default: the lowercase file name without its extension."`
}

func (c *flowApplyCmd) Run(ctx context.Context, a *console.App) error {
	files, err := c.files()
	if err != nil {
		return err
	}
	if c.Slug != "" && len(files) > 1 {
		return console.NewUsageError("--slug needs a single file, but there are %d", len(files))
	}
	server, err := c.NewClient()
	if err != nil {
		return err
	}
	return c.applyAll(ctx, a, server, files)
}

// files returns the files to publish. Of folders these are the files with definitions, without
// files that accompany workflows of Ork.
func (c *flowApplyCmd) files() (files []string, err error) {
	for _, path := range c.Files {
		in, err := filesOf([]string{path})
		if err != nil {
			return nil, err
		}
		for _, file := range in {
			if file != path {
				text, err := os.ReadFile(file)
				if err != nil {
					return nil, err
				}
				if ork.IsBeside(filepath.Base(file), text) {
					continue
				}
			}
			files = append(files, file)
		}
	}
	return files, nil
}

// applyAll publishes files. A rejected file is retried after others were published, because it may
// refer to them. The problems of the remaining files are reported at the end.
func (c *flowApplyCmd) applyAll(ctx context.Context, a *console.App, server *client.Client, files []string) error {
	var final []*refusedFile // stdin can be read only once
	together := c.compareFiles(files)
	for next := files; len(next) > 0; {
		var again []*refusedFile
		for _, file := range next {
			problems := together.problemsOf(file, c.Strict)
			err := c.publishFile(ctx, a, server, file, problems)
			var refused *refusedFile
			switch {
			case errors.As(err, &refused) && (file == "-" || problems.Err() != nil):
				final = append(final, refused)
			case refused != nil:
				again = append(again, refused)
			case err != nil:
				return cmp.Or(c.tellRefused(a, append(final, again...)), err)
			}
		}
		if len(again) == len(next) {
			final, again = append(final, again...), nil
		}
		next = nil
		for _, refused := range again {
			next = append(next, refused.file)
		}
	}
	if err := c.tellRefused(a, final); err != nil || len(final) == 0 {
		return err
	}
	return console.ErrFailed
}

// compareFiles reports problems of the labels of several files. A file that cannot be read is
// reported when it is published. Stdin is also read only then.
func (c *flowApplyCmd) compareFiles(files []string) fileProblems {
	var labels []flowLabel
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil || file == "-" {
			continue
		}
		if label, ok := labelOf(file, text); ok {
			labels = append(labels, label)
		}
	}
	return compareLabels(labels)
}

// refusedFile is the error of a file whose definition has problems.
type refusedFile struct {
	file     string
	problems []wire.DefinitionProblem
}

func (r *refusedFile) Error() string { return r.file + " was rejected" }

// tellRefused prints the problems of refused files.
func (c *flowApplyCmd) tellRefused(a *console.App, files []*refusedFile) error {
	for _, r := range files {
		if !c.IsJSON() {
			printProblems(a.Stderr, r.file, r.problems)
			continue
		}
		if err := console.PrintLine(a.Stdout, checkedFile{r.file, &wire.Validation{Problems: r.problems}}); err != nil {
			return err
		}
	}
	return nil
}

// publishFile publishes a file. found holds the problems of the file's label. For a rejected
// definition the error is a *refusedFile.
func (c *flowApplyCmd) publishFile(ctx context.Context, a *console.App, server *client.Client, file string,
	found definition.Problems) error {
	if problems := noFlow(file); problems != nil {
		return &refusedFile{file, problems}
	}
	if found.Err() != nil {
		return &refusedFile{file, toWire(found)}
	}
	r, err := c.readDefinition(a, file)
	switch {
	case err != nil:
		return err
	case r.text == nil:
		return &refusedFile{file, r.problems}
	case c.refusalOf(r.problems) != nil:
		return &refusedFile{file, c.refusalOf(r.problems)}
	}
	slug := cmp.Or(c.Slug, r.flowSlug(file))
	if err := c.isNew(ctx, server, slug); err != nil {
		return console.SubjectError{Subject: file, Err: err}
	}
	published, err := server.Publish(ctx, slug, r.text, c.checkOptions()...)
	problems := problemsOf(err)
	switch {
	case problems != nil:
		return &refusedFile{file, r.allProblems(problems)}
	case err == nil:
		published.Warnings = append(r.allProblems(published.Warnings), toWire(found)...)
		return c.printPublished(a, file, r, published)
	case slug == "" && refusedAt(err) == "query.slug":
		return console.NewUsageError("%s: the flow has no slug: set --slug, "+
			"or give the definition a name", file)
	}
	return console.SubjectError{Subject: file, Err: err}
}

// isNew returns an error if a flow exists and must not be replaced.
func (c *flowApplyCmd) isNew(ctx context.Context, server *client.Client, slug string) error {
	switch {
	case !c.NoReplace:
		return nil
	case slug == "":
		return console.NewUsageError("--no-replace needs --slug for a definition on stdin")
	}
	_, err := server.Flow(ctx, slug)
	var refused *client.Error
	switch {
	case err == nil:
		return fmt.Errorf("the flow %s already exists; omit --no-replace to publish a new version", slug)
	case errors.As(err, &refused) && refused.Status == http.StatusNotFound:
		return nil
	}
	return err
}

// refusedAt returns the part of a request that was rejected.
func refusedAt(err error) string {
	var refused *client.Error
	if errors.As(err, &refused) {
		return refused.Field
	}
	return ""
}

func (c *flowApplyCmd) printPublished(a *console.App, file string, r loadedDefinition, p *wire.PublishResult) error {
	if c.IsJSON() {
		return console.PrintLine(a.Stdout, p)
	}
	printProblems(a.Stderr, file, p.Warnings)
	fmt.Fprintln(a.Stdout, describePublished(p)+r.originNote())
	return nil
}

func describePublished(p *wire.PublishResult) string {
	what := "unchanged"
	if p.Created {
		what = "published"
	}
	return fmt.Sprintf("%s version %d %s", console.SanitizeText(p.Flow.Slug), p.Version.Number, what)
}

type flowShowCmd struct {
	console.RemoteFlags
	Flow    string `arg:"" complete:"flow" help:"Flow slug or ID."`
	Version int    `help:"Version number; 0 = newest."`
	Plan    bool   `help:"Show the compiled plan, including generated nodes."`
	Format  string `enum:"text,mermaid,graphviz,json" default:"text" help:"Format of the plan: text, mermaid, graphviz or json (${default})."`
}

// showPlan compiles the version locally and prints its plan.
func (c *flowShowCmd) showPlan(a *console.App, name string, definition []byte) error {
	plan, problems := compile.Text(definition, flow.Limits{})
	if plan == nil {
		for _, p := range problems {
			fmt.Fprintln(a.Stderr, formatProblem(name, p.Line, p.Column, string(p.Severity), p.Path, p.Msg))
		}
		return console.ErrFailed
	}
	view := show.Plan(plan, console.SanitizeText(name))
	text := ""
	switch {
	case c.Format == "mermaid":
		text = view.Mermaid()
	case c.Format == "graphviz":
		text = view.Graphviz()
	case c.Format == "json" || c.IsJSON():
		text = string(console.EscapeUnsafe(view.JSON()))
	default:
		text = view.Text()
	}
	_, err := io.WriteString(a.Stdout, text)
	return err
}

func (c *flowShowCmd) Run(ctx context.Context, a *console.App) error {
	server, err := c.NewClient()
	if err != nil {
		return err
	}
	if c.Flow, err = console.FindFlow(ctx, server, c.Flow); err != nil {
		return err
	}
	f, err := server.Flow(ctx, c.Flow)
	if err != nil {
		return err
	}
	v, err := server.Version(ctx, c.Flow, c.Version)
	if err != nil {
		return err
	}
	if c.Plan || c.Format != "text" {
		return c.showPlan(a, cmp.Or(f.Slug, f.ID), v.Definition)
	}
	if c.IsJSON() {
		return console.PrintJSON(a.Stdout, struct {
			*wire.Flow
			Version *wire.Version `json:"version"`
		}{f, v})
	}
	if err := console.PrintFields(a.Stdout, "Flow", cmp.Or(f.Slug, f.ID), "Name", f.Name, "Description", f.Description,
		"Version", strconv.Itoa(v.Number), "Status", v.Status, "Published", console.FormatTime(v.CreatedAt)); err != nil {
		return err
	}
	if err := printInputs(a.Stdout, v.Inputs); err != nil {
		return err
	}
	fmt.Fprintln(a.Stdout)
	return console.PrintJSON(a.Stdout, v.Definition)
}

type flowSchemaCmd struct {
	Tests bool `help:"Print the schema of test cases (order.test.yaml)."`
}

func (c flowSchemaCmd) Run(a *console.App) error {
	schema := definition.Schema
	if c.Tests {
		schema = cases.Schema
	}
	_, err := a.Stdout.Write(schema)
	return err
}

// printInputs prints the inputs that a flow declares.
func printInputs(w io.Writer, schema json.RawMessage) error {
	if len(schema) == 0 {
		return nil
	}
	in, _ := types.Read(schema)
	var rows [][]string
	for _, input := range in.List() {
		needed := "required"
		if !input.Required {
			needed = "optional"
		}
		if input.Default != nil {
			needed = "= " + console.TruncateText(input.DefaultText(), 40)
		}
		rows = append(rows, []string{input.Name, input.Type, needed, input.Description})
	}
	fmt.Fprintln(w)
	return console.PrintTable(w, []string{"INPUT", "TYPE", "DEFAULT", "DESCRIPTION"}, rows)
}

// printProblems prints problems, one per line.
func printProblems(w io.Writer, file string, problems []wire.DefinitionProblem) {
	for _, p := range problems {
		fmt.Fprintln(w, formatProblem(cmp.Or(p.File, file), p.Line, p.Column, p.Severity, p.Path, p.Message))
	}
}

// problemsOf returns the definition problems in an error, or nil.
func problemsOf(err error) []wire.DefinitionProblem {
	var refused *client.Error
	if errors.As(err, &refused) {
		return refused.Problems
	}
	return nil
}
