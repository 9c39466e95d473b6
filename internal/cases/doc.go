// Package cases reads tests of a flow, runs them (package rehearse), compares the outcome with the
// expectations, and reports differences.
//
//	File    a YAML or JSON file of cases, and the flow they test;
//	        every mistake is reported with line and column
//	Case    the params of a task, the answers to its jobs (Mock),
//	        events from outside, and the expected outcome
//	Suite   files to be run on all cores: each case first undisturbed,
//	        and then under the faults of a number of seeds
//	Result  the result of a case; the failure of a seed comes with
//	        the smallest schedule that shows it
//
// Expectations under expect, never and always hold in every order. Expectations under undisturbed
// hold only without faults.
package cases
