// Package wire has the types that are exchanged between Troupe and its clients. The server and all
// Go clients share them.
package wire
