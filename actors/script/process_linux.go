package script

import (
	"os"
	"syscall"
	"unsafe"
)

// groupLeader makes a script the leader of its own process group, and its death follow from ours.
// (That signal comes with the death of the thread that started it; the runtime keeps its threads.)
func groupLeader() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

func (p *process) killGroup() { _ = syscall.Kill(-p.Pid, syscall.SIGKILL) }

// reap waits for the process twice: first without reaping it, so that its group can be killed while
// its id is certain to be its own.
func (p *process) reap() (*os.ProcessState, error) {
	waitExit(p.Pid)
	p.killLast()
	return p.Wait()
}

func waitExit(pid int) {
	const idOfProcess = 1 // P_PID
	var info [128]byte    // siginfo_t
	for {
		_, _, errno := syscall.Syscall6(syscall.SYS_WAITID, idOfProcess, uintptr(pid),
			uintptr(unsafe.Pointer(&info)), syscall.WEXITED|syscall.WNOWAIT, 0, 0)
		if errno != syscall.EINTR {
			return
		}
	}
}
