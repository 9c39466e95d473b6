// Package importer imports the data of a PocketFlow scheduler into a store that no member serves
// meanwhile: flows, versions, and tasks with their state and runs. A member continues the
// unfinished tasks later.
//
// Promises: the scheduler's file is only read, and ids stay the same. Nothing is imported twice, so
// an interrupted import is simply run again. A task is imported as a whole or not at all.
// Everything that is not imported is reported with the reason.
package importer
