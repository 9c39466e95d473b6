//go:build unix && !linux

package ports

import (
	"fmt"
	"net"
)

// reservePort only finds out whether a port of 127.0.0.1 is free: elsewhere than on Linux a socket
// that keeps it would keep it from those who are to listen.
func reservePort(port int) error {
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return err
	}
	return l.Close()
}
