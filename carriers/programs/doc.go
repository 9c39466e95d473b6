// Package programs carries out process and python jobs on this member. Package program starts the
// programs.
//
// Nothing is started unless the operator allowed it. The output of a program is the attempt's log,
// also if the program fails. For a program that reports through files, only the files determine the
// result.
package programs
