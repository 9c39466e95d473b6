package cli

import (
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/troupe-engine/troupe/internal/cases"
	"github.com/troupe-engine/troupe/internal/rehearse"
)

// playbill tells what came of a run.
type playbill struct {
	*flowTestCmd
	a       *app
	suite   *cases.Suite
	results []*cases.Result
	covered []*rehearse.Coverage
	took    time.Duration
}

// json tells everything to programs.
func (t *playbill) json() error {
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
	err := t.outcome()
	out.Passed = err == nil
	return errors.Join(printJSON(t.a.stdout, out), err)
}

// outcome is whether all was as it has to be.
func (t *playbill) outcome() error {
	for _, r := range t.results {
		if !r.Passed() {
			return errFailed
		}
	}
	for i := range t.covered {
		if t.short(i) {
			return errFailed
		}
	}
	return nil
}

// short says whether too little of a flow is covered.
func (t *playbill) short(i int) bool { return t.covered[i].Percent() < t.MinCoverage }

// text tells people: file by file what passed, and of what failed what happened.
func (t *playbill) text() error {
	runs, failed, last := 0, 0, ""
	for _, r := range t.results {
		if r.File.Path != last {
			last = r.File.Path
			fmt.Fprintf(t.a.stdout, "%s\n", last)
		}
		runs += r.Runs
		if !r.Passed() {
			failed++
		}
		t.result(r)
	}
	t.coverage()
	fmt.Fprintf(t.a.stdout, "%s: %d passed, %d failed; played %s in %s\n", counted(len(t.results), "case"), len(t.results)-failed, failed, times(runs), span(t.took))
	return t.outcome()
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

func (t *playbill) result(r *cases.Result) {
	if r.Passed() {
		fmt.Fprintf(t.a.stdout, "  ✓ %s (%s)\n", clean(r.Case.Name), rehearse.Span(r.Took))
		if t.Verbose {
			for _, l := range rehearse.Run(r.File.Play(r.Case)).Tell() {
				fmt.Fprintf(t.a.stdout, "      %12s  %s\n", rehearse.Span(l.Time), clean(l.Text))
			}
		}
		return
	}
	fmt.Fprintf(t.a.stdout, "  ✗ %s\n%s", clean(r.Case.Name), r.Text("      "))
	if r.Seed > 0 {
		fmt.Fprintf(t.a.stdout, "      again: troupe flow test %s --seed %d --run '^%s$'\n", r.File.Path, r.Seed, regexp.QuoteMeta(r.Case.Name))
	}
}

func (t *playbill) coverage() {
	for i, f := range t.suite.Files {
		if t.Coverage {
			_ = cases.Marks(t.a.stdout, f, t.covered[i])
		} else {
			fmt.Fprintf(t.a.stdout, "%s: %s\n", f.Flow, cases.Summary(t.covered[i]))
		}
		if t.short(i) {
			fmt.Fprintf(t.a.stdout, "%s: less than %g %% is covered (--min-coverage)\n", f.Flow, t.MinCoverage)
		}
	}
}
