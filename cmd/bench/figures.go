//go:build unix

package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// tableFigure is a row of the table: a measurement and its target.
type tableFigure struct {
	label, measured, demanded string
	met                       bool
}

// printFigures prints the results of a cluster's workloads as a table. It returns an error if a
// target is missed.
func printFigures(in io.Reader, out io.Writer) error {
	lines, err := readResults(in)
	if err != nil {
		return err
	}
	missed := false
	fmt.Fprintln(out, "| figure | measured | demanded |\n|---|---|---|")
	for _, f := range slices.Concat(ofMembers(lines["members"]), ofIdle(lines["idle"]),
		ofParked(lines["parked"]), ofWorkers(lines["chain"]), ofFailover(lines["failover"])) {
		verdict := f.demanded
		if !f.met {
			missed, verdict = true, f.demanded+" (**missed**)"
		}
		fmt.Fprintf(out, "| %s | %s | %s |\n", f.label, f.measured, verdict)
	}
	if missed {
		return errors.New("a figure is not what it is to be")
	}
	return nil
}

// readResults reads JSON lines, by workload.
func readResults(in io.Reader) (map[string][]benchResult, error) {
	lines := map[string][]benchResult{}
	err := decodeLines(in, func(r benchResult) { lines[r.Workload] = append(lines[r.Workload], r) })
	return lines, err
}

// decodeLines calls f with each JSON line.
func decodeLines[T any](in io.Reader, f func(T)) error {
	s := bufio.NewScanner(in)
	for s.Buffer(nil, 1<<20); s.Scan(); {
		var line T
		if err := json.Unmarshal(s.Bytes(), &line); err != nil {
			return fmt.Errorf("%.80s: %w", s.Text(), err)
		}
		f(line)
	}
	return s.Err()
}

// resultMedian returns the median of a field of the lines.
func resultMedian(lines []benchResult, of func(benchResult) float64) float64 {
	values := make([]float64, len(lines))
	for i, l := range lines {
		values[i] = of(l)
	}
	slices.Sort(values)
	return medianSorted(values)
}

func extraValue(name string) func(benchResult) float64 {
	return func(r benchResult) float64 { return r.Extra[name] }
}

func ofMembers(lines []benchResult) []tableFigure {
	if len(lines) == 0 {
		return nil
	}
	ratio := resultMedian(lines, extraValue("of_one"))
	return []tableFigure{{fmt.Sprintf(
		"chain on %.0f members over one PostgreSQL, %d callers at each", lines[0].Extra["members"],
		lines[0].Concurrency),
		fmt.Sprintf("%.0f steps/s, %.0f %% of one member's %.0f",
			resultMedian(lines, func(r benchResult) float64 { return r.StepsPerS }), 100*ratio,
			resultMedian(lines, extraValue("one_steps_per_s"))),
		"at least 80 %", ratio >= 0.8}}
}

func ofIdle(lines []benchResult) []tableFigure {
	if len(lines) == 0 {
		return nil
	}
	rate := resultMedian(lines, extraValue("statements_per_s"))
	return []tableFigure{{fmt.Sprintf("statements of %.0f members that have nothing to do", lines[0].Extra["members"]),
		fmt.Sprintf("%.1f/s", rate), "fewer than 20/s", rate < 20}}
}

func ofParked(lines []benchResult) []tableFigure {
	if len(lines) == 0 {
		return nil
	}
	cpu := resultMedian(lines, extraValue("idle_cpu_percent"))
	return []tableFigure{{fmt.Sprintf("CPU of a member with %d tasks that wait", lines[0].N),
		fmt.Sprintf("%.2f %% of a core", cpu), "less than 2 %", cpu < 2}}
}

// ofWorkers returns a row for each kind of worker, compared with local functions.
func ofWorkers(lines []benchResult) (list []tableFigure) {
	rate := func(worker string) float64 {
		of := slices.DeleteFunc(slices.Clone(lines), func(r benchResult) bool { return r.Worker != worker })
		if len(of) == 0 {
			return 0
		}
		return resultMedian(of, func(r benchResult) float64 { return r.StepsPerS })
	}
	own := rate("func")
	if own == 0 {
		return nil
	}
	list = []tableFigure{{"jobs of local functions (chain, 64 callers)", fmt.Sprintf("%.0f/s", own), "", true}}
	for _, w := range []struct {
		kind, of string
		least    float64
	}{{"attach", "an attached worker", 0.8}, {"push", "a push worker", 0}, {"pull", "a pull worker", 0}} {
		if r := rate(w.kind); r > 0 {
			f := tableFigure{"jobs of " + w.of, fmt.Sprintf("%.0f/s, %.0f %% of local functions'", r, 100*r/own), "", r >= w.least*own}
			if w.least > 0 {
				f.demanded = fmt.Sprintf("at least %.0f %%", 100*w.least)
			}
			list = append(list, f)
		}
	}
	return list
}

func ofFailover(lines []benchResult) []tableFigure {
	if len(lines) == 0 {
		return nil
	}
	half, worst := resultMedian(lines, func(r benchResult) float64 { return r.P50MS }), resultMedian(lines, extraValue("worst_ms"))
	return []tableFigure{{fmt.Sprintf("from the SIGKILL of an attached worker until another one "+
		"has its job (`--resume-grace 0`, %d times)", lines[0].N),
		fmt.Sprintf("%.1f ms (half of the times), %.1f ms (worst)", half, worst), "under 50 ms", worst < 50}}
}
