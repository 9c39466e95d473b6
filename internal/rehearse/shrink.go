package rehearse

import (
	"slices"
	"strings"
	"time"
)

// maxShrink is the maximal number of runs to find a smaller schedule.
const maxShrink = 600

// Shrink finds a small schedule under which a play still fails. First it removes faults, by halves
// and then one by one. Then it reduces and rounds the amounts of the remaining faults.
func Shrink(p *Play, s *Story, fails func(*Story) bool) *Story {
	k := &shrinker{play: p, fails: fails, best: s, left: maxShrink}
	for n := len(s.Struck) / 2; n >= 1; {
		if !k.dropFaults(n) {
			n /= 2
			continue
		}
		n = min(n, len(k.best.Struck))
	}
	for i := 0; i < len(k.best.Struck); i++ {
		k.shrinkAmount(i)
	}
	return k.best
}

type shrinker struct {
	play  *Play
	fails func(*Story) bool
	best  *Story
	left  int
}

// trySchedule reports whether a schedule also fails, and keeps it if so.
func (k *shrinker) trySchedule(s Schedule) bool {
	if k.left == 0 {
		return false
	}
	k.left--
	story := Under(k.play, s)
	if story.Err != nil != (k.best.Err != nil) || !k.fails(story) {
		return false
	}
	k.best = story
	return true
}

// dropFaults removes n consecutive faults wherever the play still fails.
func (k *shrinker) dropFaults(n int) (done bool) {
	for i := 0; i+n <= len(k.best.Struck); {
		s := k.best.Schedule()
		gone := slices.Clone(s[i : i+n])
		s = slices.Delete(s, i, i+n)
		if k.trySchedule(s) || k.trySchedule(shiftDeliveries(s, gone)) {
			done = true
			continue
		}
		i++
	}
	return done
}

// shiftDeliveries moves faults of a later delivery to the delivery before, after the fault that
// caused the redelivery was removed. Other faults stay unchanged.
func shiftDeliveries(s, gone Schedule) Schedule {
	s = slices.Clone(s)
	for _, g := range gone {
		call, _, _ := strings.Cut(g.At, deliverySuffix)
		for i := range s {
			if name, number, later := strings.Cut(s[i].At, deliverySuffix); later && name == call {
				s[i].At = name
				if number == "3" {
					s[i].At += deliverySuffix + "2"
				}
			}
		}
	}
	return s
}

// shrinkAmount reduces the amount of a fault to the smallest round amount that still fails.
func (k *shrinker) shrinkAmount(i int) {
	s := k.best.Schedule()
	by := s[i].By
	for _, d := range smallerAmounts(by) {
		if s[i].By = d; k.trySchedule(s) {
			return
		}
	}
}

// smallerAmounts returns alternatives to an amount, smallest first.
func smallerAmounts(by time.Duration) (all []time.Duration) {
	for _, d := range []time.Duration{time.Millisecond, time.Second, time.Minute, time.Hour, 24 * time.Hour, 7 * 24 * time.Hour} {
		all = append(all, d, 2*d, (by/d)*d, (by/d+1)*d)
	}
	all = slices.DeleteFunc(all, func(d time.Duration) bool {
		return d <= 0 || d >= by && (d%time.Second != 0 || by%time.Second == 0) || d > 2*by
	})
	slices.SortFunc(all, compareAmounts(by))
	return slices.Compact(all)
}

// compareAmounts sorts smaller amounts first; among amounts similar to by, rounder amounts come
// first.
func compareAmounts(by time.Duration) func(a, b time.Duration) int {
	weight := func(d time.Duration) time.Duration {
		if d > by {
			return d + by // only if no smaller amount fails
		}
		return d
	}
	return func(a, b time.Duration) int { return int(max(-1, min(1, weight(a)-weight(b)))) }
}
