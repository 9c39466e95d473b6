// Package e2e holds the crash test: the built binary with real workers and real stores, whose
// processes are killed while tasks of every kind are running.
//
// After every run it checks:
//   - Each acknowledged task exists exactly once.
//   - Each task ended with the state and shared values of an undisturbed run.
//   - No journal has a gap, and no attempt or request is applied twice.
//   - Nothing is left in the queue.
//   - Programs started by members, external jobs and tasks of schedules match their own records
//     (errands.World). No attempt's program began twice, and none is running a second after the end
//     of its member. No external job was started again while an attempt waited for it, and each
//     slot of a schedule has one task.
//
// Further tests:
//   - Members without the right key, secret, token or certificate are refused by a cluster, logged
//     once, and change nothing.
//   - Clients of three members, one of which is killed while another leaves, record their answers.
//     Porcupine checks that package flow would give these answers in some order of the requests; it
//     also detects answers altered afterwards.
//   - Members are replaced one by one by members of the next release. That release is built from
//     the same source with the tag troupe_next, which makes it write journals and snapshots that
//     this release cannot read.
//
// TROUPE_CRASH_KILLS sets how many processes a test kills (default 3). TROUPE_CRASH_SEED determines
// when and which (default 1, or a random seed if the number of kills is set). After a failure the
// folder logs holds the output of the processes.
package e2e
