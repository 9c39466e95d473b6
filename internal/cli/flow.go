package cli

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
	"syscall"

	"github.com/troupe-engine/troupe/api/client"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/compile"
	"github.com/troupe-engine/troupe/flow/define"
	"github.com/troupe-engine/troupe/flow/ork"
	"github.com/troupe-engine/troupe/flow/show"
	"github.com/troupe-engine/troupe/flow/types"
	"github.com/troupe-engine/troupe/internal/cases"
)

type flowCmd struct {
	Apply    flowApplyCmd    `cmd:"" help:"Publish definitions."`
	Validate flowValidateCmd `cmd:"" help:"Tell everything that is wrong with definitions; needs no server."`
	Test     flowTestCmd     `cmd:"" help:"Play the cases of flows, in virtual time and without a server."`
	List     flowListCmd     `cmd:"" help:"List the flows."`
	Run      flowRunCmd      `cmd:"" help:"Publish a definition, start a task of it and follow that to its end."`
	Try      flowTryCmd      `cmd:"" help:"Start a task of a definition without publishing it, and follow that to its end."`
	Show     flowShowCmd     `cmd:"" help:"Show a flow, its versions and its definition, or its plan."`
	Diff     flowDiffCmd     `cmd:"" help:"Tell how two versions of a flow differ, and how many tasks go on with the older one."`
	Delete   flowDeleteCmd   `cmd:"" help:"Delete flows with their versions and tasks."`
	Schema   flowSchemaCmd   `cmd:"" help:"Print the JSON Schema of definitions, or of files of cases, for editors."`
}

type flowApplyCmd struct {
	remoteFlags
	Files []string `arg:"" name:"file" help:"Definitions in YAML or JSON, or folders of them. Each becomes the flow that is named like its file, unless --slug says another name; - is stdin, which is named by --slug or by its own name."`
	strictFlag
	rootFlag
	NoReplace bool   `help:"Publish new flows only: a file whose flow is there is refused."`
	Slug      string `help:"What the flow is addressed by; by default its file's name without folder and ending, in small letters, with - for what is no letter, digit, dot, dash or underscore."`
}

func (c *flowApplyCmd) Run(ctx context.Context, a *app) error {
	files, err := c.files()
	if err != nil {
		return err
	}
	if c.Slug != "" && len(files) > 1 {
		return newUsageError("--slug names one flow, but there are %d files", len(files))
	}
	server, err := c.newClient()
	if err != nil {
		return err
	}
	return c.applyAll(ctx, a, server, files)
}

