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

// commands of the profiles that Ork's own performance test has, and of one whose programs do nothing.
var commands = map[string]string{"ork-a": "sleep 0.1", "ork-b": "sleep 0.05", "ork-c": "sleep 5", "ork-d": "true"}

// series are the rounds of one way to run something.
type series struct {
	name  string
	rates []float64 // tasks per second, by round
	once  func() (tasksPerS float64, err error)
}

// inTurn runs every series once in each round. Who goes first finds the machine in another state, so they take turns in that, too.
func inTurn(rounds int, all ...*series) error {
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

func (s *series) median() float64 { return median(slices.Sorted(slices.Values(s.rates))) }

// of is the median of the ratios to another series, round by round.
func (s *series) of(other *series) float64 {
	ratios := make([]float64, len(s.rates))
	for i := range ratios {
		ratios[i] = s.rates[i] / other.rates[i]
	}
	slices.Sort(ratios)
	return median(ratios)
}

// gathered are rounds of runs on one member.
type gathered struct {
	took     latencies
	runsPerS []float64
	together int
}

// runs is a series of rounds of a published flow. What they tell is gathered.
func (b *bench) runs(s *served, flow string, n int) (*series, *gathered) {
	g := &gathered{}
	return &series{name: flow, once: func() (float64, error) {
		r, err := b.round(s, flow, n)
		if err != nil {
			return 0, err
		}
		g.took.list = append(g.took.list, r.took...)
		g.runsPerS = append(g.runsPerS, r.runsPerS)
		g.together = max(g.together, r.together)
		return r.tasksPerS, nil
	}}, g
}

// bare is a series of loops that start the same programs without any engine.
func (b *bench) bare(argv []string) *series {
	n := b.o.n * b.o.width
	return &series{name: "a bare loop", once: func() (float64, error) { return b.bareLoop(argv, n, min(n, b.o.concurrency)) }}
}

// fileOf is a workflow file of so many tasks that do not depend on each other.
func fileOf(name string, tasks int, task string) string {
	var d strings.Builder
	fmt.Fprintf(&d, "name: %s\ntasks:\n", name)
	for i := range tasks {
		fmt.Fprintf(&d, "  t%d: %s\n", i, task)
	}
	return d.String()
}

// flowOf is the same as a definition of ours.
func flowOf(tasks int, node string) string {
	var d strings.Builder
	d.WriteString("mode: dag\nprofile: ork\nnodes:\n")
	for i := range tasks {
		fmt.Fprintf(&d, "  t%d: %s\n", i, node)
	}
	return d.String()
}

// profile runs workflow files of Ork whose tasks are programs on `troupe serve`, beside a bare loop that starts the same programs.
func (b *bench) profile() error {
	command := commands[b.o.workload]
	s, err := b.serveTroupe(b.o.concurrency)
	if err != nil {
		return err
	}
	defer s.stop()
	if err := s.publishOrk(b.ctx, fileOf(b.o.workload, b.o.width, fmt.Sprintf("{executor: process, command: %q}", command))); err != nil {
		return err
	}
	if _, err := b.round(s, b.o.workload, min(b.o.n, 10)); err != nil {
		return err
	}
	time.Sleep(2 * time.Second)
	b.result.Extra = map[string]float64{"rss_idle_mb": s.rssMB()}
	own, seen := b.runs(s, b.o.workload, b.o.n)
	bare := b.bare(strings.Fields(command))
	all := []*series{own, bare}
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
	b.tell(own, bare, seen)
	if len(all) > 2 {
		b.result.Extra["func_per_s"], b.result.Extra["of_func"] = all[2].median(), own.of(all[2])
	}
	return nil
}

// tell fills in what rounds have told.
func (b *bench) tell(own, bare *series, seen *gathered) {
	r := &b.result
	r.Worker, r.StepsPerS = "process", own.median()
	r.TasksPerS = r.StepsPerS / float64(b.o.width)
	seen.took.fill(r)
	slices.Sort(seen.runsPerS)
	r.Extra["max_ms"] = milli(slices.Max(seen.took.list))
	r.Extra["runs_taken_per_s"] = median(seen.runsPerS)
	r.Extra["at_once"] = float64(seen.together)
	r.Extra["bare_per_s"], r.Extra["of_bare"] = bare.median(), own.of(bare)
}

// sameWithFuncs has the flow of ork-d carried out by functions of Go, on a member of its own.
func (b *bench) sameWithFuncs() (runs *series, stop func() error, err error) {
	s, err := b.serveFuncs()
	if err != nil {
		return nil, nil, err
	}
	err = s.publishFlow(b.ctx, "functions", flowOf(b.o.width, "{exec_type: local_func, func: nothing}"))
	if err == nil {
		_, err = b.round(s, "functions", min(b.o.n, 10))
	}
	if err != nil {
		s.stop()
		return nil, nil, err
	}
	runs, _ = b.runs(s, "functions", b.o.n)
	return runs, s.stop, nil
}

// python runs tasks that are functions of Python, each in an interpreter of its own and each forked by a warm one.
func (b *bench) python() error {
	s, err := b.serveTroupe(b.o.concurrency)
	if err != nil {
		return err
	}
	defer s.stop()
	if err := os.WriteFile(filepath.Join(b.dir, "tasks.py"), []byte("def main(): return 1\n"), 0o600); err != nil {
		return err
	}
	var all []*series
	var seen *gathered
	for _, name := range []string{"cold", "warm"} {
		node := "{exec: {type: python, file: tasks.py}}"
		if name == "warm" {
			node = "{exec: {type: python, file: tasks.py, warm: 2}}"
		}
		if err := s.publishFlow(b.ctx, name, flowOf(b.o.width, node)); err != nil {
			return err
		}
		if _, err := b.round(s, name, 2); err != nil {
			return err
		}
		var runs *series
		runs, seen = b.runs(s, name, b.o.n)
		all = append(all, runs)
	}
	b.result.Extra = map[string]float64{"rss_idle_mb": s.rssMB()}
	peak := s.watchRSS()
	if err := inTurn(b.o.rounds, all...); err != nil {
		return err
	}
	b.result.PeakRSSMB = peak()
	cold, warm := all[0], all[1]
	b.result.Worker, b.result.StepsPerS, b.result.TasksPerS = "python", warm.median(), warm.median()/float64(b.o.width)
	seen.took.fill(&b.result)
	b.result.Extra["cold_per_s"], b.result.Extra["of_cold"] = cold.median(), warm.of(cold)
	return nil
}
