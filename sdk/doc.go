// Package sdk has nothing for Go programs: they have packages worker and api/client. Below it are
// the SDKs of other languages, for workers and clients, each with its own README; here are the
// tests that run theirs.
//
// What is tested is each SDK as its users get it, against members in processes of their own, over
// HTTP on loopback. python3 (3.9 or newer), node (20.11 or newer) and npm have to be there; without
// one of them a test fails and says what to install. The first run on a machine installs
// TypeScript's compiler and Connect below sdk/typescript, in the versions and with the hashes that
// its lock file names.
package sdk
