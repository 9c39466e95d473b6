package schedule

import (
	"fmt"
	"time"
)

// Time is a slot as people see it.
type Time struct {
	Slot  int64
	Local string   // what the wall clock shows, with its distance from UTC
	Notes []string // what the wall clock has to do with it, such as times before it that do not exist
}

// maxNotes is how many times are told that do not exist.
const maxNotes = 3

// Preview tells the next slots behind a time, and what becomes of times that do not exist or come twice.
func (r *Rule) Preview(after int64, most int) []Time {
	times := []Time{}
	for len(times) < most {
		t, ok := r.tick(after)
		if !ok {
			break
		}
		after = t.slot
		local := time.UnixMilli(t.slot).In(r.zone)
		shown := Time{Slot: t.slot, Local: local.Format("2006-01-02T15:04:05Z07:00")}
		for _, wall := range t.absent {
			shown.Notes = append(shown.Notes, fmt.Sprintf("%s does not exist in %s, since the clock is put forward: it is left out", wall.Format("2006-01-02 15:04:05"), r.zone))
		}
		if t.twice {
			shown.Notes = append(shown.Notes, fmt.Sprintf("%s comes twice in %s, since the clock is put back: it fires the first time", local.Format("2006-01-02 15:04:05"), r.zone))
		}
		times = append(times, shown)
	}
	return times
}
