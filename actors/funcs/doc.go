// Package funcs carries out local_func jobs: functions of the member's own program.
//
// Promises: a function that panics costs its attempt and nothing else; an unknown name is a fatal
// error at once; a job is tried as often as its node says before anything is reported, and the
// wait between tries ends when the job is withdrawn.
package funcs
