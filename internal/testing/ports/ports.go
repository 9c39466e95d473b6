//go:build unix

// Package ports reserves ports for tests. A reserved port has no listener, and no other caller of
// this package, in any process, gets the same port while this process lives. So a member may be
// started on the port later, be killed, and return.
package ports

import (
	"fmt"
	"math/rand/v2"
)

// Free reserves a port of 127.0.0.1. It lies below the kernel's range of ephemeral ports: in that
// range a client that dials a closed port may be assigned the same port and connect to itself.
func Free() (int, error) {
	const first, last = 20000, 32000
	var refused error
	for range 100 {
		port := first + rand.IntN(last-first)
		if refused = reservePort(port); refused == nil {
			return port, nil
		}
	}
	return 0, fmt.Errorf("no port is free: %w", refused)
}

// FreeAddress is like Free, as HOST:PORT.
func FreeAddress() (string, error) {
	port, err := Free()
	return fmt.Sprintf("127.0.0.1:%d", port), err
}
