package child

import (
	"os"
	"syscall"
	"unsafe"
)

// sysProcess is the system-specific part of a Process.
type sysProcess struct{ pidfd int } // -1 if the kernel has none

// procAttr makes a program the leader of its own process group. The family ensures that the program
// ends with this process. The kernel's parent-death signal would come too early, when the thread
// that started the program ends.
func (p *sysProcess) procAttr() *syscall.SysProcAttr {
	p.pidfd = -1
	return &syscall.SysProcAttr{Setpgid: true, PidFD: &p.pidfd}
}

func (p *Process) killGroup() { _ = syscall.Kill(-p.Pid, syscall.SIGKILL) }

func (p *Process) terminateGroup() { _ = syscall.Kill(-p.Pid, syscall.SIGTERM) }

// reap waits for the process twice. The first wait does not reap the process, so that its group can
// be killed while the process id cannot belong to another process.
func (p *Process) reap() (State, error) {
	if !p.pollExit() {
		_, _ = hasExited(idOfProcess, p.Pid, 0)
	}
	p.killBeforeReap()
	return p.own.Wait()
}

// pollExit waits for the end with the runtime's poller. A blocked thread for each of hundreds of
// scripts would cost memory and start-up time. It returns false if the poller cannot be used.
func (p *Process) pollExit() bool {
	if p.pidfd < 0 {
		return false
	}
	// required by the poller; if it fails, the calls below fail too
	_ = syscall.SetNonblock(p.pidfd, true)
	f := os.NewFile(uintptr(p.pidfd), "pidfd")
	defer f.Close()
	conn, err := f.SyscallConn()
	if err != nil {
		return false
	}
	waited := conn.Read(func(fd uintptr) bool {
		var ended bool
		ended, err = hasExited(idOfPidfd, int(fd), syscall.WNOHANG)
		return ended || err != nil
	})
	return waited == nil && err == nil
}

// Kinds of ids for waitid.
const (
	idOfProcess = 1 // P_PID
	idOfPidfd   = 3 // P_PIDFD
)

// hasExited reports whether a process has ended, without reaping it.
func hasExited(kind, id, flags int) (bool, error) {
	var info [32]int32 // siginfo_t; its first field is set if there is an event
	for {
		_, _, errno := syscall.Syscall6(syscall.SYS_WAITID, uintptr(kind), uintptr(id),
			uintptr(unsafe.Pointer(&info)), uintptr(syscall.WEXITED|syscall.WNOWAIT|flags), 0, 0)
		switch errno {
		case 0:
			return info[0] != 0, nil
		case syscall.EINTR:
		default:
			return false, errno
		}
	}
}
