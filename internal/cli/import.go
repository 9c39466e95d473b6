package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/troupe-engine/troupe"
	"github.com/troupe-engine/troupe/persistence/pocketflow"
)

type importCmd struct {
	Pocketflow importPocketflowCmd `cmd:"" help:"Take flows, versions and tasks with their runs over from the database of a PocketFlow scheduler, which stays as it is."`
}

type importPocketflowCmd struct {
	File    string `arg:"" type:"path" help:"The scheduler's SQLite file, such as scheduler.db. The scheduler must have ended."`
	Store   string `env:"TROUPE_STORE" placeholder:"SETTING" help:"Store to take everything into: sqlite:PATH or a postgres:// URL (sqlite:troupe.db). No member may serve it meanwhile."`
	Schema  string `env:"TROUPE_SCHEMA" placeholder:"NAME" help:"Schema of PostgreSQL that the store is in (troupe)."`
	Cluster string `env:"TROUPE_CLUSTER" placeholder:"NAME" help:"Name of the cluster that the store belongs to (troupe)."`
	DryRun  bool   `help:"Look at the file alone, and tell what would be taken and what not."`
	Output  string `short:"o" enum:"text,json" default:"text" help:"text or json (${default})."`
}

func (c *importPocketflowCmd) Run(ctx context.Context, a *app) (err error) {
	file, err := pocketflow.Open(ctx, c.File)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	lacks := []pocketflow.Lack{}
	report, err := c.importFile(ctx, file, func(l pocketflow.Lack) {
		if lacks = append(lacks, l); c.Output != "json" {
			fmt.Fprintf(a.stderr, "%s %s: %s\n", l.What, l.ID, l.Why)
		}
	})
	if report == nil {
		return err
	}
	if e := c.printReport(a, report, lacks); e != nil || err != nil {
		return errors.Join(err, e)
	}
	if report.Flows.Missing+report.Versions.Missing+report.Tasks.Missing > 0 {
		return errFailed
	}
	return nil
}

// importFile imports the file into the store. A dry run reads only the file.
func (c *importPocketflowCmd) importFile(ctx context.Context, file *pocketflow.File,
	lacks func(pocketflow.Lack)) (report *pocketflow.Report, err error) {
	o := pocketflow.Options{Cluster: c.Cluster, DryRun: c.DryRun, Lacks: lacks}
	if c.DryRun {
		return pocketflow.Import(ctx, file, nil, o)
	}
	store, err := troupe.OpenStore(ctx, c.storeDSN(), c.Schema)
	if err != nil {
		return nil, withImportHint(err)
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	report, err = pocketflow.Import(ctx, file, store, o)
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
	DryRun     bool              `json:"dry_run"`
	Flows      pocketflow.Count  `json:"flows"`
	Versions   pocketflow.Count  `json:"versions"`
	Tasks      pocketflow.Count  `json:"tasks"`
	Runs       pocketflow.Count  `json:"runs"`
	Unfinished int               `json:"unfinished"`
	Missing    []pocketflow.Lack `json:"missing"`
}

func (c *importPocketflowCmd) printReport(a *app, r *pocketflow.Report, lacks []pocketflow.Lack) error {
	if c.Output == "json" {
		return printJSON(a.stdout, importReport{c.DryRun, r.Flows, r.Versions, r.Tasks, r.Runs, r.Unfinished, lacks})
	}
	var rows [][]string
	for _, kind := range []struct {
		name string
		n    pocketflow.Count
	}{{"flows", r.Flows}, {"versions", r.Versions}, {"tasks", r.Tasks}, {"runs", r.Runs}} {
		rows = append(rows, []string{kind.name, fmt.Sprint(kind.n.Taken), fmt.Sprint(kind.n.There), fmt.Sprint(kind.n.Missing)})
	}
	if err := printTable(a.stdout, []string{"", "TAKEN", "THERE BEFORE", "NOT TAKEN"}, rows); err != nil {
		return err
	}
	for _, line := range c.importRemarks(r) {
		fmt.Fprintln(a.stdout, line)
	}
	return nil
}

// importRemarks returns the remarks that an operator needs before starting a member.
func (c *importPocketflowCmd) importRemarks(r *pocketflow.Report) (lines []string) {
	if c.DryRun {
		lines = append(lines, "Nothing was written.")
	}
	if r.Unfinished > 0 {
		lines = append(lines, fmt.Sprintf("%d of the tasks have not ended: they go on when a member serves the store.", r.Unfinished))
	}
	if age := time.Since(time.UnixMilli(r.Oldest)); r.Oldest > 0 && age > defaultRetention {
		lines = append(lines, fmt.Sprintf("The oldest task ended %d days ago: members delete "+
			"what ended more than 30 days ago, unless they are started with a longer --retention.",
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
