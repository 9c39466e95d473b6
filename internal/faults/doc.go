// Package faults runs members on hosts of their own, whose links can be cut: as root, or where user namespaces are permitted, each
// host has a network namespace and is wired to three bridges (to the other hosts, to the store, to callers); elsewhere relays on
// loopback, for TCP and UDP, make the same cuts, and the log says so.
//
// A cut link swallows what is sent, either way: nobody is told, and what TCP has not delivered arrives when it heals.
package faults
