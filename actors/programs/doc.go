// Package programs carries out process and python jobs on this member: programs that package
// program starts.
//
// Promises: nothing is started unless the member's operator allowed it; what a program prints is
// its attempt's log while it runs, also when it fails; one that reports by files is believed by
// them alone.
package programs
