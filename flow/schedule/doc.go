// Package schedule decides when the tasks of a flow start by the clock. It computes the slots of a
// schedule, selects the due ones, and decides which of them fire, given the earlier decisions and
// the running tasks.
//
// A slot is a time of a schedule, in Unix milliseconds. It has at most one task, whose key is made
// of the schedule and the slot (Key). The task starts at the slot or a little later (Rule.Fires),
// by a hash of both, so that every host computes the same time.
//
// Promises: equal inputs give equal outputs on every host, because the time zone rules are part of
// the program. Daylight saving can skip wall-clock times or repeat them. Their treatment follows
// from the expression unless Spec.DST sets it: by default no slot is lost, and a fixed time is one
// slot. Slots are decided in order, each once. A decision takes bounded time and starts at most
// MaxCatchUp tasks, however long the schedule was not checked.
package schedule
