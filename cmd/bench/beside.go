//go:build unix

package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
)

// besideLine is the result of a run of one of two source trees. The script scripts/beside.sh adds
// the tree ("this" or "other") and the name of the run.
type besideLine struct {
	Tree string `json:"tree"`
	Name string `json:"name"`
	benchResult
}

// besideMetrics are the metrics by which two trees are compared. The guarded metrics depend little
// on other load of the machine.
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

// perStep returns the CPU time of a step in microseconds, for the given number of busy cores.
func perStep(r benchResult, cores float64) float64 {
	if r.StepsPerS == 0 {
		return 0
	}
	return 1e6 * cores / r.StepsPerS
}

// metricComparison is one metric of one workload in both trees.
type metricComparison struct {
	this, other         float64 // medians
	ratio, lowest, most float64 // median and spread of the ratios of the rounds
	best                float64 // ratio of the lowest values of both trees
}

// compareRounds compares both trees; values that were not measured are 0. It computes ratios per
// round first, because a slow phase of the machine affects both trees.
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

// exceeds reports whether this tree takes more than times as much as the other. Load on the machine
// can only increase values, so the best rounds of both trees must show the excess, too.
func (c metricComparison) exceeds(times float64) bool {
	return times > 0 && c.ratio > times && c.best > times
}

// printComparison prints the comparison of this tree with another one. To worse it writes the names
// of workloads whose CPU time per step exceeds the other's by the factor beyond, one per line.
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
