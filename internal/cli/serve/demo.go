package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/troupe-engine/troupe"
	"github.com/troupe-engine/troupe/api/client"
	"github.com/troupe-engine/troupe/api/ui"
	examples "github.com/troupe-engine/troupe/examples/flows"
	"github.com/troupe-engine/troupe/internal/cli/console"
	"github.com/troupe-engine/troupe/internal/cli/flows"
)

// DemoCommand runs all example flows.
type DemoCommand struct {
	Stay      bool   `help:"Keep the member and its workers running until Ctrl-C."`
	KeepStore bool   `help:"Keep the folder of the store."`
	Listen    string `default:"127.0.0.1:0" placeholder:"ADDR" help:"Address of the HTTP API (${default}); port 0 selects a free port."`
}

// Help describes the contents of the demo.
func (DemoCommand) Help() string {
	return `Starts a member with a SQLite store in a temporary folder, a push worker, a pull worker, and a task of every
example flow. Exits with 0 if every task ended as expected.`
}

// demoTime is the time limit for the tasks of a demo; the tasks of the examples need a few seconds.
const demoTime = time.Minute

// Run runs the demo.
func (c *DemoCommand) Run(ctx context.Context, a *console.App) (err error) {
	dir, err := os.MkdirTemp("", "troupe-demo-")
	if err != nil {
		return fmt.Errorf("making the demo's folder: %w", err)
	}
	if !c.KeepStore {
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	m, err := startMember(ctx, troupe.Config{
		Store: "sqlite:" + filepath.Join(dir, "demo.db"), Listen: c.Listen, UI: ui.Handler(),
		AllowScripts: true, ScriptDir: dir, AllowMock: true,
		Logger: slog.New(slog.NewTextHandler(a.Stderr, &slog.HandlerOptions{Level: slog.LevelError})),
	})
	if err != nil {
		return err
	}
	shown := c.runDemo(ctx, a, m.url, dir)
	if shown == nil && c.Stay {
		fmt.Fprintf(a.Stdout, "\nThe member runs until Ctrl-C; pages: %s\n", m.uiURL())
	} else {
		stop()
	}
	return errors.Join(shown, m.waitForEnd())
}

// runDemo runs the workers and the tasks, and prints suggestions for the next commands.
func (c *DemoCommand) runDemo(ctx context.Context, a *console.App, url, dir string) error {
	fmt.Fprintf(a.Stdout, "A member listens on %s with its store in %s\n", url, dir)
	server, err := client.New(url, client.Options{})
	if err != nil {
		return err
	}
	workers, err := startDemoWorkers(url, a.Stderr)
	if err != nil {
		return err
	}
	if c.Stay {
		context.AfterFunc(ctx, workers.stopAll)
	} else {
		defer workers.stopAll()
	}
	bounded, cancel := context.WithTimeout(ctx, demoTime)
	defer cancel()
	if err := workers.waitOnline(bounded, server); err != nil {
		return err
	}
	acts, err := publishExamples(bounded, server)
	if err != nil {
		return err
	}
	begun := time.Now()
	runDemoTasks(bounded, a, server, acts)
	return errors.Join(printActs(a, acts, time.Since(begun)), c.goOn(a, url))
}

// goOn prints suggestions for the next commands.
func (c *DemoCommand) goOn(a *console.App, url string) error {
	rows := [][]string{
		{programName() + " demo --stay", "the same, and keep the member running"},
		{programName() + " dev", "a member with these services for your own flows in ./flows"},
		{programName() + " --help", "all commands"},
	}
	if c.Stay {
		rows = [][]string{
			{"export TROUPE_SERVER=" + url, "for the commands below"},
			{programName() + " task list", "all tasks, with the IDs for task show, task history and task watch"},
			{programName() + " task start 01-two-steps -p quantity=3 --wait", "start another task"},
			{programName() + " flow show 01-two-steps", "show a definition"},
			{url + "/v1/docs", "the API"},
		}
	}
	fmt.Fprintln(a.Stdout)
	return console.PrintTable(a.Stdout, []string{"Next steps"}, rows)
}

// programName returns the command by which this program was started, if it can be determined.
func programName() string {
	if strings.Contains(os.Args[0], "go-build") {
		return "go run ./cmd/troupe"
	}
	return os.Args[0]
}

// publishExamples publishes the flows and returns their tasks.
func publishExamples(ctx context.Context, server *client.Client) ([]*demoTask, error) {
	expectations, err := examples.Expectations()
	if err != nil {
		return nil, err
	}
	published := map[string]bool{}
	var acts []*demoTask
	for _, e := range expectations {
		if !published[e.File] {
			text, err := examples.Files.ReadFile(e.File)
			if err != nil {
				return nil, fmt.Errorf("reading an example: %w", err)
			}
			if _, err := server.Publish(ctx, flows.SlugOf(e.File), text); err != nil {
				return nil, fmt.Errorf("publishing %s: %w", e.File, err)
			}
			published[e.File] = true
		}
		acts = append(acts, newAct(e))
	}
	return acts, nil
}

// printActs prints the table of all tasks. It returns an error if a task did not end as expected.
func printActs(a *console.App, acts []*demoTask, took time.Duration) error {
	var rows [][]string
	for _, act := range acts {
		rows = append(rows, act.summaryRow())
	}
	if err := console.PrintTable(a.Stdout, []string{"", "FLOW", "STATE", "STEPS", "DURATION", "RESULT OR ERROR"}, rows); err != nil {
		return err
	}
	good, failed := 0, 0
	for _, act := range acts {
		if act.mismatch == "" {
			good++
			if act.want.State == "failed" {
				failed++
			}
			continue
		}
		fmt.Fprintf(a.Stdout, "\n%s (%s): %s\n", act.flowSlug(), act.out.ID, console.SanitizeText(act.mismatch))
	}
	fmt.Fprintf(a.Stdout,
		"\n%d of %d tasks ended as expected, %d of them by failing, in %s.\n", good,
		len(acts), failed, console.FormatDuration(took))
	if good < len(acts) {
		return console.ErrFailed
	}
	return nil
}
