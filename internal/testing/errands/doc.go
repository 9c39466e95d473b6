// Package errands is a load with known results: simulated users that start tasks of every kind and
// answer them, workers that carry out the jobs, and an audit of the store afterwards.
//
// Promises: an errand has the same result however often something is killed, because services
// depend only on input and attempt, and each request of a user has a key. The same seed draws the
// same errands. The audit checks each journal:
// - It has no gap, applies no attempt and no request twice, and has nothing after the end.
// - Nothing is left in the queue.
// - As observed by the workers, the concurrent holders of a key never exceed its limit.
//
// A World around the members keeps its own records, which are compared with the journals:
//   - Programs started by members record each attempt. No attempt begins twice, and one second
//     after the end of a member, for whatever reason, none of its programs is running.
//   - Containers, if TROUPE_ERRANDS_CONTAINERS requests them, record the same, and none is left at
//     the end.
//   - An external system counts the starts of jobs. No job starts again after an attempt waits for
//     it.
//   - Schedules start one task per slot, and never a second one.
package errands
