//go:build unix

// Package ports gives tests ports that are theirs: nobody listens there, and nobody else who asks
// here, in this process or another one, is given the same one as long as this process lives. So a
// member may be started there later, be killed, and come back.
package ports

import (
	"fmt"
	"math/rand/v2"
)

// Free is a port of 127.0.0.1. It is below those that the kernel hands out by itself: there a
// client that dials while nobody listens may be given the very port it dials, and connect to
// itself.
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

// FreeAddress is Free as HOST:PORT.
func FreeAddress() (string, error) {
	port, err := Free()
	return fmt.Sprintf("127.0.0.1:%d", port), err
}
