// Package compile makes a plan of a definition. Checking is apart from lowering.
//
// Check tells everything that is wrong with a definition, and where. Lower says what it means:
// every definition has a plan, also one that is wrong by today's rules, because tasks may run by it
// since before these were made.
//
// Both go through a definition in the same way: for lower_dag.go there is check_dag.go, and so on.
// The checker has the plan that a definition would become at hand, because some of what is wrong is
// seen only in what it means.
package compile
