// Package attached manages the sessions of workers that attach to this member, and gives them jobs.
// It guarantees:
//
//   - A session never has more jobs than credits. Each job counts until the worker has answered for
//     it.
//   - A job goes to the matching session with the most free credits, else to a member that has
//     announced free credits. It waits only while one of them may take it.
//   - A job of a service that no worker offers fails at once. A function that is a flow is held
//     instead, and delivered again when a worker with it attaches.
//   - A session whose stream breaks waits for its worker during the grace period. Then its jobs are
//     lost, and other workers get them.
//   - A worker that comes back in time continues with its jobs. The finished ones count, those that
//     did not reach it are sent again, and nothing runs twice.
//   - A worker that does not read delays no other worker.
//   - The number of sessions is bounded.
package attached
