// Package compile converts definitions to plans. Checking is separate from lowering.
//
// Check reports all problems of a definition with their places. Lower defines its meaning: every
// definition has a plan. This includes definitions that newer rules reject, because tasks may run
// them since before those rules.
//
// Both walk through a definition in the same way: check_dag.go corresponds to lower_dag.go, and so
// on. The checker also has the plan of the definition, because some problems are only visible
// there.
package compile
