// Package attack tests a member under attack. The built binary, on SQLite and on PostgreSQL,
// without and with a token, gets requests over HTTP on loopback as a malicious or careless user
// would send them. The attacks run one after the other and then all at once.
//
// During each attack it checks:
// - Simple tasks (a choice, a push worker, a pull worker) start and end all the time.
// - Refused requests get a proper error (4xx, including 429, or 503).
// - Resident memory stays below 1 GB.
//
// After each attack, and again after a SIGKILL, it checks that every task touched by the attacker
// can be read, listed and canceled.
//
// The short form is part of the suite, on SQLite, and of CI on both stores (TROUPE_ATTACK=both). It
// has small loads and only logs the times of simple tasks. The full form (TROUPE_ATTACK=full, make
// attack) has the whole loads and requires a 99th percentile of 1 s for simple tasks and at most 5
// s for every cancel.
//
// Each attack logs a line of JSON. The table of all attacks is kept as logs/attack-*.txt, and after
// a failure the folder logs holds the output of the member.
package attack
