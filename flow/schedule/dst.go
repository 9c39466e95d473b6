package schedule

import (
	"fmt"
	"strings"
	"time"
)

// dstRule defines the treatment of times at which the wall clock of a zone is set forward or back.
type dstRule struct {
	twice bool // repeated times fire both times, not only the first time
	shift bool // skipped times fire at the end of their gap
}

// Values of dst.
const (
	DSTOnce  = "once"
	DSTTwice = "twice"
	DSTSkip  = "skip"
	DSTShift = "shift"
)

// String returns the rule as two words, such as once,shift.
func (d dstRule) String() string {
	repeated, absent := DSTOnce, DSTSkip
	if d.twice {
		repeated = DSTTwice
	}
	if d.shift {
		absent = DSTShift
	}
	return repeated + "," + absent
}

// dstOf returns the default rule of an expression. An hourly expression keeps its intervals: it
// fires through a repeated hour, and a skipped hour drops no interval. An expression with steps
// within some hours also fires through a repeated hour. Nothing else is lost or repeated.
func dstOf(c *cronExpr) dstRule {
	return dstRule{twice: c.everyHour || c.hasSteps, shift: !c.everyHour}
}

// readDST parses one or two words: once or twice for repeated times, skip or shift for skipped
// times. A missing word keeps the value of d.
func readDST(text string, d dstRule) (dstRule, error) {
	var repeated, absent string
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ',' || r == ' ' }) {
		half := &repeated
		switch word {
		case DSTOnce, DSTTwice:
		case DSTSkip, DSTShift:
			half = &absent
		default:
			return d, fmt.Errorf("unknown word %.40q: write once or twice for times that come "+
				"twice, skip or shift for times that do not exist, or one of each, such as once,shift", word)
		}
		if *half != "" {
			return d, fmt.Errorf("says both %s and %s: leave one of them out", *half, word)
		}
		*half = word
	}
	if repeated != "" {
		d.twice = repeated == DSTTwice
	}
	if absent != "" {
		d.shift = absent == DSTShift
	}
	return d, nil
}

// zoneSpan is a period in which a zone keeps its offset from UTC.
type zoneSpan struct {
	from, to       time.Time // zero if there is no beginning, or no end
	before, offset time.Duration
}

// spanAt returns the span that contains a time. At the end of a leap year Go returns bounds that
// have passed, because it counts 365 days. In that case the span is valid for an hour only.
func spanAt(at time.Time) zoneSpan {
	s := zoneSpan{offset: offsetAt(at)}
	s.before = s.offset
	s.from, s.to = at.ZoneBounds()
	switch {
	case s.from.After(at):
		s.from = at
	case !s.from.IsZero():
		s.before = offsetAt(s.from.Add(-time.Second))
	}
	if !s.to.IsZero() && !s.to.After(at) {
		s.to = at.Add(time.Hour)
	}
	return s
}

func offsetAt(at time.Time) time.Duration {
	_, offset := at.Zone()
	return time.Duration(offset) * time.Second
}

// wallTime returns the wall-clock time at a time of the span, as a time in UTC.
func (s *zoneSpan) wallTime(at time.Time) time.Time { return at.UTC().Add(s.offset) }

// repeatedUntil returns the time until which the wall clock repeats times from before the span. If
// there is no repetition, the returned time is before the span.
func (s *zoneSpan) repeatedUntil() time.Time { return s.from.Add(s.before - s.offset) }

// wallShowing is the occurrence of a wall-clock time that may be repeated.
type wallShowing int

// The occurrences of a wall-clock time.
const (
	onlyShowing wallShowing = iota
	firstShowing
	secondShowing
)

// showingOf returns which occurrence of a wall-clock time lies in the span.
func (s *zoneSpan) showingOf(wall time.Time) wallShowing {
	at := wall.Add(-s.offset)
	switch {
	case at.Before(s.repeatedUntil()):
		return secondShowing
	case !s.to.IsZero() && !at.Add(s.offset-offsetAt(s.to)).Before(s.to):
		return firstShowing
	}
	return onlyShowing
}

// wallGap is a range of wall-clock times that do not exist, because the wall clock is set forward.
// The times are represented in UTC.
type wallGap struct{ from, to time.Time }

