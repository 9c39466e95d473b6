//go:build unix

// Package pgtest gives tests and benchmarks a real PostgreSQL server of their own.
//
// What it promises:
//
//   - A server is private and thrown away: its data, log and socket live in one new folder, it
//     listens on 127.0.0.1 only, and stopping it removes the folder.
//   - Its settings are the stock, durable ones (fsync and synchronous_commit on); only
//     max_connections is raised. What a test sees is what production would do.
//   - Only processes it started are ever signaled, by their ids.
//   - No server outlives the process that started it, however that process ends (see superviseServer).
//     The folder of a process that was killed is removed by the next one that starts a server.
//
// Most tests need one line, and a TestMain if they like to leave nothing behind at once:
//
//	func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }
//
//	func TestStore(t *testing.T) { open(pgtest.DSN(t)) … }
//
// With TROUPE_TEST_POSTGRES set to the DSN of a server, DSN makes its databases there and starts
// nothing.
package pgtest
