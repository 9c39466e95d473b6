package trace

import "slices"

// takenState records which spans Take has already returned.
type takenState struct {
	toldStart, toldTask bool
	toldOthers          int
}

// reservedForFailed is the number of spans of a task that are reserved for failures. So late
// failures are included even after many other spans.
const reservedForFailed = 100

// Take returns the spans that have ended since the previous call. Each span is returned once,
// except the span of a task that is retried. After Take, Spans no longer returns all spans.
func (t *Trace) Take() []Span {
	if t.begun == 0 {
		return nil
	}
	var list []Span
	if !t.taken.toldStart {
		list = append(list, t.startSpan())
	}
	slices.SortFunc(t.spans, byWorth)
	fit := t.countFitting()
	slices.SortFunc(t.spans[:fit], inTime)
	list = append(list, t.spans[:fit]...)
	t.leftOut += len(t.spans) - fit
	t.taken.toldOthers += fit
	clear(t.spans)
	t.spans = t.spans[:0]
	if t.ended != 0 && !t.taken.toldTask {
		list = append(list, t.taskSpan(t.ended, t.leftOut))
	}
	t.taken.toldStart, t.taken.toldTask = true, t.ended != 0
	return list
}

// countFitting returns how many of the spans may still be returned. The spans are sorted by
// importance.
func (t *Trace) countFitting() int {
	failed := 0
	for failed < len(t.spans) && t.spans[failed].Failed {
		failed++
	}
	left := MaxSpans - 2 - t.taken.toldOthers
	return max(min(failed, left), min(len(t.spans), left-reservedForFailed), 0)
}

// Pass marks the ended spans as sent by another member, except the start span. The other member may
// have died before it sent the start span, which is the ancestor of all others.
func (t *Trace) Pass() {
	t.Take()
	t.taken.toldStart = false
}
