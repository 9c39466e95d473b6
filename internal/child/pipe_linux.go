package child

import (
	"os"

	"golang.org/x/sys/unix"
)

// newPipe returns a pipe whose end with index theirs is for a program. Only the other end is
// registered with the runtime's poller; os.Pipe would register both ends.
func newPipe(theirs int) (r, w *os.File, err error) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		return nil, nil, os.NewSyscallError("pipe2", err)
	}
	if _, err := unix.FcntlInt(uintptr(fds[1-theirs]), unix.F_SETFL, unix.O_NONBLOCK); err != nil {
		_, _ = unix.Close(fds[0]), unix.Close(fds[1])
		return nil, nil, os.NewSyscallError("fcntl", err)
	}
	return os.NewFile(uintptr(fds[0]), "|0"), os.NewFile(uintptr(fds[1]), "|1"), nil
}
