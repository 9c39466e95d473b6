// Package script carries out local_script jobs: programs that the member starts.
//
// Promises: nothing is started unless the member's operator allowed it, and with a directory given
// nothing is started outside of it; a script and whatever it started end with its job, and with us
// (package child says how far); an output is whole, or too large and a failure; what it printed, or
// the beginning of that, is kept as the attempt's log, also when it failed.
package script
