package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// runReport holds the state of a run of go test.
type runReport struct {
	started  time.Time
	verbose  bool
	ended    int
	failed   []string // failed packages
	packages map[string]*packageRun
}

// packageRun is a running package.
type packageRun struct {
	tests  map[string]*testRun // running tests, by name
	output strings.Builder     // output of the package itself
	result string              // Go's summary line, such as "ok  \tpackage\t1.2s"
	broken bool                // a test has failed
}

// testRun is a running test.
type testRun struct {
	started time.Time
	output  strings.Builder
}

func newReport(now time.Time, verbose bool) *runReport {
	return &runReport{started: now, verbose: verbose, packages: map[string]*packageRun{}}
}

func (r *runReport) hasFailures() bool { return len(r.failed) > 0 }

// addLine records a line of go test and returns the printed text; "" means no text.
func (r *runReport) addLine(line []byte) string {
	e, ok := decodeEvent(line)
	if !ok {
		return string(line)
	}
	if e.Action == "build-output" {
		return e.Output
	}
	if e.Package == "" {
		return ""
	}
	p := r.packages[e.Package]
	if p == nil {
		p = &packageRun{tests: map[string]*testRun{}}
		r.packages[e.Package] = p
	}
	if e.Test != "" {
		return p.addTestEvent(e, r.verbose)
	}
	return r.addPackageEvent(p, e)
}

// addTestEvent records an event of a test. It returns a failed test's output when the test ends.
func (p *packageRun) addTestEvent(e testEvent, verbose bool) string {
	t := p.tests[e.Test]
	if t == nil {
		t = &testRun{started: e.Time}
		p.tests[e.Test] = t
	}
	switch e.Action {
	case "output":
		if verbose {
			return e.Output
		}
		t.output.WriteString(e.Output)
	case "pass", "skip":
		delete(p.tests, e.Test)
	case "fail":
		p.broken = true
		delete(p.tests, e.Test)
		return t.output.String()
	}
	return ""
}

// addPackageEvent records an event of a package. When the package ends, it returns Go's summary
// line, preceded by the output of a failed package.
func (r *runReport) addPackageEvent(p *packageRun, e testEvent) string {
	switch e.Action {
	case "output":
		if isSummary(e.Output) {
			p.result = e.Output
			return ""
		}
		p.output.WriteString(e.Output)
	case "pass", "skip":
		return r.endPackage(p, e.Package)
	case "fail":
		r.failed = append(r.failed, e.Package)
		text := p.unfinishedOutput() + p.output.String()
		p.result = cmp.Or(p.result, fmt.Sprintf("FAIL\t%s\n", e.Package))
		return text + r.endPackage(p, e.Package)
	}
	return ""
}

// unfinishedOutput returns the output of the tests interrupted by a crash or a timeout.
func (p *packageRun) unfinishedOutput() string {
	var b strings.Builder
	for _, name := range sortedTests(p) {
		b.WriteString(p.tests[name].output.String())
	}
	return b.String()
}

func (r *runReport) endPackage(p *packageRun, name string) string {
	delete(r.packages, name)
	r.ended++
	if strings.HasPrefix(p.result, "?") || strings.Contains(p.result, "[no test files]") {
		return ""
	}
	return p.result
}

// isSummary reports whether a package's output is Go's summary line.
func isSummary(output string) bool {
	for _, prefix := range []string{"ok  \t", "FAIL\t", "?   \t", "---\t", "\t"} {
		if strings.HasPrefix(output, prefix) && strings.HasSuffix(output, "\n") && strings.Count(output, "\n") == 1 {
			return prefix != "\t" || strings.Contains(output, "coverage:")
		}
	}
	return false
}

// shownPackages is the maximal number of running packages in a progress line.
const shownPackages = 6

// describeProgress returns a line with the duration of the run, the number of ended packages, and
// the running packages with the oldest test of each.
func (r *runReport) describeProgress(now time.Time) string {
	var b strings.Builder
	fmt.Fprintf(&b, "... %s: %d packages ended", now.Sub(r.started).Round(time.Second), r.ended)
	if n := len(r.failed); n > 0 {
		fmt.Fprintf(&b, ", %d failed", n)
	}
	names := r.runningPackages()
	if len(names) == 0 {
		b.WriteString(", building the next ones\n")
		return b.String()
	}
	b.WriteString("; running")
	for i, name := range names {
		if i == shownPackages {
			fmt.Fprintf(&b, " and %d more", len(names)-i)
			break
		}
		fmt.Fprintf(&b, " %s", shortName(name))
		if test, since := r.packages[name].oldestTest(); test != "" {
			fmt.Fprintf(&b, " (%s, %s)", test, max(0, now.Sub(since)).Round(time.Second))
		}
	}
	b.WriteString("\n")
	return b.String()
}

// runningPackages returns the packages that have started and not ended, sorted by name.
func (r *runReport) runningPackages() []string {
	var names []string
	for name := range r.packages {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// oldestTest returns the test that has been running for the longest time; "" if there is none.
func (p *packageRun) oldestTest() (name string, started time.Time) {
	for _, n := range sortedTests(p) {
		if t := p.tests[n]; name == "" || t.started.Before(started) {
			name, started = n, t.started
		}
	}
	return name, started
}

func sortedTests(p *packageRun) []string {
	names := make([]string, 0, len(p.tests))
	for name := range p.tests {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// shortName returns a package's path without the module's.
func shortName(path string) string {
	const module = "github.com/troupe-engine/troupe"
	if path == module {
		return "."
	}
	return strings.TrimPrefix(path, module+"/")
}
