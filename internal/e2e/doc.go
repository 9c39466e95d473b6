// Package e2e holds the crash test: the built command, real workers and real stores, whose
// processes are killed while tasks of every kind are under way.
//
// What it checks after every run: each task that was acknowledged exists, and none twice; each
// ended in the state and with the shared values of an undisturbed run; its journal has no gap and
// applied no attempt and no request twice; nothing is left in the queue. Programs that members
// started, jobs outside and tasks that begin by the clock keep records of their own
// (errands.World): no attempt's program began twice, none is left a second after its member has
// ended, no job outside was begun again that an attempt waited for, and each slot of a schedule has
// one task.
//
// Strangers to a cluster, who lack a key, a secret, a token or a certificate, are refused, logged
// once, and change nothing.
//
// What clients of three members hear, of which one is killed and another leaves, is checked by
// porcupine to be what package flow would answer in some order of the requests; answers that are
// changed afterwards are found.
//
// Members are replaced by those of the next release, one after the other: that one is built of the
// same source with the tag troupe_next, which has it write journals and snapshots that this one
// cannot read.
//
// TROUPE_CRASH_KILLS says how many processes a test kills (3), TROUPE_CRASH_SEED when and what (1,
// or a new one when the kills are given). What processes said is kept in the folder logs when a
// test fails.
package e2e
