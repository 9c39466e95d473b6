// Package cases reads what is expected of a flow, plays it (package rehearse), compares, and tells
// what differs.
//
//	File       a file of cases, in YAML or JSON, and the flow that they are about; everything that is wrong with it is told with line and column
//	Case       what a task is started with, who answers its jobs (Mock), what happens from outside, and what has to come of it
//	Suite      files on their way through all cores: each case undisturbed, and then under the misfortunes of as many seeds as are wanted
//	Result     what came of a case; a failure of a seed with the smallest schedule that shows it
//
// What holds in every order stands under expect, never and always; what holds only as long as
// nothing goes wrong stands under undisturbed.
package cases
