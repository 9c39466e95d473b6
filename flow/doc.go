// Package flow is the pure core of Troupe: what a flow is and what a task of it does next.
//
// It has no clock, does no I/O and starts no goroutine; time and chance arrive inside commands, so
// equal inputs give equal outputs and any failure replays.
//
//	Definition ──Compile──► Plan                    every problem reported at once
//	State + Command ──Decide──► Decision            the events that happen and the effects they have
//	State + Event   ──Evolve──► State               what an event means; never fails, never decides
//	State           ──Outstanding──► []Effect       what the world still owes after a crash
//
// Decide evolves the state as it goes, through Evolve alone: folding the events of all decisions
// over an empty State gives the very same state. Decide refuses before it changes anything.
//
// Promises: values (params, inputs, outputs, shared) stay the JSON bytes they came as; the cost of a
// decision depends on what changed, not on the size of the task; nothing that a user sends makes
// Decide panic or a task get stuck; a report about an attempt that has ended changes nothing.
package flow
