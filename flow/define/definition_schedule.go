package define

import (
	"encoding/json"
	"reflect"
	"time"

	"github.com/troupe-engine/troupe/flow/expr"
	"github.com/troupe-engine/troupe/flow/schedule"
)

// Schedule says when tasks of the flow begin by the clock: a text is its cron.
type Schedule struct {
	Cron     string          `json:"cron,omitempty"`     // minute, hour, day of the month, month and weekday, such as 30 2 * * 1-5; with seconds a sixth field in front; or a word such as @daily
	Every    Duration        `json:"every,omitzero"`     // in place of cron: a slot each such time
	Timezone string          `json:"timezone,omitempty"` // of cron, such as Europe/Berlin; "" = UTC
	DST      string          `json:"dst,omitempty"`      // what becomes of times that come twice (once, twice) and of those that do not exist (skip, shift) where the clock is put back or forward, such as once,shift; absent = what suits cron
	Enabled  *bool           `json:"enabled,omitempty"`  // false: it does not fire; absent = as it was, a new one fires
	CatchUp  string          `json:"catchup,omitempty"`  // what becomes of slots that nobody looked at in time: the last one of them fires (one, the default), none, or all
	Overlap  string          `json:"overlap,omitempty"`  // what becomes of a slot while a task of the schedule runs: it fires (allow, the default), it is skipped, one waits (queue), or what runs is canceled
	Params   json.RawMessage `json:"params,omitempty"`   // what its tasks are started with
	Jitter   Duration        `json:"jitter,omitzero"`    // how much later than its slot a task may begin
	Start    string          `json:"start,omitempty"`    // no slot is before it, such as 2026-01-31T00:00:00Z; a date is its midnight in the time zone
	End      string          `json:"end,omitempty"`      // all slots are before it, likewise
}

func (s *Schedule) decodeValue(from decoder, v textValue, at *Place) {
	if v.kind() == expr.KindString {
		s.Cron, _ = expr.String(v.rawJSON())
		return
	}
	from.decodeObject(v, reflect.ValueOf(s).Elem(), at)
}

// Spec returns what it comes to. Its error is schedule.Faults: the times that cannot be read, which
// the spec leaves out.
func (s *Schedule) Spec() (spec schedule.Spec, err error) {
	spec = schedule.Spec{Cron: s.Cron, EveryMS: s.Every.MS, Timezone: s.Timezone, DST: s.DST, CatchUp: schedule.CatchUp(s.CatchUp), Overlap: schedule.Overlap(s.Overlap), JitterMS: s.Jitter.MS}
	zone, err := schedule.Zone(s.Timezone)
	if err != nil {
		zone = time.UTC // told by who reads the spec
	}
	var faults schedule.Faults
	for _, from := range []struct {
		field, text string
		to          *int64
	}{{"start", s.Start, &spec.StartAt}, {"end", s.End, &spec.EndAt}} {
		if from.text == "" {
			continue
		}
		at, _, ok := schedule.ParseTime(from.text, zone)
		if !ok {
			faults.Add(from.field, "is no time: write one such as 2026-01-31 (midnight in the time zone), 2026-01-31T00:00:00Z or 2026-01-31T00:00:00+01:00")
			continue
		}
		*from.to = at.UnixMilli()
	}
	return spec, faults.Err()
}

// Schedule has tasks begin by the clock.
func (b *Builder) Schedule(s Schedule) *Builder { b.definition.Schedule = &s; return b }