// gapAtEnd returns the gap of the wall clock at the end of the span. It returns false if there is
// none.
func (s *zoneSpan) gapAtEnd() (g wallGap, ok bool) {
	if s.to.IsZero() {
		return g, false
	}
	g = wallGap{s.wallTime(s.to), s.to.UTC().Add(offsetAt(s.to))}
	return g, g.from.Before(g.to)
}

// maxClockShift is more than the difference of any two zones, and more than any clock was ever set
// forward or back.
const maxClockShift = 27 * time.Hour

// ParseTime parses a time in RFC 3339 format, or a date, alone or with a time of day. bare reports
// that the text has no zone. Such a text is a wall-clock time of the given zone; a date alone is
// its midnight.
func ParseTime(text string, zone *time.Location) (at time.Time, bare, ok bool) {
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at, false, true
	}
	for _, layout := range []string{time.DateOnly, "2006-01-02T15:04:05", time.DateTime, "2006-01-02T15:04", "2006-01-02 15:04"} {
		if wall, err := time.Parse(layout, text); err == nil {
			return firstShown(wall, zone), true, true
		}
	}
	return at, false, false
}

// firstShown returns when the wall clock of a zone first shows a time. For a skipped time it
// returns the end of the gap.
func firstShown(wall time.Time, zone *time.Location) time.Time {
	for at := wall.Add(-maxClockShift).In(zone); ; {
		s := spanAt(at)
		shown := wall.Add(-s.offset)
		if shown.Before(at) {
			shown = at
		}
		if s.to.IsZero() || shown.Before(s.to) {
			return shown.In(zone)
		}
		at = s.to
	}
}

// Change is a change of the wall clock, with its effect on slots.
type Change struct {
	At     int64
	Before string // wall-clock time before the change, with its offset from UTC
	After  string // the same after the change
	Note   string // effect on the slots
}

// NextChange returns the first change of the wall clock after a time, as long as slots follow. It
// returns false if there is none.
func (r *Rule) NextChange(after int64) (c Change, ok bool) {
	if r.cron == nil {
		return c, false
	}
	for at := time.UnixMilli(after).In(r.zone); ; {
		s := spanAt(at)
		if s.to.IsZero() || r.spec.EndAt != 0 && s.to.UnixMilli() >= r.spec.EndAt {
			return c, false
		}
		if next := offsetAt(s.to); next != s.offset {
			before := time.FixedZone("", int(s.offset/time.Second))
			return Change{s.to.UnixMilli(), s.to.In(before).Format(localForm),
				s.to.In(r.zone).Format(localForm), r.changeNote(&s, next)}, true
		}
		at = s.to
	}
}

// changeNote describes the effect of the change at the end of a span on the slots.
func (r *Rule) changeNote(s *zoneSpan, next time.Duration) string {
	from, to := s.wallTime(s.to), s.to.UTC().Add(next)
	put := fmt.Sprintf("in %s the clock is put back from %s to %s", r.zone, clockText(from), clockText(to))
	low, high := to, from
	if next > s.offset {
		put, low, high = strings.Replace(put, "back", "forward", 1), from, to
	}
	first, last, ok := r.cron.matchesWithin(low, high)
	if !ok {
		return put + ", which touches no slot"
	}
	times, one := clockText(first), first.Equal(last)
	if !one {
		times += " to " + clockText(last)
	}
	return put + ": " + times + " " + r.describeShift(next > s.offset, one, clockText(to))
}

// describeShift describes the treatment of times that are skipped or repeated.
func (r *Rule) describeShift(absent, one bool, end string) string {
	if absent {
		switch {
		case r.dst.shift && one:
			return "does not exist, and fires at " + end
		case r.dst.shift:
			return "do not exist, and are one slot at " + end
		case one:
			return "does not exist, and is left out"
		}
		return "do not exist, and are left out"
	}
	verb, fire := "come twice", "fire"
	if one {
		verb, fire = "comes twice", "fires"
	}
	if r.dst.twice {
		return verb + ", and " + fire + " both times"
	}
	return verb + ", and " + fire + " the first time"
}

// localForm is the format of a wall-clock time with its offset from UTC.
const localForm = "2006-01-02T15:04:05Z07:00"

// clockText formats a wall-clock time, without seconds if they are zero.
func clockText(wall time.Time) string {
	if wall.Second() == 0 {
		return wall.Format("2006-01-02 15:04")
	}
	return wall.Format(time.DateTime)
}
