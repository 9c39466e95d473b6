package schedule

import (
	"encoding/binary"
	"hash/fnv"
	"time"
)

// Rule is a parsed Spec.
type Rule struct {
	spec Spec
	cron *cronExpr // nil for a fixed interval
	zone *time.Location
	dst  dstRule
}

// slotTick is a slot with its position on the wall clock.
type slotTick struct {
	slot  int64
	shown wallShowing
	gaps  []wallGap // gaps since the previous slot that contain times of the expression
}

// Next returns the first slot after a time. It returns false if there is none.
func (r *Rule) Next(after int64) (slot int64, ok bool) {
	t, ok := r.nextTick(after)
	return t.slot, ok
}

func (r *Rule) nextTick(after int64) (t slotTick, ok bool) {
	after = max(after, r.spec.StartAt-1)
	if r.cron == nil {
		t.slot, ok = r.nextEvery(after), true
	} else {
		t, ok = r.nextCron(after)
	}
	return t, ok && (r.spec.EndAt == 0 || t.slot < r.spec.EndAt)
}

// nextEvery returns the next slot of an interval. Intervals count from the start, or from the
// beginning of 1970.
func (r *Rule) nextEvery(after int64) int64 {
	every, since := r.spec.EveryMS, after-r.spec.StartAt
	if since < 0 {
		return r.spec.StartAt
	}
	return r.spec.StartAt + (since/every+1)*every
}

// nextCron returns the first slot of a cron expression after a time. It searches from one change of
// the wall clock to the next.
func (r *Rule) nextCron(after int64) (t slotTick, ok bool) {
	at := time.UnixMilli(after + 1).In(r.zone)
	for last := at.AddDate(searchYears, 0, 0); at.Before(last); {
		s, end := spanAt(at), last
		if !s.to.IsZero() {
			end = s.to
		}
		if repeated := s.repeatedUntil(); !r.dst.twice && at.Before(repeated) {
			at = repeated
		}
		if wall, ok := r.cron.nextMatch(s.wallTime(at), s.wallTime(end)); ok {
			t.slot, t.shown = wall.Add(-s.offset).UnixMilli(), s.showingOf(wall)
			return t, true
		}
		if g, ok := s.gapAtEnd(); ok && r.gapHasTimes(g) {
			if len(t.gaps) < maxNotes {
				t.gaps = append(t.gaps, g)
			}
			if r.dst.shift {
				t.slot = end.UnixMilli()
				return t, true
			}
		}
		at = end
	}
	return t, false
}

// gapHasTimes reports whether a gap contains times of the expression.
func (r *Rule) gapHasTimes(g wallGap) bool {
	_, ok := r.cron.nextMatch(g.from, g.to)
	return ok
}

// Fires returns when the task of a slot starts. The delay is at most the jitter, and the same on
// every host.
func (r *Rule) Fires(id string, slot int64) int64 {
	if r.spec.JitterMS <= 0 {
		return slot
	}
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(id)) // a hash never fails
	_, _ = hash.Write(binary.BigEndian.AppendUint64(nil, uint64(slot)))
	mixed := hash.Sum64() // the plain hash is skewed for similar slots
	mixed = (mixed ^ mixed>>30) * 0xbf58476d1ce4e5b9
	mixed = (mixed ^ mixed>>27) * 0x94d049bb133111eb
	return slot + int64((mixed^mixed>>31)%uint64(r.spec.JitterMS+1))
}

// Slots returns the first slots from a time up to, but not including, another time. more reports
// whether further slots follow.
func (r *Rule) Slots(from, to int64, most int) (slots []int64, more bool) {
	for at := from - 1; ; {
		slot, ok := r.Next(at)
		switch {
		case !ok || slot >= to:
			return slots, false
		case len(slots) == most:
			return slots, true
		}
		slots = append(slots, slot)
		at = slot
	}
}

// latestSlot returns the last slot after a time and up to another time. It returns false if there
// is none.
func (r *Rule) latestSlot(after, now int64) (slot int64, ok bool) {
	slot, ok = r.Next(after)
	if !ok || slot > now {
		return 0, false
	}
	if next, ok := r.Next(slot); !ok || next > now { // the usual case
		return slot, true
	}
	for low, high := slot, now; low < high; { // a slot follows low-1, no slot follows high
		middle := low + (high-low)/2
		if next, ok := r.Next(middle); ok && next <= now {
			slot, low = next, next
		} else {
			high = middle
		}
	}
	return slot, true
}
