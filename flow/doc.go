// Package flow is the pure core of Troupe: what a task of a flow is, and what it does next.
//
// It has no clock, does no I/O and starts no goroutine; time and chance arrive inside commands, so
// equal inputs give equal outputs and any failure replays.
//
//	State + Command ──Decide──► Decision            the events that happen and the effects they have
//	State + Event   ──Evolve──► State               what an event means; never fails, never decides
//	State           ──Outstanding──► []Effect       what the world still owes after a crash
//
// What a task follows is a Plan, which package compile makes of a definition (package define);
// package show renders it.
//
// Decide evolves the state as it goes, through Evolve alone: folding the events of all decisions
// over an empty State gives the very same state. Decide refuses before it changes anything. Whoever
// reads a State changes nothing in it, so any number may read at once.
//
// Promises: values (params, inputs, outputs, shared) stay the JSON bytes they came as; the cost of
// a decision depends on what changed, not on the size of the task; nothing that a user sends makes
// Decide panic or a task get stuck; a report about an attempt that has ended changes nothing.
//
// # Reading order
//
// What there is: plan.go and plan_dag.go, state.go; command.go, event.go and effect.go.
//
// What happens: decide.go takes a command through its decision, and decides about the task as a
// whole. From there it goes to decide_step.go (a visit of a node, from enter to finish),
// decide_attempt.go (its units, from fill to landed), decide_claim.go (who carries them, and what
// is lost with them), decide_alarm.go (time that has passed) and decide_outside.go (what comes from
// elsewhere). What differs between graphs and dags is the interface in mode.go: mode_graph.go, and
// mode_dag.go with decide_dag.go and evolve_dag.go. closing.go is what a task does when everything
// else is over.
//
// What it means: evolve.go, event by event; signals.go, which step takes a signal; waits.go, what
// it waits for; kept.go, what a retry finds again; link.go, what follows from the rest of a state.
// What the world must do: effects.go. What a step works on: input.go and input_dag.go; what it
// obeys: control.go; what it ends with: action.go. What is refused: limits.go and bounds.go.
//
// What is stored: encode.go and decode.go (journals), snapshot.go. What people see: runs.go,
// steps.go, units.go, waiting.go, and pages of them by walkers, walk.go.
package flow
