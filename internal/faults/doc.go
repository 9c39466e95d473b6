// Package faults holds the test of a cluster under faults: three members, the built command on
// hosts of their own, with a real PostgreSQL and real workers, while tasks of every kind (package
// errands) are under way, started and commanded at any member. The workers (push, pull, attached)
// know all members, each in another order, and go on with the next one when theirs is away.
//
// What happens is drawn from a seed, each kind before any comes again: a member is killed, or
// frozen for longer than its lease lives; it is cut off from the others, from the store, or from
// both; the store crashes, is restarted, or is silent; all members are restarted in turn. A member
// that ends by itself is started again, as a host's init would. Every change has to pass seven in a
// row: all kinds but two of those that have a test of their own here (killed, frozen, cut off from
// the others, restarted in turn).
//
// What is checked: every task ends as in an undisturbed run on one member, within a minute after
// the last fault; each journal has no gap and applied no attempt and no request twice; nothing is
// left in the queue; programs that members started, jobs outside and slots of schedules are what
// their own records say (errands.World). Beside it: after a SIGKILL the tasks of that member move
// again; members that leave and come back are not noticed (no caller sees an error, no job runs
// twice); a member that only the others do not reach keeps its shards; a backup that is restored
// under running members is noticed by all of them, and nothing stays stuck; while the store is
// silent members that know refuse new tasks after a second; what a frozen member had on its way is
// refused when it was fenced. What comes of all that is told at the end, a figure a line, and held
// to bounds where TROUPE_FAULTS is given.
//
// Hosts: as root, or where user namespaces are permitted, each has a network namespace and is wired
// to three bridges (to the other hosts, to the store, to callers and workers); elsewhere relays on
// loopback, for TCP and UDP, make the same cuts, and the log says so (TROUPE_FAULTS_HOSTS=relays
// wants them anyway). A cut link swallows what is sent, either way: nobody is told, and what TCP
// has not delivered arrives when it heals.
//
// TROUPE_FAULTS says how many faults there are, TROUPE_FAULTS_SEED which (1, or a new one when the
// number is given). When a test fails, the log of faults, with the seed, and what everybody said
// are kept in the folder logs.
package faults
