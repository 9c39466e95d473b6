// Package faults tests a cluster under faults: three members, each the built binary on a host of
// its own, with a real PostgreSQL and real workers. Tasks of every kind (package errands) run
// meanwhile, started and commanded at any member. The workers (push, pull, attached) know all
// members, each in a different order, and switch to the next one when theirs is unavailable.
//
// The faults are drawn from a seed, and each kind occurs once before any repeats:
// - A member is killed, or frozen for longer than its lease.
// - A member is cut off from the others, from the store, or from both.
// - The store crashes, is restarted, or stops answering, or all packets to it are dropped.
// - All members are restarted, one after the other.
//
// A member that exits by itself is restarted, as by a service manager. Every change has to pass
// seven faults: all kinds except three of those that have a test of their own here (killed, frozen,
// cut off from the others, rolling restart).
//
// The test checks:
//   - Every task ends as in an undisturbed run on one member, within a minute after the last fault.
//   - No journal has a gap, and no attempt or request is applied twice.
//   - Nothing is left in the queue.
//   - Programs started by members, external jobs and slots of schedules match their own records
//     (errands.World).
//
// Further tests check single faults:
//   - After a SIGKILL the tasks of that member continue elsewhere.
//   - Members that leave and return cause no error for any caller, and no job runs twice.
//   - A member that only the other members cannot reach keeps its shards.
//   - All members notice a backup restored under them, and no task gets stuck.
//   - While the store does not answer, members that know it refuse new tasks at once.
//   - Members go on with a standby that was behind. Led back to the old primary by an address that
//     moves (storeFront), they refuse, write nothing there, and lose no task of the newer one.
//   - Members that are restarted on the old primary continue where it was.
//   - Writes that a frozen member had in flight are refused after it was fenced.
//
// At the end the test reports its measurements, one per line. They are compared with bounds if
// TROUPE_FAULTS is set.
//
// Hosts: as root, or where user namespaces are permitted, each host has a network namespace
// connected to three bridges: to the other hosts, to the store, and to callers and workers.
// Otherwise relays on loopback, for TCP and UDP, make the same cuts, and the log notes it
// (TROUPE_FAULTS_HOSTS=relays selects them anyway). A cut link silently drops packets in both
// directions. Undelivered TCP data arrives after the link is restored.
//
// TROUPE_FAULTS sets the number of faults, and TROUPE_FAULTS_SEED the seed (default 1, or a random
// one if the number is set). After a failure the folder logs holds the log of faults with the seed,
// and the output of all programs.
package faults
