// Package scripts carries out local_script jobs: programs that the member starts. It guarantees:
//
//   - Nothing is started unless the operator of the member allowed it. If a directory is given,
//     nothing is started outside of it.
//   - A script and its child processes end with the job, and with the member. (Package child
//     describes the limits.).
//   - An output is complete, or too large and a failure.
//   - The output, or its start, is kept as the attempt's log, also after a failure.
package scripts
