package rehearse

import (
	"slices"
	"strings"
	"time"
)

// maxShrink bounds how often a play is tried again to find a smaller schedule.
const maxShrink = 600

// Shrink finds a small schedule under which a play still fails: first it leaves misfortunes out, by
// halves and then one by one, then it makes those that are left smaller and rounder.
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

// trySchedule reports whether a schedule fails as well, and keeps it then.
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

// dropFaults leaves out n misfortunes in a row, wherever that goes.
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

// shiftDeliveries has what strikes a later delivery of a call strike the one before, because a
// fault is gone that made that the first one to be lost. Nothing is changed where it does not
// apply.
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

// shrinkAmount makes a misfortune smaller: the least of the round amounts that still does, else
// what it is, without the part that nobody needs.
func (k *shrinker) shrinkAmount(i int) {
	s := k.best.Schedule()
	by := s[i].By
	for _, d := range smallerAmounts(by) {
		if s[i].By = d; k.trySchedule(s) {
			return
		}
	}
}

// smallerAmounts are what may do instead of one, the smallest first.
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

// compareAmounts puts what is smaller first; of what is about as large as by, the rounder one.
func compareAmounts(by time.Duration) func(a, b time.Duration) int {
	weight := func(d time.Duration) time.Duration {
		if d > by {
			return d + by // only if nothing smaller does
		}
		return d
	}
	return func(a, b time.Duration) int { return int(max(-1, min(1, weight(a)-weight(b)))) }
}
