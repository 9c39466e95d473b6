package trace

import "slices"

// taken is what of a task was told already.
type taken struct {
	start, whole bool
	others       int
}

// kept are the places of a task that only failures get, so that the last ones of many spans are told, too.
const kept = 100

// Take are the spans that have ended since it was asked before: each is told once, but that of a task that is retried. Of a
// trace that is taken from Spans does not tell everything any longer.
func (t *Trace) Take() []Span {
	if t.begun == 0 {
		return nil
	}
	var list []Span
	if !t.taken.start {
		list = append(list, t.start())
	}
	slices.SortFunc(t.spans, byWorth)
	fit := t.fitting()
	slices.SortFunc(t.spans[:fit], inTime)
	list = append(list, t.spans[:fit]...)
	t.leftOut += len(t.spans) - fit
	t.taken.others += fit
	clear(t.spans)
	t.spans = t.spans[:0]
	if t.ended != 0 && !t.taken.whole {
		list = append(list, t.whole(t.ended, t.leftOut))
	}
	t.taken.start, t.taken.whole = true, t.ended != 0
	return list
}

// fitting is how many of the spans, the most worthy first, may still be told.
func (t *Trace) fitting() int {
	failed := 0
	for failed < len(t.spans) && t.spans[failed].Failed {
		failed++
	}
	left := MaxSpans - 2 - t.taken.others
	return max(min(failed, left), min(len(t.spans), left-kept), 0)
}

// Pass takes what has ended by now as told by somebody else, but the span of the start: he may have died before he told it, and all
// others are below it.
func (t *Trace) Pass() {
	t.Take()
	t.taken.start = false
}
