// Package errands is a load with a known end: people who start tasks of every kind and do what
// those ask for, workers that carry out their jobs, and an audit of the store afterwards.
//
// What it promises: an errand ends the same however often something is killed meanwhile, because
// services are functions of input and attempt and each request of people has a key; the same seed
// draws the same errands. The audit holds each journal to what was promised: no gap, no attempt and
// no request applied twice, nothing after the end, nothing left in the queue, and no more under way
// of a key, as workers saw it, than its limit says.
//
// Around the members there is a World, which keeps records of its own, and is held to the journals
// by them: programs that members start note each attempt, of which none begins twice, and one
// second after a member has ended, however it did, none of its programs is left; containers, where
// TROUPE_ERRANDS_CONTAINERS wants them, note the same, and none is left in the end; another system
// counts who begins jobs there, of which none is begun again once an attempt waits for it; clocks
// begin a task for each slot, and no second one.
package errands
