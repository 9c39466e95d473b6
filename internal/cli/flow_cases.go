package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"github.com/troupe-engine/troupe/internal/cases"
)

// flowTestCmd runs the test cases of flows.
type flowTestCmd struct {
	outputFlag
	Files       []string `arg:"" name:"file" help:"Flows, whose cases stand beside them (order.test.yaml beside order.yaml), files of cases, or folders with such."`
	Tests       string   `type:"path" help:"File with the cases of the one flow that is named."`
	Only        string   `name:"run" placeholder:"REGEX" help:"Play only the cases whose names this regular expression matches."`
	Seeds       int      `help:"Play each case under so many seeds, too: results, signals and crashes in another order, reports that come twice, calls that fail, as the case permits."`
	Seed        uint64   `help:"Play under this seed alone, to see a failure again."`
	Schedule    string   `type:"path" help:"Play under the faults of this file, as a failure has printed them."`
	Verbose     bool     `short:"v" help:"Tell of every case what happened."`
	Coverage    bool     `help:"Show which nodes and edges the cases have been at."`
	MinCoverage float64  `help:"Fail when less than so many percent of a flow's nodes and edges have been at."`
	JUnit       string   `name:"junit" type:"path" help:"Write the results to this file, in the form that build servers read."`
	Parallel    int      `help:"Cases at the same time; 0 = one for each processor."`
}

// Help describes the exit codes.
func (flowTestCmd) Help() string {
	return "Plays the cases of flows in virtual time, without a server: three weeks take a " +
		"millisecond. Exits with 0 when all is as expected, with 1 when " +
		"something is not, or too little is covered, and with 2 when a file, or the command " +
		"line, is wrong. docs/how-to/test-flows.md describes the files of cases."
}

// Run runs the cases.
func (c *flowTestCmd) Run(_ context.Context, a *app) error {
	suite, err := c.openSuite(a)
	if err != nil {
		return err
	}
	began := time.Now()
	results, covered := suite.Play()
	if len(results) == 0 {
		return newUsageError("no case has a name that --run %s matches", c.Only)
	}
	if err := c.writeJUnit(results); err != nil {
		return err
	}
	t := testReport{flowTestCmd: c, a: a, suite: suite, results: results, covered: covered, duration: time.Since(began)}
	if c.isJSON() {
		return t.writeJSON()
	}
	return t.writeText()
}

// openSuite opens all files. It reports all faults in them together.
func (c *flowTestCmd) openSuite(a *app) (*cases.Suite, error) {
	s := &cases.Suite{Seeds: c.Seeds, Seed: c.Seed, Workers: c.Parallel}
	if c.Tests != "" && len(c.Files) > 1 {
		return nil, newUsageError("--tests has the cases of one flow, but there are %d", len(c.Files))
	}
	var err error
	if s.Run, err = regexp.Compile(c.Only); err != nil {
		return nil, newUsageError("--run: %v", err)
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
		return nil, errMistaken
	}
	return s, nil
}

// errMistaken is the error of a command that has already reported faults in files.
var errMistaken = errors.New("mistakes in files")

func printMistakes(a *app, err error) {
	var all cases.Mistakes
	if !errors.As(err, &all) {
		fmt.Fprintf(a.stderr, "%s: %v\n", a.name, err)
		return
	}
	for _, m := range all {
		fmt.Fprintln(a.stderr, formatProblem(m.File, m.Line, m.Column, string(m.Severity), m.Path, m.Msg))
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
func (c *flowTestCmd) loadFaultSchedule(a *app, s *cases.Suite) error {
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
			fmt.Fprintln(a.stderr, formatProblem(c.Schedule, p.Line, p.Column, string(p.Severity), p.Path, p.Msg))
		}
		return errMistaken
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
