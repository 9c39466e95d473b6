package ports

import (
	"errors"
	"syscall"
)

// reservePort takes a port of 127.0.0.1 by a socket that never listens. It is bound alone, so it is
// refused where anybody else has the port. From then on it lets in those who ask to reuse an
// address, as all servers do: one of them can listen, go and come back, while others who reserve a
// port find this one taken.
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
