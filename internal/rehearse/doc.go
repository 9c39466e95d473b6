// Package rehearse plays a task of a flow by the core alone: in virtual time, with answers in the
// place of workers, and with whatever misfortune a seed draws.
//
// It stands on package flow and on nothing else: what a flow does is decided there, and what
// carries it (actors, stores, workers) adds nothing to that, which is what the simulator holds it
// to. So a rehearsal needs no store and no goroutine, and three weeks take less than a millisecond.
//
//	Play       what is rehearsed: a plan, its params, who answers, and what happens from outside (Act)
//	Story      what came of it: the journal, every call, what was done from outside, and which misfortunes struck (Fault)
//	Schedule   the misfortunes of a run. The same play under the same schedule is the same story
//	Shrink     finds the smallest schedule that still shows a failure
//	Coverage   which nodes and edges stories have been at
//
// Promises: a play, a seed and a schedule always give the same story; time passes only when nothing
// is left to do now; a rehearsal ends, however the flow loops (MaxDecisions).
package rehearse
