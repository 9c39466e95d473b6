package cases

import (
	"regexp"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/troupe-engine/troupe/internal/rehearse"
)

// Suite are files of cases and how they are to be played.
type Suite struct {
	Files    []*File
	Run      *regexp.Regexp    // which cases; nil = all
	Seeds    int               // each case is played with the misfortunes of so many
	Seed     uint64            // of this one alone; 0 = from 1 on
	Schedule rehearse.Schedule // these misfortunes instead
	Workers  int               // cores; 0 = all
}

// Result is what came of a case.
type Result struct {
	File     *File
	Case     *Case
	Runs     int             // how often it was played
	Took     time.Duration   // in virtual time, undisturbed
	Wall     time.Duration   // in real time
	Failures []Failure       // nil = it has passed
	Story    *rehearse.Story // of the failures
	Seed     uint64          // that they came of; 0 = of none
	Drawn    int             // misfortunes that the seed drew, of which those of Story are left
}

// Passed reports whether everything was as expected.
func (r *Result) Passed() bool { return len(r.Failures) == 0 }

// Play is a case as it is rehearsed.
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

// Play plays all cases, and gives their results in order, and where the undisturbed ones have been
// at, by file.
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

// seedRange is from which seed to which one cases are played; the last one is 0 when there are
// none.
func (s *Suite) seedRange() (first, last uint64) {
	if s.Seed > 0 {
		return s.Seed, s.Seed
	}
	return 1, uint64(max(s.Seeds, 0))
}

// runParallel does n things on as many cores as there are.
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

// playUndisturbed plays a case without any misfortune.
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

// playUnder plays it under the misfortunes of a schedule.
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
