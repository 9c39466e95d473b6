// Package attack holds the attacks that a member has to outlast: the built command on SQLite and on
// PostgreSQL, over HTTP on loopback, without and with a token, is sent what an attacker or an
// unlucky user would send, one attack after the other and then all of them at once.
//
// What it checks beside each attack: simple tasks (a choice, a push worker, a pull worker) are
// started and ended all the time; whatever is refused is refused in words (4xx, or 429 and 503);
// resident memory stays below 1 GB. And after it, also after a SIGKILL: every task the attacker has
// touched can be read, listed and canceled.
//
// The short form is a part of the suite, on SQLite, and of CI on both (TROUPE_ATTACK=both); it has
// small loads and asserts nothing about time, only tells what the simple tasks took.
// TROUPE_ATTACK=full has the whole loads and holds the 99th percentile of simple tasks to 1 s and
// every cancel to 5 s (make attack). Each attack is a line of JSON in the log; the table of them is
// kept as logs/attack-*.txt, and what the member said in the folder logs when a test fails.
package attack
