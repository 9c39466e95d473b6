package cases

import (
	"fmt"
	"hash/fnv"
	"sync"
	"time"

	"github.com/troupe-engine/troupe/internal/rehearse"
)

// seedsPerBlock is the number of seeds of a case that one core runs in sequence.
const seedsPerBlock = 100

// seedBlock is a range of seeds of a case.
type seedBlock struct {
	search      *failureSearch
	first, last uint64
}

// failureSearch searches for the first failing seed of a case.
type failureSearch struct {
	*Result
	mu           sync.Mutex
	firstFailing uint64 // first seed that fails; 0 if none so far
	story        *rehearse.Story
}

// playSeeds runs the passed cases under seeds. It always reports the first failing seed,
// independent of the number of cores.
func (s *Suite) playSeeds(results []*Result, first, last uint64) {
	var hunts []*failureSearch
	var blocks []seedBlock
	for _, r := range results {
		if !r.Passed() {
			continue
		}
		h := &failureSearch{Result: r}
		hunts = append(hunts, h)
		for seed := first; seed <= last; seed += seedsPerBlock {
			blocks = append(blocks, seedBlock{h, seed, min(seed+seedsPerBlock-1, last)})
		}
	}
	s.runParallel(len(blocks), func(i int) { blocks[i].playBlock() })
	s.runParallel(len(hunts), func(i int) { hunts[i].shrinkFailure() })
}

// playBlock searches its block for a failing seed.
func (b *seedBlock) playBlock() {
	began, runs := time.Now(), 0
	defer func() { b.search.recordRuns(runs, time.Since(began)) }()
	p := b.search.File.Play(b.search.Case)
	p.Lasts = b.search.Took
	for seed := b.first; seed <= b.last && b.search.isWanted(seed); seed++ {
		story := rehearse.Seed(p, b.search.saltSeed(seed))
		runs++
		if len(b.search.Case.Check(story, true)) > 0 {
			b.search.recordFailure(seed, story)
			return
		}
	}
}

// isWanted reports whether a seed precedes the first failing one so far.
func (h *failureSearch) isWanted(seed uint64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.firstFailing == 0 || seed < h.firstFailing
}

func (h *failureSearch) recordFailure(seed uint64, story *rehearse.Story) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.firstFailing == 0 || seed < h.firstFailing {
		h.firstFailing, h.story = seed, story
	}
}

func (h *failureSearch) recordRuns(runs int, took time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.Runs += runs
	h.Wall += took
}

// shrinkFailure reduces the schedule of a failure to the smallest one.
func (h *failureSearch) shrinkFailure() {
	if h.firstFailing == 0 {
		return
	}
	id := h.Case.Check(h.story, true)[0].ID
	small := rehearse.Shrink(h.File.Play(h.Case), h.story, func(s *rehearse.Story) bool { return hasFailure(h.Case.Check(s, true), id) })
	h.Seed, h.Drawn, h.Story, h.Failures = h.firstFailing, len(h.story.Struck), small, h.Case.Check(small, true)
}

// saltSeed derives a different seed for each case.
func (r *Result) saltSeed(seed uint64) uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s\n%d", r.Case.Name, seed)
	return h.Sum64()
}

func hasFailure(failures []Failure, id string) bool {
	for i := range failures {
		if failures[i].ID == id {
			return true
		}
	}
	return false
}
