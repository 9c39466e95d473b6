// Package persistence says how Troupe keeps flows, tasks and their journals.
//
// Store is one narrow contract with two implementations, persistence/postgres and
// persistence/sqlite, and one suite that both run, persistence/storetest. For tests there are
// persistence/model, the contract as maps, and persistence/faulty, which fails on purpose.
//
// Promises of a Store:
//   - A commit is all or nothing, and durable when it is answered. A batch answers each commit for
//     itself: a stale or unknown one fails alone and its neighbors are written.
//   - The sequence numbers of a task's journal have no gap and no double: two owners can never both
//     extend one history.
//   - No commit of a fenced incarnation is written, whatever is in it and however late it arrives. Nobody is fenced whose lease runs.
//   - A shard has one owner at most, until that one releases it, leaves or is fenced.
//   - A snapshot never goes back in sequence. A checkpoint stays as long as its task.
//   - Values come back byte for byte as they were given.
package persistence
