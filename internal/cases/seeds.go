package cases

import (
	"fmt"
	"hash/fnv"
	"sync"
	"time"

	"github.com/troupe-engine/troupe/internal/rehearse"
)

// blockOf is how many seeds of a case one core plays in a row.
const blockOf = 100

// block are seeds of a case.
type block struct {
	of          *hunt
	first, last uint64
}

// hunt is a case on its way through seeds.
type hunt struct {
	*Result
	mu    sync.Mutex
	found uint64 // the first seed under which something is not as expected; 0 = none so far
	story *rehearse.Story
}

// disturb plays what has passed under seeds. Which seed a failure is told of does not depend on how many cores there are: it is the first one.
func (s *Suite) disturb(results []*Result, first, last uint64) {
	var hunts []*hunt
	var blocks []block
	for _, r := range results {
		if !r.Passed() {
			continue
		}
		h := &hunt{Result: r}
		hunts = append(hunts, h)
		for seed := first; seed <= last; seed += blockOf {
			blocks = append(blocks, block{h, seed, min(seed+blockOf-1, last)})
		}
	}
	s.parallel(len(blocks), func(i int) { blocks[i].play() })
	s.parallel(len(hunts), func(i int) { hunts[i].shrink() })
}

// play looks for a seed under which something is not as expected.
func (b *block) play() {
	began, runs := time.Now(), 0
	defer func() { b.of.played(runs, time.Since(began)) }()
	p := b.of.File.Play(b.of.Case)
	p.Lasts = b.of.Took
	for seed := b.first; seed <= b.last && b.of.wanted(seed); seed++ {
		story := rehearse.Seed(p, b.of.salted(seed))
		runs++
		if len(b.of.Case.Check(story, true)) > 0 {
			b.of.failed(seed, story)
			return
		}
	}
}

// wanted says whether a seed is before the first one that was found.
func (h *hunt) wanted(seed uint64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.found == 0 || seed < h.found
}

func (h *hunt) failed(seed uint64, story *rehearse.Story) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.found == 0 || seed < h.found {
		h.found, h.story = seed, story
	}
}

func (h *hunt) played(runs int, took time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.Runs += runs
	h.Wall += took
}

// shrink makes what was found as small as it can be.
func (h *hunt) shrink() {
	if h.found == 0 {
		return
	}
	id := h.Case.Check(h.story, true)[0].ID
	small := rehearse.Shrink(h.File.Play(h.Case), h.story, func(s *rehearse.Story) bool { return same(h.Case.Check(s, true), id) })
	h.Seed, h.Drawn, h.Story, h.Failures = h.found, len(h.story.Struck), small, h.Case.Check(small, true)
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
