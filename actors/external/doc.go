// Package external looks after work outside that needs no library: jobs that tell how they are by
// HTTP, and workers that do so by the files of an object store (package objects), whoever has
// started them.
//
// What it promises: it calls only what the operator's networks allow, also behind a redirect, and
// follows none to another host; values of headers that are secrets are read when they are sent, and
// are in no event, answer or log; a server that cannot be reached or makes no sense is asked again,
// for a bounded time.
package external
