package schedule

import (
	"encoding/binary"
	"hash/fnv"
	"time"
)

// Rule is a Spec that was read.
type Rule struct {
	spec Spec
	cron *cron // nil: every
	zone *time.Location
}

// reach is more than any two zones are apart, or a clock was ever put forward or back.
const reach = 27 * time.Hour

// instant is when the wall clock of a zone first shows a time. False: it never does, it was put forward over it.
// It looks once wherever the distance from UTC may be another one. At the end of a leap year Go tells an end that has passed (it counts 365 days): then it looks again an hour later.
func instant(wall time.Time, zone *time.Location) (first time.Time, shown, again bool) {
	for at := wall.Add(-reach).In(zone); ; {
		_, offset := at.Zone()
		candidate := wall.Add(-time.Duration(offset) * time.Second).In(zone)
		if _, there := candidate.Zone(); there == offset {
			switch {
			case !shown:
				first, shown = candidate, true
			case !candidate.Equal(first):
				again = true
				if candidate.Before(first) {
					first = candidate
				}
			}
		}
		_, end := at.ZoneBounds()
		if !end.IsZero() && !end.After(at) {
			end = at.Add(time.Hour)
		}
		if end.IsZero() || end.After(wall.Add(reach)) {
			return first, shown, again
		}
		at = end
	}
}

// tick is a slot, and what the wall clock has to do with it.
type tick struct {
	slot   int64
	twice  bool        // the wall clock shows it twice
	absent []time.Time // times of the wall clock before it that do not exist
}

// Next is the first slot behind a time. False: there is none any more.
func (r *Rule) Next(after int64) (slot int64, ok bool) {
	t, ok := r.tick(after)
	return t.slot, ok
}

func (r *Rule) tick(after int64) (t tick, ok bool) {
	after = max(after, r.spec.StartAt-1)
	if r.cron == nil {
		t.slot, ok = r.nextEvery(after), true
	} else {
		t, ok = r.nextCron(after)
	}
	return t, ok && (r.spec.EndAt == 0 || t.slot < r.spec.EndAt)
}

// nextEvery counts from the start, or from the beginning of 1970.
func (r *Rule) nextEvery(after int64) int64 {
	every, since := r.spec.EveryMS, after-r.spec.StartAt
	if since < 0 {
		return r.spec.StartAt
	}
	return r.spec.StartAt + (since/every+1)*every
}

// nextCron goes through the times of the wall clock. Where that was put back, the first ones may have been shown before.
func (r *Rule) nextCron(after int64) (t tick, ok bool) {
	at := time.UnixMilli(after).In(r.zone)
	wall := time.Date(at.Year(), at.Month(), at.Day(), at.Hour(), at.Minute(), at.Second(), 0, time.UTC)
	for {
		if wall, ok = r.cron.after(wall); !ok {
			return t, false
		}
		first, shown, again := instant(wall, r.zone)
		switch {
		case !shown:
			if len(t.absent) < maxNotes {
				t.absent = append(t.absent, wall)
			}
		case first.UnixMilli() > after:
			t.slot, t.twice = first.UnixMilli(), again
			return t, true
		}
	}
}

// Fires is when the task of a slot is begun: by its jitter later, which is the same whoever computes it.
func (r *Rule) Fires(id string, slot int64) int64 {
	if r.spec.JitterMS <= 0 {
		return slot
	}
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(id)) // a hash takes anything
	_, _ = hash.Write(binary.BigEndian.AppendUint64(nil, uint64(slot)))
	mixed := hash.Sum64() // which alone is skewed for slots that resemble each other
	mixed = (mixed ^ mixed>>30) * 0xbf58476d1ce4e5b9
	mixed = (mixed ^ mixed>>27) * 0x94d049bb133111eb
	return slot + int64((mixed^mixed>>31)%uint64(r.spec.JitterMS+1))
}

// Slots are the first ones from a time up to another one, which is not among them; more says that there are others.
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

// latest is the last slot behind a time up to another one. False: there is none.
func (r *Rule) latest(after, now int64) (slot int64, ok bool) {
	slot, ok = r.Next(after)
	if !ok || slot > now {
		return 0, false
	}
	if next, ok := r.Next(slot); !ok || next > now { // as a rule
		return slot, true
	}
	for low, high := slot, now; low < high; { // there is one behind low-1, none behind high
		middle := low + (high-low)/2
		if next, ok := r.Next(middle); ok && next <= now {
			slot, low = next, next
		} else {
			high = middle
		}
	}
	return slot, true
}
