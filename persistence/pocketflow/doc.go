// Package pocketflow takes what a PocketFlow scheduler has stored over into a store of ours, while
// no member serves that: flows, versions, and tasks with their state and runs.
//
// What it promises: the scheduler's file is read and nothing else; ids stay; what was taken before
// is not taken twice, so a run that was broken off is simply begun again; a task is taken as a
// whole or not at all; and what is not taken is told with the reason. A member goes on with the
// tasks that have not ended.
package pocketflow
