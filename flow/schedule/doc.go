// Package schedule decides when the tasks of a flow are begun by the clock: which slots a schedule
// has, which of them are due, and what becomes of those, given what was decided before and what
// still runs.
//
// A slot is the time that a schedule names, in Unix milliseconds; there is one task for it at most,
// whose key is made of the schedule and the slot (Key). It fires at the slot or a little later
// (Rule.Fires), by a hash of both, so that it fires at the same time wherever it is computed.
//
// Promises: equal inputs give equal outputs, on every host: the rules of time zones are part of the
// program. What becomes of times of the wall clock that do not exist, because the clock is put
// forward over them, or that come twice, follows from the expression unless Spec.DST says it: by
// default nothing is lost, and a fixed time is one slot. Slots are decided about in order, each
// once. However long nobody looked, a decision takes a bounded time and begins at most MaxCatchUp
// tasks.
package schedule
