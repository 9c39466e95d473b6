//go:build unix

// Package pgtest gives tests and benchmarks a real PostgreSQL server of their own.
//
// Promises:
//   - A server is private and temporary: its data, log and socket are in one new folder, it listens
//     on 127.0.0.1 only, and stopping it removes the folder.
//   - Its settings are the durable defaults (fsync and synchronous_commit on); only max_connections
//     is raised. So tests see the behavior of production.
//   - Only processes it started are ever signaled, by their ids.
//   - No server outlives the process that started it, however that process ends (see
//     superviseServer). The folder of a killed process is removed by the next process that starts a
//     server.
//
// Most tests need one line, and a TestMain to remove the server immediately:
//
//	func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }
//
//	func TestStore(t *testing.T) { open(pgtest.DSN(t)) … }
//
// If TROUPE_TEST_POSTGRES holds the DSN of a server, DSN creates its databases there and starts no
// server.
package pgtest