// files returns the files to publish: those of folders that contain definitions, without files that
// accompany workflows of Ork.
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
func (c *flowApplyCmd) applyAll(ctx context.Context, a *app, server *client.Client, files []string) error {
	var final []*refusedFile // stdin can be read only once
	together := c.compareFiles(files)
	for next := files; len(next) > 0; {
		var again []*refusedFile
		for _, file := range next {
			problems := together.of(file, c.Strict)
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
	return errFailed
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

func (r *refusedFile) Error() string { return r.file + " was refused" }

// tellRefused prints the problems of refused files.
func (c *flowApplyCmd) tellRefused(a *app, files []*refusedFile) error {
	for _, r := range files {
		if !c.isJSON() {
			printProblems(a.stderr, r.file, r.problems)
			continue
		}
		if err := printLine(a.stdout, checkedFile{r.file, &wire.Validation{Problems: r.problems}}); err != nil {
			return err
		}
	}
	return nil
}

// publishFile publishes a file. found holds the problems of its label. For a definition that cannot
// be used it returns a *refusedFile.
func (c *flowApplyCmd) publishFile(ctx context.Context, a *app, server *client.Client, file string, found define.Problems) error {
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
	}
	slug := orElse(c.Slug, r.flowSlug(file))
	if err := c.isNew(ctx, server, slug); err != nil {
		return subjectError{file, err}
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
		return newUsageError("%s: nothing says what the flow is to be addressed by: name it "+
			"with --slug, or give the definition a name", file)
	}
	return subjectError{file, err}
}

// isNew returns an error if a flow exists and must not be replaced.
func (c *flowApplyCmd) isNew(ctx context.Context, server *client.Client, slug string) error {
	switch {
	case !c.NoReplace:
		return nil
	case slug == "":
		return newUsageError("--no-replace has to know what the flow is addressed by: name it with --slug")
	}
	_, err := server.Flow(ctx, slug)
	var refused *client.Error
	switch {
	case err == nil:
		return fmt.Errorf("the flow %s exists already; without --no-replace it gets a new version", slug)
	case errors.As(err, &refused) && refused.Status == http.StatusNotFound:
		return nil
	}
	return err
}

// refusedAt returns the part of a request that was rejected.
func refusedAt(err error) string {
	var refused *client.Error
	if errors.As(err, &refused) {
		return refused.Where
	}
	return ""
}

func (c *flowApplyCmd) printPublished(a *app, file string, r loadedDefinition, p *wire.Published) error {
	if c.isJSON() {
		return printLine(a.stdout, p)
	}
	printProblems(a.stderr, file, p.Warnings)
	fmt.Fprintln(a.stdout, describePublished(p)+r.originNote())
	return nil
}

func describePublished(p *wire.Published) string {
	what := "is unchanged"
	if p.Created {
		what = "is published"
	}
	return fmt.Sprintf("%s version %d %s", sanitizeText(p.Flow.Slug), p.Version.Number, what)
}

type flowShowCmd struct {
	remoteFlags
	Flow    string `arg:"" complete:"flow" help:"Slug or id of the flow."`
	Version int    `help:"Number of the version; 0 = the newest."`
	Plan    bool   `help:"Show what the definition is compiled to, the nodes made by the compiler included."`
	Format  string `enum:"text,mermaid,graphviz,json" default:"text" help:"Of the plan: text, mermaid, graphviz or json (${default})."`
}

// showPlan compiles the version locally and prints its plan.
func (c *flowShowCmd) showPlan(a *app, name string, definition []byte) error {
	plan, problems := compile.Text(definition, flow.Limits{})
	if plan == nil {
		for _, p := range problems {
			fmt.Fprintln(a.stderr, formatProblem(name, p.Line, p.Column, string(p.Severity), p.Path, p.Msg))
		}
		return errFailed
	}
	view := show.Plan(plan, sanitizeText(name))
	text := ""
	switch {
	case c.Format == "mermaid":
		text = view.Mermaid()
	case c.Format == "graphviz":
		text = view.Graphviz()
	case c.Format == "json" || c.isJSON():
		text = string(escapeUnsafe(view.JSON()))
	default:
		text = view.Text()
	}
	_, err := io.WriteString(a.stdout, text)
	return err
}

func (c *flowShowCmd) Run(ctx context.Context, a *app) error {
	server, err := c.newClient()
	if err != nil {
		return err
	}
	if c.Flow, err = flowNamed(ctx, server, c.Flow); err != nil {
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
		return c.showPlan(a, orElse(f.Slug, f.ID), v.Definition)
	}
	if c.isJSON() {
		return printJSON(a.stdout, struct {
			*wire.Flow
			Version *wire.Version `json:"version"`
		}{f, v})
	}
	if err := printFields(a.stdout, "Flow", orElse(f.Slug, f.ID), "Name", f.Name, "Description", f.Description,
		"Version", strconv.Itoa(v.Number), "Status", v.Status, "Published", formatTime(v.CreatedAt)); err != nil {
		return err
	}
	if err := printInputs(a.stdout, v.Inputs); err != nil {
		return err
	}
	fmt.Fprintln(a.stdout)
	return printJSON(a.stdout, v.Definition)
}

type flowSchemaCmd struct {
	Tests bool `help:"Print that of files of cases (order.test.yaml), which troupe flow test plays."`
}

func (c flowSchemaCmd) Run(a *app) error {
	schema := define.Schema
	if c.Tests {
		schema = cases.Schema
	}
	_, err := a.stdout.Write(schema)
	return err
}

// readFile reads a file, or stdin.
func (a *app) readFile(file string) ([]byte, error) {
	f, err := a.openFile(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(f)
	if errors.Is(err, syscall.EISDIR) {
		return nil, fmt.Errorf("%s is a folder: name a file", file)
	}
	return text, err
}

// openFile opens a file, or stdin, that is too large to be read as a whole.
func (a *app) openFile(file string) (io.ReadCloser, error) {
	if file == "-" {
		return io.NopCloser(a.stdin), nil
	}
	return os.Open(file)
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
			needed = "= " + truncateText(input.DefaultText(), 40)
		}
		rows = append(rows, []string{input.Name, input.Type, needed, input.Description})
	}
	fmt.Fprintln(w)
	return printTable(w, []string{"INPUT", "TYPE", "DEFAULT", "DESCRIPTION"}, rows)
}

// printProblems prints problems, one per line.
func printProblems(w io.Writer, file string, problems []wire.DefinitionProblem) {
	for _, p := range problems {
		fmt.Fprintln(w, formatProblem(orElse(p.File, file), p.Line, p.Column, p.Severity, p.Path, p.Msg))
	}
}

// problemsOf returns the definition problems in an error; nil if it has none.
func problemsOf(err error) []wire.DefinitionProblem {
	var refused *client.Error
	if errors.As(err, &refused) {
		return refused.Problems
	}
	return nil
}

func orElse(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}
