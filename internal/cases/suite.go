package cases

import (
	"fmt"
	"hash/fnv"
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

// Passed says whether everything was as expected.
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

// Play plays all cases, and gives their results in order, and where the undisturbed ones have been at, by file.
func (s *Suite) Play() (results []*Result, covered []*rehearse.Coverage) {
	for _, f := range s.Files {
		for _, c := range f.Cases {
			if s.Run == nil || s.Run.MatchString(c.Name) {
				results = append(results, &Result{File: f, Case: c})
			}
		}
	}
	stories := make([]*rehearse.Story, len(results))
	s.parallel(len(results), func(i int) { stories[i] = results[i].play(s) })
	for _, f := range s.Files {
		all := rehearse.NewCoverage(f.Plan)
		for i, r := range results {
			if r.File == f {
				all.Add(stories[i])
			}
		}
		covered = append(covered, all)
	}
	return results, covered
}

// parallel does n things on as many cores as there are.
func (s *Suite) parallel(n int, do func(i int)) {
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

// play plays a case undisturbed, and then as often as it is to be disturbed until something is not as expected.
func (r *Result) play(s *Suite) *rehearse.Story {
	began := time.Now()
	defer func() { r.Wall = time.Since(began) }()
	p := r.File.Play(r.Case)
	calm := rehearse.Run(p)
	r.Runs, r.Took = 1, calm.Took
	if r.Failures = r.Case.Check(calm, false); !r.Passed() {
		r.Story = calm
		return calm
	}
	switch {
	case s.Schedule != nil:
		r.take(rehearse.Under(p, s.Schedule), 0)
	case s.Seed > 0:
		r.seeds(p, s.Seed, s.Seed)
	default:
		r.seeds(p, 1, uint64(s.Seeds))
	}
	return calm
}

// seeds plays under the misfortunes of one seed after the other. The first failure is made as small as it can be.
func (r *Result) seeds(p *rehearse.Play, first, last uint64) {
	for seed := first; seed <= last; seed++ {
		story := rehearse.Seed(p, r.salted(seed))
		failures := r.Case.Check(story, true)
		if len(failures) == 0 {
			r.Runs++
			continue
		}
		small := rehearse.Shrink(p, story, func(s *rehearse.Story) bool { return same(r.Case.Check(s, true), failures[0].ID) })
		r.take(small, seed)
		r.Drawn = len(story.Struck)
		return
	}
}

// take looks at a disturbed story.
func (r *Result) take(s *rehearse.Story, seed uint64) {
	r.Runs++
	if r.Failures = r.Case.Check(s, true); !r.Passed() {
		r.Story, r.Seed = s, seed
	}
}

// salted has each case draw something else from the same seed.
func (r *Result) salted(seed uint64) uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s\n%d", r.Case.Name, seed)
	return h.Sum64()
}

func same(failures []Failure, id string) bool {
	for i := range failures {
		if failures[i].ID == id {
			return true
		}
	}
	return false
}
