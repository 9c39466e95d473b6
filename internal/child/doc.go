// Package child starts the programs of jobs, selects the environment variables that they see, and
// ends the programs together with all their descendants.
//
// Promises:
//   - A program sees a small part of the environment, which the operator can extend. It never sees
//     the settings of Troupe unless the operator names them.
//   - Everything started for a job ends with the job, wherever it went, and with this process,
//     however this process ends. This holds on Linux; on other systems only process groups end.
//   - A forked process is equal to a started one. A Forker is a program that is started once and
//     forks itself for jobs. Each forked process has its own process group and family, which it
//     joins before it does anything else.
//   - On Linux, programs yield when the processors are busy: their niceness is 10 above
//     the niceness of this process.
//   - On Linux, the memory of each process of a program can be limited (Command.Memory).
//   - Files given to programs are removed after use. The files of a killed process are removed by
//     the next process that sweeps.
//
// How families work: each program carries a mark that all its descendants inherit and that survives
// whatever else they change. The mark is the soft limit of the number of file locks, which no
// current kernel enforces. To end a family, this package searches /proc for its mark.
//
// A process that was started before its program had the mark is found by an environment variable.
// The process is missed only if it clears the variable and leaves its parent in this first moment.
//
// A process killed by SIGKILL cannot clean up. So a second process of the same program, the keeper,
// cleans up: the keeper waits for the end of a pipe that only this process holds.
package child
