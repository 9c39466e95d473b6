package ports

import (
	"errors"
	"syscall"
)

// reservePort reserves a port of 127.0.0.1 with a socket that never listens. It is bound
// exclusively, so it fails if the port is in use. Afterwards it allows address reuse, which all
// servers request: a server can listen, end and return, while other reservations fail.
func reservePort(port int) error {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	err = syscall.Bind(fd, &syscall.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}})
	if err == nil {
		err = syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1)
	}
	if err != nil {
		return errors.Join(err, syscall.Close(fd))
	}
	return nil
}
