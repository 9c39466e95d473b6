package definition

import (
	"encoding/json"
	"reflect"
	"time"

	"github.com/troupe-engine/troupe/flow/expr"
	"github.com/troupe-engine/troupe/flow/schedule"
)

// Schedule defines when tasks of the flow start by the clock. A text is its cron field.
type Schedule struct {
	// minute, hour, day of the month, month and weekday, such as 30 2 * * 1-5; with seconds in a
	// sixth field at the beginning; or a word such as @daily
	Cron  string   `json:"cron,omitempty"`
	Every Duration `json:"every,omitzero"` // instead of cron: interval between slots
	// time zone of cron, such as Europe/Berlin; "" = UTC
	Timezone string `json:"timezone,omitempty"`
	// handling of times that occur twice (once, twice) and times that do not exist (skip, shift)
	// when the clock changes, such as once,shift; if absent, the default for cron
	DST string `json:"dst,omitempty"`
	// false: it does not fire; if absent, it stays as it was, and a new one fires
	Enabled *bool `json:"enabled,omitempty"`
	// handling of slots that were missed: the last one fires (one, the default), none, or all
	CatchUp string `json:"catchup,omitempty"`
	// handling of a slot while a task of the schedule runs: it fires (allow, the default), it is
	// skipped, one slot waits (queue), or the running task is canceled
	Overlap string          `json:"overlap,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"` // params of its tasks
	// maximum random delay of a task after its slot
	Jitter Duration `json:"jitter,omitzero"`
	// first possible time of a slot, such as 2026-01-31T00:00:00Z; a date means its midnight in the
	// time zone
	Start string `json:"start,omitempty"`
	// all slots are before this time, in the same form as start
	End string `json:"end,omitempty"`
}

func (s *Schedule) decodeValue(from decoder, v textValue, at *Place) {
	if v.kind() == expr.KindString {
		s.Cron, _ = expr.String(v.rawJSON())
		return
	}
	from.decodeObject(v, reflect.ValueOf(s).Elem(), at)
}

// Spec returns the schedule in the form of package schedule. The error is schedule.Faults: the
// times and the interval that are not valid, which the spec does not contain.
func (s *Schedule) Spec() (spec schedule.Spec, err error) {
	spec = schedule.Spec{Cron: s.Cron, EveryMS: s.Every.MS, Timezone: s.Timezone, DST: s.DST,
		CatchUp: schedule.CatchUp(s.CatchUp), Overlap: schedule.Overlap(s.Overlap), JitterMS: s.Jitter.MS}
	zone, err := schedule.Zone(s.Timezone)
	if err != nil {
		zone = time.UTC // the reader of the spec reports it
	}
	var faults schedule.Faults
	if !s.Every.IsZero() && s.Every.MS == 0 {
		faults.Add("every", schedule.NoInterval)
		spec.EveryMS = schedule.MinEvery.Milliseconds() // an interval was written, although it is not valid
	}
	for _, from := range []struct {
		field, text string
		to          *int64
	}{{"start", s.Start, &spec.StartAt}, {"end", s.End, &spec.EndAt}} {
		if from.text == "" {
			continue
		}
		at, _, ok := schedule.ParseTime(from.text, zone)
		if !ok {
			faults.Add(from.field, "is no time: write one such as 2026-01-31 (midnight in the "+
				"time zone), 2026-01-31T00:00:00Z or 2026-01-31T00:00:00+01:00")
			continue
		}
		*from.to = at.UnixMilli()
	}
	return spec, faults.Err()
}
