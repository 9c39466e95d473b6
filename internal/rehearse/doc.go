// Package rehearse runs a task of a flow by the core alone: in virtual time, with mock answers
// instead of workers, and with faults drawn from a seed.
//
// It needs only package flow. Flow decides the behavior of a flow, and its carriers (actors,
// stores, workers) add nothing to it, which the simulator verifies. So a rehearsal needs no store
// and no goroutine, and three weeks take less than a millisecond.
//
//	Play      the input of a rehearsal: a plan, its params, the answers,
//	          and events from outside (Act)
//	Story     the result: the journal, every call, every act, and the faults
//	          that happened (Fault)
//	Schedule  the faults of a run; the same play under the same schedule
//	          gives the same story
//	Shrink    finds the smallest schedule that still shows a failure
//	Coverage  counts visited nodes and edges
//
// Promises: a play, a seed and a schedule always give the same story. Time advances only when
// nothing is left to do now. A rehearsal always ends, even if the flow loops (MaxDecisions).
package rehearse
