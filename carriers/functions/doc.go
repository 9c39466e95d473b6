// Package functions carries out local_func jobs: functions of the member's own program.
//
// A function that panics fails its attempt and nothing else. An unknown name is a fatal error at
// once. A job is tried as often as its node allows before it is reported, and the pause between
// tries ends when the job is withdrawn.
package functions
