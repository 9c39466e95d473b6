//go:build unix

package main

import (
	"cmp"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/troupe-engine/troupe/internal/tools/plot"
)

// curves are the charts. name identifies the lines of scripts/curves.sh, and x is the varied
// quantity.
var curves = []struct {
	name, title, x string
	few            bool // whether the x axis is linear, for a few adjacent values
}{
	{"in-flight", "Chains: tasks in flight", "tasks in flight", false},
	{"nodes", "A dag of nodes in sequence: its size", "nodes", false},
	{"diamond", "A dag of nodes at once: its size", "nodes", false},
	{"units", "A fan-out: its width", "units", false},
	{"payload", "Chains: what each step takes and returns", "bytes", false},
	{"history", "Chains in tasks that have a history", "units behind each task", false},
	{"members", "Chains on several members over one PostgreSQL", "members", true},
}

// curveLine is a run at one x value of a curve.
type curveLine struct {
	Curve string  `json:"curve"`
	X     float64 `json:"x"`
	benchResult
}

// drawCurves draws the lines of scripts/curves.sh as charts in a folder, one per curve.
func drawCurves(in io.Reader, folder string) error {
	runs := map[string]map[float64][]benchResult{}
	err := decodeLines(in, func(l curveLine) {
		if runs[l.Curve] == nil {
			runs[l.Curve] = map[float64][]benchResult{}
		}
		runs[l.Curve][l.X] = append(runs[l.Curve][l.X], l.benchResult)
	})
	if err != nil {
		return err
	}
	for _, c := range curves {
		if runs[c.name] == nil {
			continue
		}
		f := plot.Figure{Title: c.title, X: c.x, Log: !c.few, Panels: buildPanels(runs[c.name])}
		if err := os.WriteFile(filepath.Join(folder, c.name+".svg"), f.SVG(), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// buildPanels returns the panels for the rate, the CPU time and the bytes of a step, with the
// medians of repeated measurements.
func buildPanels(runs map[float64][]benchResult) []plot.Panel {
	line := func(name string, of func(benchResult) float64) plot.Line {
		l := plot.Line{Name: name}
		for x, list := range runs {
			l.Points = append(l.Points, plot.Point{X: x, Y: resultMedian(list, of)})
		}
		slices.SortFunc(l.Points, func(a, b plot.Point) int { return cmp.Compare(a.X, b.X) })
		return l
	}
	return []plot.Panel{
		{Y: "steps/s", Lines: []plot.Line{line("", func(r benchResult) float64 { return r.StepsPerS })}},
		{Y: "CPU of a step, µs", Lines: []plot.Line{
			line("member", func(r benchResult) float64 { return perStep(r, r.ClientCores) }),
			line("PostgreSQL", func(r benchResult) float64 { return perStep(r, r.PostgresCore) })}},
		{Y: "bytes of a step", Lines: []plot.Line{
			line("WAL", func(r benchResult) float64 { return r.WALPerStep }),
			line("journal", func(r benchResult) float64 { return r.JournalStep })}},
	}
}
