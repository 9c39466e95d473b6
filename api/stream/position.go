package stream

import (
	"strconv"
	"strings"
)

// Position is a place in a task's history: an event in a row of the journal. The reader knows all
// events up to this place.
type Position struct {
	Seq   int64
	Index int
}

// whole is the index for all events of a row.
const whole = 1 << 30

// After returns the position after a row.
func After(seq int64) Position { return Position{seq, whole} }

func (p Position) String() string {
	row := strconv.FormatInt(p.Seq, 10)
	if p.Index == whole {
		return row
	}
	return row + "." + strconv.Itoa(p.Index)
}

// Since returns the number of the row after which to read, so that no event after the position is
// missed.
func (p Position) Since() int64 {
	if p.Index == whole {
		return p.Seq
	}
	return max(p.Seq-1, 0)
}

// Covers reports whether an event is at or before the position.
func (p Position) Covers(seq int64, index int) bool {
	return seq < p.Seq || seq == p.Seq && index <= p.Index
}

// Before reports whether one position precedes another.
func (p Position) Before(q Position) bool {
	return p.Seq < q.Seq || p.Seq == q.Seq && p.Index < q.Index
}

// ParsePosition parses the id of an event, or the number of a row, which means the end of that row.
// "" means the beginning.
func ParsePosition(text string) (p Position, ok bool) {
	if text == "" {
		return After(0), true
	}
	row, place, cut := strings.Cut(text, ".")
	seq, err := strconv.ParseInt(row, 10, 64)
	p = After(seq)
	if err == nil && cut {
		p.Index, err = strconv.Atoi(place)
	}
	return p, err == nil && seq >= 0 && p.Index >= 0
}
