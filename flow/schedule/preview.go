package schedule

import (
	"fmt"
	"time"
)

// Time is a slot for display.
type Time struct {
	Slot  int64
	Local string   // wall-clock time, with its offset from UTC
	Notes []string // notes about the wall clock, such as skipped times before the slot
}

// maxNotes is the maximum number of gaps that are noted before a slot.
const maxNotes = 3

// Preview returns the next slots after a time, at most the given number. Notes describe times that
// are skipped or repeated.
func (r *Rule) Preview(after int64, most int) []Time {
	times := []Time{}
	for len(times) < most {
		t, ok := r.nextTick(after)
		if !ok {
			break
		}
		after = t.slot
		local := time.UnixMilli(t.slot).In(r.zone)
		times = append(times, Time{Slot: t.slot, Local: local.Format(localForm), Notes: r.wallNotes(&t, local)})
	}
	return times
}

// wallNotes returns the notes about the wall clock at a slot.
func (r *Rule) wallNotes(t *slotTick, local time.Time) (notes []string) {
	for _, g := range t.gaps {
		first, last, _ := r.cron.matchesWithin(g.from, g.to)
		times, one := clockText(first), first.Equal(last)
		if !one {
			times += " to " + clockText(last)
		}
		notes = append(notes, fmt.Sprintf("in %s the clock is put forward: %s %s", r.zone, times,
			r.describeShift(true, one, clockText(g.to))))
	}
	clock := clockText(local)
	switch {
	case t.shown == firstShowing && !r.dst.twice:
		notes = append(notes, fmt.Sprintf("in %s the clock is put back: %s comes twice, and fires the first time", r.zone, clock))
	case t.shown == firstShowing:
		notes = append(notes, fmt.Sprintf("in %s the clock is put back: %s comes twice, and fires both times, first now", r.zone, clock))
	case t.shown == secondShowing:
		notes = append(notes, fmt.Sprintf("in %s the clock was put back: %s has fired before, and fires again", r.zone, clock))
	}
	return notes
}
