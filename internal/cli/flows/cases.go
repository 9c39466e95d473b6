package flows

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"github.com/troupe-engine/troupe/internal/cases"
	"github.com/troupe-engine/troupe/internal/cli/console"
)

// flowTestCmd runs the test cases of flows.
type flowTestCmd struct {
	console.OutputFlag
	Files       []string `arg:"" name:"file" help:"Flows with cases beside them (order.test.yaml beside order.yaml), test case files, or folders."`
	Tests       string   `type:"path" help:"Test case file of a single flow."`
	Only        string   `name:"run" placeholder:"REGEX" help:"Run only cases whose names match this regular expression."`
	Seeds       int      `help:"Also run each case with this many random seeds, which vary the order of results and signals and inject crashes, duplicate reports and failed calls."`
	Seed        uint64   `help:"Run with this seed only, to reproduce a failure."`
	Schedule    string   `type:"path" help:"Run with the faults of this file, as printed by a failure."`
	Verbose     bool     `short:"v" help:"Print the events of every case."`
	Coverage    bool     `help:"Print the coverage of nodes and edges."`
	MinCoverage float64  `help:"Fail if less than this percentage of a flow's nodes and edges is covered."`
	JUnit       string   `name:"junit" type:"path" help:"Write a JUnit report to this file."`
	Parallel    int      `help:"Number of cases to run in parallel; 0 = one per CPU."`
}

// Help describes the exit codes of flow test.
func (flowTestCmd) Help() string {
	return "Virtual time makes weeks take milliseconds. " +
		"Exit codes: 0 = all cases passed; 1 = a case failed or the coverage is too low; " +
		"2 = invalid file or command line. " +
		"docs/how-to/test-flows.md describes test case files."
}

// Run runs the cases and prints the report.
func (c *flowTestCmd) Run(_ context.Context, a *console.App) error {
	suite, err := c.openSuite(a)
	if err != nil {
		return err
	}
	began := time.Now()
	results, covered := suite.Play()
	if len(results) == 0 {
		return console.NewUsageError("no case matches --run %s", c.Only)
	}
	if err := c.writeJUnit(results); err != nil {
		return err
	}
	t := testReport{flowTestCmd: c, a: a, suite: suite, results: results, covered: covered, duration: time.Since(began)}
	if c.IsJSON() {
		return t.writeJSON()
	}
	return t.writeText()
}

// openSuite opens all files. It reports all faults in them together.
func (c *flowTestCmd) openSuite(a *console.App) (*cases.Suite, error) {
	s := &cases.Suite{Seeds: c.Seeds, Seed: c.Seed, Workers: c.Parallel}
	if c.Tests != "" && len(c.Files) > 1 {
		return nil, console.NewUsageError("--tests needs a single flow, but there are %d", len(c.Files))
	}
	var err error
	if s.Run, err = regexp.Compile(c.Only); err != nil {
		return nil, console.NewUsageError("--run: %v", err)
	}
	if err := c.loadFaultSchedule(a, s); err != nil {
		return nil, err
	}
	wrong := false
	for _, name := range c.Files {
		files, err := c.openCases(name)
		if err != nil {
			wrong = true
			printMistakes(a, err)
		}
		s.Files = append(s.Files, files...)
	}
	if wrong {
		return nil, console.ErrMistaken
	}
	return s, nil
}

func printMistakes(a *console.App, err error) {
	var all cases.Mistakes
	if !errors.As(err, &all) {
		fmt.Fprintf(a.Stderr, "%s: %v\n", a.Name, err)
		return
	}
	for _, m := range all {
		fmt.Fprintln(a.Stderr, formatProblem(m.File, m.Line, m.Column, string(m.Severity), m.Path, m.Msg))
	}
}

// openCases returns the cases of a flow, of a file of cases, or of a folder.
func (c *flowTestCmd) openCases(name string) (all []*cases.File, err error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	paths, of := []string{name}, ""
	switch {
	case info.IsDir():
		if paths, err = cases.In(name); err != nil {
			return nil, err
		}
	case c.Tests != "":
		paths, of = []string{c.Tests}, name
	case !cases.IsCases(name):
		beside, err := cases.Beside(name)
		if err != nil {
			return nil, err
		}
		paths, of = []string{beside}, name
	}
	for _, path := range paths {
		f, openErr := cases.Open(path, of)
		if openErr != nil {
			err = errors.Join(err, openErr)
			continue
		}
		all = append(all, f)
	}
	return all, err
}

// loadFaultSchedule reads the faults to inject.
func (c *flowTestCmd) loadFaultSchedule(a *console.App, s *cases.Suite) error {
	if c.Schedule == "" {
		return nil
	}
	text, err := os.ReadFile(c.Schedule)
	if err != nil {
		return err
	}
	schedule, problems := cases.ReadSchedule(text)
	if len(problems) > 0 {
		for _, p := range problems {
			fmt.Fprintln(a.Stderr, formatProblem(c.Schedule, p.Line, p.Column, string(p.Severity), p.Path, p.Msg))
		}
		return console.ErrMistaken
	}
	s.Schedule = schedule
	return nil
}

func (c *flowTestCmd) writeJUnit(results []*cases.Result) error {
	if c.JUnit == "" {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(c.JUnit), 0o755); err != nil {
		return err
	}
	f, err := os.Create(c.JUnit)
	if err != nil {
		return err
	}
	return errors.Join(cases.JUnit(f, results), f.Close())
}
