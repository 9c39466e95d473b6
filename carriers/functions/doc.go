// Package functions carries out local_func jobs: functions of the member's program.
//
// A panic fails only the attempt. An unknown name is a fatal error. A job is tried as often as its
// node allows, and the pause between tries ends when the job is withdrawn.
package functions
