package operate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/troupe-engine/troupe"
	"github.com/troupe-engine/troupe/dialect/pocketflow/importer"
	"github.com/troupe-engine/troupe/internal/cli/console"
)

// ImportCommand imports the data of another engine.
type ImportCommand struct {
	Pocketflow importPocketflowCmd `cmd:"" help:"Import flows, versions, tasks and runs from the database of a PocketFlow scheduler, which stays unchanged."`
}

type importPocketflowCmd struct {
	File    string `arg:"" type:"path" help:"SQLite file of the scheduler, such as scheduler.db. Stop the scheduler first."`
	Store   string `env:"TROUPE_STORE" placeholder:"SETTING" help:"Target store: sqlite:PATH or a postgres:// URL (sqlite:troupe.db). Stop its members first."`
	Schema  string `env:"TROUPE_SCHEMA" placeholder:"NAME" help:"PostgreSQL schema of the store (troupe)."`
	Cluster string `env:"TROUPE_CLUSTER" placeholder:"NAME" help:"Cluster name of the store (troupe)."`
	DryRun  bool   `help:"Show what would be imported without writing."`
	Output  string `short:"o" enum:"text,json" default:"text" help:"Output format: text or json (${default})."`
}

func (c *importPocketflowCmd) Run(ctx context.Context, a *console.App) (err error) {
	file, err := importer.Open(ctx, c.File)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	lacks := []importer.Lack{}
	report, err := c.importFile(ctx, file, func(l importer.Lack) {
		if lacks = append(lacks, l); c.Output != "json" {
			fmt.Fprintf(a.Stderr, "%s %s: %s\n", l.What, l.ID, l.Why)
		}
	})
	if report == nil {
		return err
	}
	if e := c.printReport(a, report, lacks); e != nil || err != nil {
		return errors.Join(err, e)
	}
	if report.Flows.Missing+report.Versions.Missing+report.Tasks.Missing > 0 {
		return console.ErrFailed
	}
	return nil
}

// importFile imports the file into the store. A dry run reads only the file.
func (c *importPocketflowCmd) importFile(ctx context.Context, file *importer.File,
	lacks func(importer.Lack)) (report *importer.Report, err error) {
	o := importer.Options{Cluster: c.Cluster, DryRun: c.DryRun, Lacks: lacks}
	if c.DryRun {
		return importer.Import(ctx, file, nil, o)
	}
	store, err := troupe.OpenStore(ctx, c.storeDSN(), c.Schema)
	if err != nil {
		return nil, withImportHint(err)
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	report, err = importer.Import(ctx, file, store, o)
	return report, withImportHint(err)
}

func (c *importPocketflowCmd) storeDSN() string { return cmp.Or(c.Store, "sqlite:troupe.db") }

// withImportHint adds advice if a member is using the store.
func withImportHint(err error) error {
	if errors.Is(err, troupe.ErrTaken) {
		return fmt.Errorf("%w\nhint: stop the member, import, and start it again", err)
	}
	return err
}

// importReport is the report as JSON.
type importReport struct {
	DryRun     bool            `json:"dry_run"`
	Flows      importer.Count  `json:"flows"`
	Versions   importer.Count  `json:"versions"`
	Tasks      importer.Count  `json:"tasks"`
	Runs       importer.Count  `json:"runs"`
	Unfinished int             `json:"unfinished"`
	Missing    []importer.Lack `json:"missing"`
}

func (c *importPocketflowCmd) printReport(a *console.App, r *importer.Report, lacks []importer.Lack) error {
	if c.Output == "json" {
		return console.PrintJSON(a.Stdout, importReport{c.DryRun, r.Flows, r.Versions, r.Tasks, r.Runs, r.Unfinished, lacks})
	}
	var rows [][]string
	for _, kind := range []struct {
		name string
		n    importer.Count
	}{{"flows", r.Flows}, {"versions", r.Versions}, {"tasks", r.Tasks}, {"runs", r.Runs}} {
		rows = append(rows, []string{kind.name, fmt.Sprint(kind.n.Taken), fmt.Sprint(kind.n.There), fmt.Sprint(kind.n.Missing)})
	}
	if err := console.PrintTable(a.Stdout, []string{"", "IMPORTED", "EXISTING", "SKIPPED"}, rows); err != nil {
		return err
	}
	for _, line := range c.importRemarks(r) {
		fmt.Fprintln(a.Stdout, line)
	}
	return nil
}

// importRemarks returns the remarks for the operator to read before starting a member.
func (c *importPocketflowCmd) importRemarks(r *importer.Report) (lines []string) {
	if c.DryRun {
		lines = append(lines, "Nothing was written.")
	}
	if r.Unfinished > 0 {
		lines = append(lines, fmt.Sprintf("%d tasks have not ended: they continue when a member serves the store.", r.Unfinished))
	}
	if age := time.Since(time.UnixMilli(r.Oldest)); r.Oldest > 0 && age > defaultRetention {
		lines = append(lines, fmt.Sprintf("The oldest task ended %d days ago: members delete "+
			"tasks that ended more than 30 days ago, unless --retention is longer.",
			int(age.Hours()/24)))
	}
	if !c.DryRun {
		lines = append(lines, "Next: "+strings.TrimSpace("troupe serve --store "+troupe.StoreName(c.storeDSN())+c.otherFlags()))
	}
	return lines
}

// defaultRetention is the default retention of members.
const defaultRetention = 30 * 24 * time.Hour

func (c *importPocketflowCmd) otherFlags() (flags string) {
	if c.Schema != "" {
		flags += " --schema " + c.Schema
	}
	if c.Cluster != "" {
		flags += " --cluster " + c.Cluster
	}
	return flags
}
