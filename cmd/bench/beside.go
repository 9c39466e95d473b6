//go:build unix

package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
)

// besideLine is a run of one of two trees: scripts/beside.sh puts before our own fields which of
// them, "this" or "other", and what was run.
type besideLine struct {
	Tree string `json:"tree"`
	Name string `json:"name"`
	benchResult
}

// besideMetrics are what two trees are compared by. The guarded ones move little with what else a
// machine does.
var besideMetrics = []struct {
	name    string
	guarded bool
	of      func(benchResult) float64
}{
	{"steps/s", false, func(r benchResult) float64 { return r.StepsPerS }},
	{"p50 ms", false, func(r benchResult) float64 { return r.P50MS }},
	{"p99 ms", false, func(r benchResult) float64 { return r.P99MS }},
	{"peak RSS MB", false, func(r benchResult) float64 { return r.PeakRSSMB }},
	{"member µs/step", true, func(r benchResult) float64 { return perStep(r, r.ClientCores) }},
	{"postgres µs/step", true, func(r benchResult) float64 { return perStep(r, r.PostgresCore) }},
	{"WAL bytes/step", false, func(r benchResult) float64 { return r.WALPerStep }},
}

// perStep is the CPU of a step in microseconds, of so many cores that were busy.
func perStep(r benchResult, cores float64) float64 {
	if r.StepsPerS == 0 {
		return 0
	}
	return 1e6 * cores / r.StepsPerS
}

// metricComparison is one metric of one workload in both trees.
type metricComparison struct {
	this, other         float64 // medians
	ratio, lowest, most float64 // of the rounds' own ratios; the median, and their spread
	best                float64 // the ratio of the least that either has in any round
}

// compareRounds has 0 for what was not measured. Rounds are compared with themselves first, because
// a machine that is slow for a while is slow for both trees.
func compareRounds(this, other []float64) metricComparison {
	var ratios []float64
	leastThis, leastOther := math.Inf(1), math.Inf(1)
	for i := range min(len(this), len(other)) {
		if this[i] > 0 && other[i] > 0 {
			ratios = append(ratios, this[i]/other[i])
			leastThis, leastOther = min(leastThis, this[i]), min(leastOther, other[i])
		}
	}
	if len(ratios) == 0 {
		return metricComparison{}
	}
	slices.Sort(ratios)
	return metricComparison{
		this: medianSorted(slices.Sorted(slices.Values(this))), other: medianSorted(slices.Sorted(slices.Values(other))),
		ratio: medianSorted(ratios), lowest: ratios[0], most: ratios[len(ratios)-1], best: leastThis / leastOther,
	}
}

// exceeds is whether this tree takes more than so many times as much, as far as one can tell: a
// busy machine only ever adds, so both trees' best rounds have to say so, too.
func (c metricComparison) exceeds(times float64) bool {
	return times > 0 && c.ratio > times && c.best > times
}

// printComparison prints how this tree does beside another one, and on worse the names of workloads
// that take more than beyond times as much CPU per step, a line each.
func printComparison(in io.Reader, out, worse io.Writer, beyond float64) error {
	runs := map[string]map[string][]benchResult{}
	var order []string
	err := decodeLines(in, func(l besideLine) {
		if runs[l.Name] == nil {
			runs[l.Name] = map[string][]benchResult{}
			order = append(order, l.Name)
		}
		runs[l.Name][l.Tree] = append(runs[l.Name][l.Tree], l.benchResult)
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%-20s %-16s %12s %12s %7s  %s\n", "", "", "this tree", "the other", "ratio", "of the rounds")
	for _, name := range order {
		heading, more := name, false
		for _, m := range besideMetrics {
			c := compareRounds(valuesOf(runs[name]["this"], m.of), valuesOf(runs[name]["other"], m.of))
			if c.ratio == 0 {
				continue
			}
			fmt.Fprintf(out, "%-20s %-16s %12.2f %12.2f %7.2f  %.2f–%.2f\n", heading, m.name, c.this, c.other, c.ratio, c.lowest, c.most)
			heading = strings.Repeat(" ", 20)
			more = more || m.guarded && c.exceeds(beyond)
		}
		if more {
			fmt.Fprintln(worse, name)
		}
	}
	return nil
}

func valuesOf(runs []benchResult, of func(benchResult) float64) (values []float64) {
	for _, r := range runs {
		values = append(values, of(r))
	}
	return values
}
