// Package workers keeps the registry of workers, and sends jobs to those that are HTTP servers. It
// guarantees:
//
//   - A registration is stored before it is answered. It survives a restart, together with the last
//     heartbeat.
//   - A worker that sent heartbeats while no member ran is tried after the start nevertheless.
//   - A job that requires labels goes only to workers with all of them.
//   - A worker that accepts several jobs per request gets concurrent calls together, and a slow job
//     does not delay the answers of others.
//   - Heartbeats count at once. On other members they count when they arrive, which no caller waits
//     for. They are written in groups.
//   - Only addresses in loopback and in the networks that the operator allowed are ever called,
//     whatever a worker's URL says or its name resolves to. Redirects and proxies are not followed.
//   - Answers and the number of workers are bounded.
package workers
