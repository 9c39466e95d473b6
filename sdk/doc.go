// Package sdk holds no code for Go programs, which use the packages worker and api/client. Below it
// are the SDKs for other languages, for workers and clients, each with its own README. This package
// has the tests that run their tests.
//
// Each SDK is tested in the form its users get, against members in processes of their own, over
// HTTP on loopback. The tests need python3 (3.9 or newer), node (20.11 or newer) and npm; if one is
// missing, they fail and name it. The first run on a machine installs the TypeScript compiler and
// Connect below sdk/typescript, in the versions and with the hashes of its lock file.
package sdk
