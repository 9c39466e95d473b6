package cases

import (
	"regexp"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/troupe-engine/troupe/internal/rehearse"
)

// Suite is a set of case files with options for running them.
type Suite struct {
	Files    []*File
	Run      *regexp.Regexp    // selects cases by name; nil means all
	Seeds    int               // number of seeds per case
	Seed     uint64            // run only this seed; 0 means from 1 on
	Schedule rehearse.Schedule // run these faults instead of seeds
	Workers  int               // number of cores; 0 means all
}

// Result is the result of a case.
type Result struct {
	File     *File
	Case     *Case
	Runs     int             // number of runs
	Took     time.Duration   // virtual time of the undisturbed run
	Wall     time.Duration   // real time
	Failures []Failure       // nil if it has passed
	Story    *rehearse.Story // story of the failures
	Seed     uint64          // failing seed; 0 if none
	// number of faults drawn by the seed; Story has those left after shrinking
	Drawn int
}

// Passed reports whether all expectations hold.
func (r *Result) Passed() bool { return len(r.Failures) == 0 }

// Play returns the rehearsal of a case.
func (f *File) Play(c *Case) *rehearse.Play {
	p := &rehearse.Play{Plan: f.Plan, Params: c.Params, Acts: c.Acts, Until: c.Until, Kinds: c.Kinds,
		Answers: func() rehearse.Answerer { return NewCast(c.Mocks).Answer }}
	if len(c.MayFail) > 0 {
		p.MayFail = func(call *rehearse.Call) bool {
			for _, name := range c.MayFail {
				if Matches(call, name) {
					return true
				}
			}
			return false
		}
	}
	return p
}

// Play runs all cases. It returns their results in order, and the coverage of the undisturbed runs
// by file.
func (s *Suite) Play() (results []*Result, covered []*rehearse.Coverage) {
	for _, f := range s.Files {
		for _, c := range f.Cases {
			if s.Run == nil || s.Run.MatchString(c.Name) {
				results = append(results, &Result{File: f, Case: c})
			}
		}
	}
	calm := make([]*rehearse.Story, len(results))
	s.runParallel(len(results), func(i int) { calm[i] = results[i].playUndisturbed() })
	switch first, last := s.seedRange(); {
	case s.Schedule != nil:
		s.runParallel(len(results), func(i int) { results[i].playUnder(s.Schedule) })
	case last > 0:
		s.playSeeds(results, first, last)
	}
	for _, f := range s.Files {
		all := rehearse.NewCoverage(f.Plan)
		for i, r := range results {
			if r.File == f {
				all.Add(calm[i])
			}
		}
		covered = append(covered, all)
	}
	return results, covered
}

// seedRange returns the first and last seed; last is 0 if there are none.
func (s *Suite) seedRange() (first, last uint64) {
	if s.Seed > 0 {
		return s.Seed, s.Seed
	}
	return 1, uint64(max(s.Seeds, 0))
}

// runParallel calls do for 0 to n-1 on all cores.
func (s *Suite) runParallel(n int, do func(i int)) {
	var next atomic.Int64
	var all sync.WaitGroup
	workers := s.Workers
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	for range min(workers, n) {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				do(i)
			}
		})
	}
	all.Wait()
}

// playUndisturbed runs a case without faults.
func (r *Result) playUndisturbed() *rehearse.Story {
	began := time.Now()
	calm := rehearse.Run(r.File.Play(r.Case))
	r.Runs, r.Took = 1, calm.Took
	if r.Failures = r.Case.Check(calm, false); !r.Passed() {
		r.Story = calm
	}
	r.Wall = time.Since(began)
	return calm
}

// playUnder runs a case under the faults of a schedule.
func (r *Result) playUnder(schedule rehearse.Schedule) {
	if !r.Passed() {
		return
	}
	story := rehearse.Under(r.File.Play(r.Case), schedule)
	r.Runs++
	if r.Failures = r.Case.Check(story, true); !r.Passed() {
		r.Story = story
	}
}
