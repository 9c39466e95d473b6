package trace

import "slices"

// takenState is what of a task was told already.
type takenState struct {
	toldStart, toldTask bool
	toldOthers          int
}

// reservedForFailed are the places of a task that only failures get, so that the last ones of many
// spans are told, too.
const reservedForFailed = 100

// Take are the spans that have ended since it was asked before: each is told once, but that of a
// task that is retried. Of a trace that is taken from Spans does not tell everything any longer.
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

// countFitting is how many of the spans, the most worthy first, may still be told.
func (t *Trace) countFitting() int {
	failed := 0
	for failed < len(t.spans) && t.spans[failed].Failed {
		failed++
	}
	left := MaxSpans - 2 - t.taken.toldOthers
	return max(min(failed, left), min(len(t.spans), left-reservedForFailed), 0)
}

// Pass takes what has ended by now as told by somebody else, but the span of the start: he may have
// died before he told it, and all others are below it.
func (t *Trace) Pass() {
	t.Take()
	t.taken.toldStart = false
}
