package cli

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
	"github.com/troupe-engine/troupe/examples/flows"
)

type demoCmd struct {
	Stay   bool   `help:"Keep the member and its workers up until Ctrl-C."`
	Keep   bool   `help:"Keep the folder with the store."`
	Listen string `default:"127.0.0.1:0" placeholder:"ADDR" help:"Address of the HTTP API (${default}); port 0 is a free one."`
}

// Help describes what the demo shows.
func (demoCmd) Help() string {
	return `A member on SQLite in a folder of its own, a push and a pull worker as processes of their own,
and tasks of all example flows at once. Exits with 0 if every task ended as it should.`
}

// demoTime is the time limit for the tasks of a demo; those of the examples need a few seconds.
const demoTime = time.Minute

func (c *demoCmd) Run(ctx context.Context, a *app) (err error) {
	dir, err := os.MkdirTemp("", "troupe-demo-")
	if err != nil {
		return fmt.Errorf("making the demo's folder: %w", err)
	}
	if !c.Keep {
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	m, err := startMember(ctx, troupe.Config{
		Store: "sqlite:" + filepath.Join(dir, "demo.db"), Listen: c.Listen, UI: ui.Handler(),
		AllowScripts: true, ScriptDir: dir, AllowMock: true,
		Logger: slog.New(slog.NewTextHandler(a.stderr, &slog.HandlerOptions{Level: slog.LevelError})),
	})
	if err != nil {
		return err
	}
	shown := c.runDemo(ctx, a, m.url, dir)
	if shown == nil && c.Stay {
		fmt.Fprintf(a.stdout, "\nThe member stays until Ctrl-C; its pages are at %s\n", m.uiURL())
	} else {
		stop()
	}
	return errors.Join(shown, m.waitForEnd())
}

// runDemo runs the workers and the tasks, and prints what to try next.
func (c *demoCmd) runDemo(ctx context.Context, a *app, url, dir string) error {
	fmt.Fprintf(a.stdout, "A member serves %s, everything is kept in %s\n", url, dir)
	server, err := client.New(url, client.Options{})
	if err != nil {
		return err
	}
	workers, err := startDemoWorkers(url, a.stderr)
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

// goOn prints what to try next.
func (c *demoCmd) goOn(a *app, url string) error {
	rows := [][]string{
		{programName() + " demo --stay", "the same, and then look around"},
		{programName() + " dev", "a member with these services for flows of your own, in ./flows"},
		{programName() + " --help", "everything else"},
	}
	if c.Stay {
		rows = [][]string{
			{"export TROUPE_SERVER=" + url, "for the commands below"},
			{programName() + " task list", "what has run, and the ids for: task show, task history, task watch"},
			{programName() + " task start 01-two-steps -p quantity=3 --wait", "one more"},
			{programName() + " flow show 01-two-steps", "what it is made of"},
			{url + "/v1/docs", "the API"},
		}
	}
	fmt.Fprintln(a.stdout)
	return printTable(a.stdout, []string{"Go on with"}, rows)
}

// programName returns how this command was called, if that can be determined.
func programName() string {
	if strings.Contains(os.Args[0], "go-build") {
		return "go run ./cmd/troupe"
	}
	return os.Args[0]
}

// publishExamples publishes the flows and returns their tasks.
func publishExamples(ctx context.Context, server *client.Client) ([]*demoTask, error) {
	expectations, err := flows.Expectations()
	if err != nil {
		return nil, err
	}
	published := map[string]bool{}
	var acts []*demoTask
	for _, e := range expectations {
		if !published[e.File] {
			text, err := flows.Files.ReadFile(e.File)
			if err != nil {
				return nil, fmt.Errorf("reading an example: %w", err)
			}
			if _, err := server.Publish(ctx, slugOf(e.File), text); err != nil {
				return nil, fmt.Errorf("publishing %s: %w", e.File, err)
			}
			published[e.File] = true
		}
		acts = append(acts, newAct(e))
	}
	return acts, nil
}

// printActs prints the table of all tasks. It returns an error if a task did not end as expected.
func printActs(a *app, acts []*demoTask, took time.Duration) error {
	var rows [][]string
	for _, act := range acts {
		rows = append(rows, act.summaryRow())
	}
	if err := printTable(a.stdout, []string{"", "FLOW", "STATE", "STEPS", "TIME", "RESULT OR ERROR"}, rows); err != nil {
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
		fmt.Fprintf(a.stdout, "\n%s (%s): %s\n", act.flowSlug(), act.out.ID, sanitizeText(act.mismatch))
	}
	fmt.Fprintf(a.stdout,
		"\n%d of %d tasks ended as they should, %d of them by failing, all in %s.\n", good,
		len(acts), failed, formatDuration(took))
	if good < len(acts) {
		return errFailed
	}
	return nil
}
