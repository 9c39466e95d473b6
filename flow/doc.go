// Package flow is the pure core of Troupe. It defines the state of a task of a flow and decides
// what the task does next.
//
// It has no clock, does no I/O and starts no goroutine. Time and randomness arrive inside commands,
// so equal inputs give equal outputs and every failure can be replayed.
//
//	State + Command ──Decide──► Decision     the events that happen and their effects
//	State + Event   ──Evolve──► State        the meaning of an event; it never fails or decides
//	State      ──Outstanding──► []Effect     the effects that are still due after a crash
//
// A task follows a Plan. Package compile makes it from a definition (package definition), and
// package show renders it.
//
// Decide changes the state only through Evolve. So applying the events of all decisions to an empty
// State gives exactly the same state. Decide rejects a command before it changes anything. Readers
// of a State never change it, so any number may read concurrently.
//
// Promises:
//
// - Values (params, inputs, outputs, shared) stay the JSON bytes that were received.
// - The cost of a decision depends on the amount of change, not on the size of the task.
// - No user input makes Decide panic or a task get stuck.
// - A report about an attempt that has ended changes nothing.
//
// # Reading order
//
// Data: plan.go and plan_dag.go, state.go; command.go, event.go and effect.go.
//
// Decisions: decide.go takes a command through its decision, and decides about the task as a whole.
// The other files of decisions are:
//
// - decide_step.go: a visit of a node, from enterNext to finishStep
// - decide_attempt.go: the units of a step, from startUnits to afterAttempt
// - decide_claim.go: carriers of attempts, and their loss
// - decide_alarm.go: alarms that are due
// - decide_outside.go: reports and items from outside callers
// - closing.go: the last phase of a task, after all other work has ended
//
// The interface in mode.go contains the differences between graphs and dags: mode_graph.go, and
// mode_dag.go with decide_dag.go and evolve_dag.go.
//
// Meaning of events: evolve.go, event by event; signals.go, which step consumes a signal; waits.go,
// the reasons of waits; kept.go, the results that a retry reuses; link.go, the derived parts of a
// state. Effects: effects.go. Values of a step: input.go and input_dag.go (inputs), control.go
// (control params), action.go (actions). Limits and rejections: limits.go and bounds.go.
//
// Storage: encode.go and decode.go (journals), snapshot.go. Views for users: runs.go, steps.go,
// units.go, waiting.go, and pages of them through walkers, walk.go.
package flow
