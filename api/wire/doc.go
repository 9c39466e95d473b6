// Package wire holds the shapes that travel between Troupe and its clients, and nothing else: the
// server and every client share these types, so neither can drift from the other.
package wire
