// Package persistence says how Troupe keeps flows, tasks and their journals.
//
// Store is one narrow contract with two implementations, persistence/postgres and
// persistence/sqlite, and one suite that both run, persistence/storetest.
//
// Promises of a Store:
//   - A commit is all or nothing, and durable when it is answered. A batch answers each commit for
//     itself: a stale or unknown one fails alone and its neighbours are written.
//   - The sequence numbers of a task's journal have no gap and no double: two owners can never both
//     extend one history.
//   - Nothing a fenced incarnation sends is written, whatever it is and however late it arrives.
//   - A snapshot never goes back in sequence.
//   - Values come back byte for byte as they were given.
package persistence
