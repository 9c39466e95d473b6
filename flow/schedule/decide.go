package schedule

import (
	"slices"
)

// State holds the decisions about a schedule so far.
type State struct {
	After int64 `json:"after"` // slots up to this time are decided
	// Starts are slots for which tasks must start. Some of these tasks may have started already.
	Starts []Start `json:"starts,omitempty"`
	// Queued is the slot that waits for the end of running tasks; 0 if none.
	Queued int64 `json:"queued,omitempty"`

	LastSlot int64  `json:"last_slot,omitempty"` // last slot with a started task
	LastTask string `json:"last_task,omitempty"` // task of LastSlot
	// Error is why the task of the last slot has not started; "" if it has.
	Error string `json:"error,omitempty"`
	Begun int64  `json:"begun,omitempty"` // number of slots with a started task
	// Skipped is the number of slots skipped by catchup or overlap. If very many were missed, not
	// all are counted.
	Skipped int64 `json:"skipped,omitempty"`
}

// Start is a slot for which a task must start.
type Start struct {
	Slot   int64    `json:"slot"`
	Cancel []string `json:"cancel,omitempty"` // tasks to cancel before the start
}

// Looks returns when the schedule needs a decision: at once if work is left, else when its next
// slot fires. It returns 0 if no slot follows.
func (r *Rule) Looks(id string, s State) int64 {
	switch {
	case len(s.Starts) > 0:
		return s.Starts[0].Slot
	case s.Queued != 0:
		return s.Queued
	}
	next, ok := r.Next(s.After)
	if !ok {
		return 0
	}
	return r.Fires(id, next)
}

// Decide decides about the due slots. running are the unfinished tasks of the schedule. The starts
// of earlier decisions (State.Starts) must be done before.
func (r *Rule) Decide(id string, s State, now int64, running []string) State {
	due, passed := r.dueSlots(id, s.After, now)
	s.Starts = nil
	if s.Queued != 0 && len(running) == 0 {
		s.Starts = []Start{{Slot: s.Queued}}
		s.Queued = 0
	}
	if len(due) == 0 {
		return s
	}
	s.After = due[len(due)-1]
	taken := r.slotsToFire(due, now)
	s.Skipped += int64(passed + len(due) - len(taken))
	for _, slot := range taken {
		r.placeSlot(&s, slot, running)
	}
	return s
}

// placeSlot decides about one slot, given the running tasks and those that are about to start.
func (r *Rule) placeSlot(s *State, slot int64, running []string) {
	busy := len(running) > 0 || len(s.Starts) > 0 || s.Queued != 0
	switch {
	case !busy || r.spec.Overlap == OverlapAllow:
		s.Starts = append(s.Starts, Start{Slot: slot})
	case r.spec.Overlap == OverlapCancel:
		s.Skipped += int64(len(s.Starts)) // their tasks would be canceled at once
		s.Starts = []Start{{Slot: slot, Cancel: slices.Clone(running)}}
	case r.spec.Overlap == OverlapQueue && s.Queued == 0:
		s.Queued = slot
	default:
		s.Skipped++
	}
}

// slotsToFire returns the due slots that fire, as selected by catchup.
func (r *Rule) slotsToFire(due []int64, now int64) []int64 {
	last := due[len(due)-1]
	switch {
	case r.spec.CatchUp == CatchUpAll:
		return due
	case r.spec.CatchUp == CatchUpNone && now-last > MaxLate.Milliseconds()+r.spec.JitterMS:
		return nil
	}
	return []int64{last}
}

// dueSlots returns the slots after a time that fire by now, at most the last MaxCatchUp of them,
// and how many more it has seen. A slot that fires later delays those after it.
func (r *Rule) dueSlots(id string, after, now int64) (due []int64, passed int) {
	sure := now - r.spec.JitterMS // all slots up to here fire
	if last, ok := r.latestSlot(after, sure); ok {
		if r.spec.CatchUp == CatchUpAll {
			due, passed = r.lastSlots(after, last)
		} else {
			due, passed = []int64{last}, r.countBetween(after, last)
		}
		after = last
	}
	for len(due) < 2*MaxCatchUp {
		slot, ok := r.Next(after)
		if !ok || slot > now || r.Fires(id, slot) > now {
			break
		}
		due = append(due, slot)
		after = slot
	}
	if over := len(due) - MaxCatchUp; over > 0 {
		due, passed = due[over:], passed+over
	}
	return due, passed
}

// countBetween counts the slots after a time and before a slot, up to MaxCatchUp.
func (r *Rule) countBetween(after, last int64) int {
	slots, _ := r.Slots(after+1, last, MaxCatchUp)
	return len(slots)
}

// lastSlots returns the last MaxCatchUp slots after a time and up to a slot. It searches backward
// in growing spans. passed is the number of earlier slots that were counted.
func (r *Rule) lastSlots(after, last int64) (slots []int64, passed int) {
	for span := MaxCatchUp * MinEvery.Milliseconds(); ; span *= 2 {
		from := max(after+1, last-span)
		slots, passed = slots[:0], 0
		for at := from - 1; at < last; {
			at, _ = r.Next(at)
			if len(slots) == 2*MaxCatchUp {
				slots = append(slots[:0], slots[MaxCatchUp:]...)
				passed += MaxCatchUp
			}
			slots = append(slots, at)
		}
		if over := len(slots) - MaxCatchUp; over >= 0 || from == after+1 {
			over = max(over, 0)
			return slots[over:], passed + over
		}
	}
}

// Began returns the state after the first start has become a task.
func (s State) Began(task string) State {
	s.LastSlot, s.LastTask, s.Error = s.Starts[0].Slot, task, ""
	s.Begun++
	s.Starts = s.Starts[1:]
	return s
}

// Failed returns the state after the first start has turned out to be impossible.
func (s State) Failed(why string) State {
	s.Error = why
	s.Skipped++
	s.Starts = s.Starts[1:]
	return s
}
