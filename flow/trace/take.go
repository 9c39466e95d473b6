package trace

import "slices"

// taken is what of a task was told already.
type taken struct {
	start, whole bool
	others       int
}

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
	slices.SortFunc(t.spans, inTime)
	fit := min(len(t.spans), MaxSpans-2-t.taken.others)
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

// Pass takes what has ended by now as told by somebody else, but the span of the start: he may have died before he told it, and all
// others are below it.
func (t *Trace) Pass() {
	t.Take()
	t.taken.start = false
}
