// Package wire holds the types that travel between Troupe and its clients, and nothing else. The
// server and all Go clients share these types, so they cannot diverge.
package wire
