package flows

import (
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/troupe-engine/troupe/internal/cases"
	"github.com/troupe-engine/troupe/internal/cli/console"
	"github.com/troupe-engine/troupe/internal/rehearse"
)

// testReport prints the results of a test run.
type testReport struct {
	*flowTestCmd
	a        *console.App
	suite    *cases.Suite
	results  []*cases.Result
	covered  []*rehearse.Coverage
	duration time.Duration
}

// writeJSON prints all results for programs.
func (t *testReport) writeJSON() error {
	out := struct {
		Passed   bool                   `json:"passed"`
		Runs     int                    `json:"runs"`
		Cases    []cases.Record         `json:"cases"`
		Coverage []cases.CoverageRecord `json:"coverage"`
	}{Passed: true}
	for _, r := range t.results {
		out.Cases = append(out.Cases, r.Record())
		out.Runs += r.Runs
	}
	for i, f := range t.suite.Files {
		out.Coverage = append(out.Coverage, cases.Covered(f, t.covered[i]))
	}
	err := t.exitError()
	out.Passed = err == nil
	return errors.Join(console.PrintJSON(t.a.Stdout, out), err)
}

// ExitError returns an error if a case failed or the coverage is too low.
func (t *testReport) exitError() error {
	for _, r := range t.results {
		if !r.Passed() {
			return console.ErrFailed
		}
	}
	for i := range t.covered {
		if t.lacksCoverage(i) {
			return console.ErrFailed
		}
	}
	return nil
}

// lacksCoverage reports whether too little of a flow is covered.
func (t *testReport) lacksCoverage(i int) bool { return t.covered[i].Percent() < t.MinCoverage }

// writeText prints the results for people, by file: the number of passed cases, and details of each
// failed case.
func (t *testReport) writeText() error {
	runs, failed, last := 0, 0, ""
	for _, r := range t.results {
		if r.File.Path != last {
			last = r.File.Path
			fmt.Fprintf(t.a.Stdout, "%s\n", last)
		}
		runs += r.Runs
		if !r.Passed() {
			failed++
		}
		t.printResult(r)
	}
	t.printCoverage()
	fmt.Fprintf(t.a.Stdout, "%s: %d passed, %d failed; run %s in %s\n",
		console.FormatCount(len(t.results), "case"), len(t.results)-failed, failed, formatTimes(runs),
		console.FormatDuration(t.duration))
	return t.exitError()
}

func formatTimes(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

func (t *testReport) printResult(r *cases.Result) {
	if r.Passed() {
		fmt.Fprintf(t.a.Stdout, "  ✓ %s (%s)\n", console.SanitizeText(r.Case.Name), rehearse.Span(r.Took))
		if t.Verbose {
			for _, l := range rehearse.Run(r.File.Play(r.Case)).Tell() {
				fmt.Fprintf(t.a.Stdout, "      %12s  %s\n", rehearse.Span(l.Time), console.SanitizeText(l.Text))
			}
		}
		return
	}
	fmt.Fprintf(t.a.Stdout, "  ✗ %s\n%s", console.SanitizeText(r.Case.Name), r.Text("      "))
	if r.Seed > 0 {
		fmt.Fprintf(t.a.Stdout, "      reproduce: troupe flow test %s --seed %d --run '^%s$'\n",
			r.File.Path, r.Seed, regexp.QuoteMeta(r.Case.Name))
	}
}

func (t *testReport) printCoverage() {
	for i, f := range t.suite.Files {
		if t.Coverage {
			_ = cases.Marks(t.a.Stdout, f, t.covered[i])
		} else {
			fmt.Fprintf(t.a.Stdout, "%s: %s\n", f.Flow, cases.Summary(t.covered[i]))
		}
		if t.lacksCoverage(i) {
			fmt.Fprintf(t.a.Stdout, "%s: coverage is below %g %% (--min-coverage)\n", f.Flow, t.MinCoverage)
		}
	}
}
