// Package persistence defines how Troupe stores flows, tasks and their journals.
//
// Store is one narrow contract with two implementations, persistence/postgres and
// persistence/sqlite. Both run the same suite, internal/testing/storetest. Beside it are
// internal/testing/model, the contract in maps, and internal/testing/faulty, which fails on
// purpose.
//
// Promises of a Store:
//   - A commit is all or nothing, and it is durable when it is acknowledged. A batch has one result
//     per commit: a stale or unknown commit fails alone and its neighbors are written.
//   - The sequence numbers of a task's journal have no gaps and no duplicates: two owners can never
//     both extend one history.
//   - No commit of a fenced incarnation is written, whatever it contains and however late it comes.
//     No incarnation is fenced while its lease runs.
//   - A shard has at most one owner, until that owner releases it, leaves or is fenced.
//   - A snapshot never moves back in sequence. A checkpoint is kept as long as its task.
//   - Values are returned byte for byte as they were stored.
package persistence
