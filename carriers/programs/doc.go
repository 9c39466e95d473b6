// Package programs carries out process and python jobs on this member. Package program starts the
// programs.
//
// Nothing is started unless the operator of the member allowed it. The output of a program is the
// log of its attempt, while it runs and also if it fails. For a program that reports through files,
// only the files count.
package programs
