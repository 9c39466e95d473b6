//go:build unix && !linux

package ports

import (
	"fmt"
	"net"
)

// reservePort only checks that a port of 127.0.0.1 is free. Outside Linux a reserving socket would
// also block the later listener.
func reservePort(port int) error {
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return err
	}
	return l.Close()
}
