// Package program carries out programs, functions of Python and functions of shared libraries as
// jobs: finding what is to be started, what it sees, what it prints, and its end. A member and a
// worker use it alike.
//
// Promises: nothing is started outside of the folder that the operator allows; a program sees a
// stated environment, its input as one line of JSON with an end, and where that is too large for a
// variable a file, which is removed when it has ended; whatever it prints is read to its end, in
// bounded memory; an output is whole, or too large and a failure; what was started ends with its
// job, and with us (package child says how far).
package program
