// Package program carries out programs, Python functions and functions of shared libraries as jobs.
// It finds the program, sets up its environment, reads its output and ends it. Members and workers
// use it alike.
//
// Promises:
//   - Nothing is started outside the folder that the operator allows.
//   - A program sees a documented environment, and its input as one line of JSON followed by end of
//     file. An input too large for a variable is in a file, which is removed when the program has
//     ended.
//   - All output is read to its end, in bounded memory.
//   - An output is complete; one that is too large is a failure.
//   - Everything started for a job ends with the job and with this process (package child states
//     the limits of this).
package program
