//go:build unix

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// commands are the commands of the profiles in Ork's own performance test, and the command of a
// profile whose programs do nothing.
var commands = map[string]string{"ork-a": "sleep 0.1", "ork-b": "sleep 0.05", "ork-c": "sleep 5", "ork-d": "true"}

// runSeries is a series of rounds that are run in the same way.
type runSeries struct {
	name  string
	rates []float64 // tasks per second, by round
	once  func() (tasksPerS float64, err error)
}

// inTurn runs every series once per round. The first series of a round sees a different state of
// the machine, so the order rotates.
func inTurn(rounds int, all ...*runSeries) error {
	for r := range rounds {
		for i := range all {
			s := all[(i+r)%len(all)]
			rate, err := s.once()
			if err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
			s.rates = append(s.rates, rate)
		}
	}
	return nil
}

func (s *runSeries) medianRate() float64 { return medianSorted(slices.Sorted(slices.Values(s.rates))) }

// ratioTo returns the median ratio to another series, computed per round.
func (s *runSeries) ratioTo(other *runSeries) float64 {
	ratios := make([]float64, len(s.rates))
	for i := range ratios {
		ratios[i] = s.rates[i] / other.rates[i]
	}
	slices.Sort(ratios)
	return medianSorted(ratios)
}

// gatheredRounds collects the measurements of rounds on one member.
type gatheredRounds struct {
	durations latencySamples
	runsPerS  []float64
	together  int
}

// newSeries returns a series of a published flow, and its collected measurements.
func (b *benchRun) newSeries(s *servedMember, flow string, n int) (*runSeries, *gatheredRounds) {
	g := &gatheredRounds{}
	return &runSeries{name: flow, once: func() (float64, error) {
		r, err := b.runRound(s, flow, n)
		if err != nil {
			return 0, err
		}
		g.durations.list = append(g.durations.list, r.durations...)
		g.runsPerS = append(g.runsPerS, r.runsPerS)
		g.together = max(g.together, r.together)
		return r.tasksPerS, nil
	}}, g
}

// newBareSeries returns a series of loops that start the same programs without any engine.
func (b *benchRun) newBareSeries(argv []string) *runSeries {
	n := b.o.n * b.o.width
	return &runSeries{name: "a bare loop", once: func() (float64, error) { return b.bareLoop(argv, n, min(n, b.o.concurrency)) }}
}

// fileOf returns an Ork workflow file of independent tasks.
func fileOf(name string, tasks int, task string) string {
	var d strings.Builder
	fmt.Fprintf(&d, "name: %s\ntasks:\n", name)
	for i := range tasks {
		fmt.Fprintf(&d, "  t%d: %s\n", i, task)
	}
	return d.String()
}

// flowOf returns the workflow of fileOf as a Troupe definition.
func flowOf(tasks int, node string) string {
	var d strings.Builder
	d.WriteString("mode: dag\nprofile: ork\nnodes:\n")
	for i := range tasks {
		fmt.Fprintf(&d, "  t%d: %s\n", i, node)
	}
	return d.String()
}

// measureProfile runs Ork workflow files whose tasks are programs on `troupe serve`, compared with
// a bare loop that starts the same programs.
func (b *benchRun) measureProfile() error {
	command := commands[b.o.workload]
	s, err := b.serveTroupe(b.o.concurrency)
	if err != nil {
		return err
	}
	defer s.stopMember()
	if err := s.publishOrk(b.ctx, fileOf(b.o.workload, b.o.width, fmt.Sprintf("{executor: process, command: %q}", command))); err != nil {
		return err
	}
	if _, err := b.runRound(s, b.o.workload, min(b.o.n, 10)); err != nil {
		return err
	}
	time.Sleep(2 * time.Second)
	b.result.Extra = map[string]float64{"rss_idle_mb": s.rssMB()}
	own, seen := b.newSeries(s, b.o.workload, b.o.n)
	bare := b.newBareSeries(strings.Fields(command))
	all := []*runSeries{own, bare}
	if b.o.workload == "ork-d" {
		funcs, stop, err := b.sameWithFuncs()
		if err != nil {
			return err
		}
		defer stop()
		all = append(all, funcs)
	}
	peak := s.watchRSS()
	if err := inTurn(b.o.rounds, all...); err != nil {
		return err
	}
	b.result.PeakRSSMB = peak()
	b.fillResult(own, bare, seen)
	if len(all) > 2 {
		b.result.Extra["func_per_s"], b.result.Extra["of_func"] = all[2].medianRate(), own.ratioTo(all[2])
	}
	return nil
}

// fillResult fills in the measurements of the rounds.
func (b *benchRun) fillResult(own, bare *runSeries, seen *gatheredRounds) {
	r := &b.result
	r.Worker, r.StepsPerS = "process", own.medianRate()
	r.TasksPerS = r.StepsPerS / float64(b.o.width)
	seen.durations.fillPercentiles(r)
	slices.Sort(seen.runsPerS)
	r.Extra["max_ms"] = toMillis(slices.Max(seen.durations.list))
	r.Extra["runs_taken_per_s"] = medianSorted(seen.runsPerS)
	r.Extra["at_once"] = float64(seen.together)
	r.Extra["bare_per_s"], r.Extra["of_bare"] = bare.medianRate(), own.ratioTo(bare)
}

// sameWithFuncs runs the flow of ork-d with Go functions, on a member of its own.
func (b *benchRun) sameWithFuncs() (runs *runSeries, stop func() error, err error) {
	s, err := b.serveFuncs()
	if err != nil {
		return nil, nil, err
	}
	err = s.publishFlow(b.ctx, "functions", flowOf(b.o.width, "{exec_type: local_func, func: nothing}"))
	if err == nil {
		_, err = b.runRound(s, "functions", min(b.o.n, 10))
	}
	if err != nil {
		s.stopMember()
		return nil, nil, err
	}
	runs, _ = b.newSeries(s, "functions", b.o.n)
	return runs, s.stopMember, nil
}

// measurePython runs tasks that are Python functions: each in a new interpreter, and each forked by
// a warm interpreter.
func (b *benchRun) measurePython() error {
	s, err := b.serveTroupe(b.o.concurrency)
	if err != nil {
		return err
	}
	defer s.stopMember()
	if err := os.WriteFile(filepath.Join(b.dir, "tasks.py"), []byte("def main(): return 1\n"), 0o600); err != nil {
		return err
	}
	var all []*runSeries
	var seen *gatheredRounds
	for _, name := range []string{"cold", "warm"} {
		node := "{exec: {type: python, file: tasks.py}}"
		if name == "warm" {
			node = "{exec: {type: python, file: tasks.py, warm: 2}}"
		}
		if err := s.publishFlow(b.ctx, name, flowOf(b.o.width, node)); err != nil {
			return err
		}
		if _, err := b.runRound(s, name, 2); err != nil {
			return err
		}
		var runs *runSeries
		runs, seen = b.newSeries(s, name, b.o.n)
		all = append(all, runs)
	}
	b.result.Extra = map[string]float64{"rss_idle_mb": s.rssMB()}
	peak := s.watchRSS()
	if err := inTurn(b.o.rounds, all...); err != nil {
		return err
	}
	b.result.PeakRSSMB = peak()
	cold, warm := all[0], all[1]
	b.result.Worker, b.result.StepsPerS, b.result.TasksPerS = "python", warm.medianRate(), warm.medianRate()/float64(b.o.width)
	seen.durations.fillPercentiles(&b.result)
	b.result.Extra["cold_per_s"], b.result.Extra["of_cold"] = cold.medianRate(), warm.ratioTo(cold)
	return nil
}
