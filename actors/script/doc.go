// Package script carries out local_script jobs: programs that the member starts.
//
// Promises: nothing is started unless the member's operator allowed it, and with a directory given
// nothing is started outside of it; a script and whatever it started end with its job; what is kept of
// its output is bounded; what it printed is kept as the attempt's log, also when it failed.
package script
