package child

import (
	"os"
	"syscall"
	"unsafe"
)

// sysProcess is what a process has beside its id on this system.
type sysProcess struct{ pidfd int } // -1 = the kernel knows none

// procAttr makes a program the leader of its own process group. That it ends with us is its
// family's business: the kernel's signal for that would come already when the thread that started
// it ends.
func (p *sysProcess) procAttr() *syscall.SysProcAttr {
	p.pidfd = -1
	return &syscall.SysProcAttr{Setpgid: true, PidFD: &p.pidfd}
}

func (p *Process) killGroup() { _ = syscall.Kill(-p.Pid, syscall.SIGKILL) }

func (p *Process) terminateGroup() { _ = syscall.Kill(-p.Pid, syscall.SIGTERM) }

// reap waits for the process twice: first without reaping it, so that its group can be killed while
// its id is certain to be its own.
func (p *Process) reap() (State, error) {
	if !p.pollExit() {
		_, _ = hasExited(idOfProcess, p.Pid, 0)
	}
	p.killBeforeReap()
	return p.own.Wait()
}

// pollExit has the runtime's poller wait for the end: a thread for each of hundreds of scripts
// costs memory, and when they begin at once the time they need to be made. It is false when there
// is no poller for that.
func (p *Process) pollExit() bool {
	if p.pidfd < 0 {
		return false
	}
	_ = syscall.SetNonblock(p.pidfd, true) // what the poller takes; where that fails it says so below
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

// What waitid's id is.
const (
	idOfProcess = 1 // P_PID
	idOfPidfd   = 3 // P_PIDFD
)

// hasExited reports whether a process has ended, and leaves it to be reaped.
func hasExited(kind, id, flags int) (bool, error) {
	var info [32]int32 // siginfo_t; its first field is set when there is something to tell
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
