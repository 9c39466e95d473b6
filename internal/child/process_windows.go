package child

import "syscall"

// sysProcess is the system-specific part of a Process; it is empty here.
type sysProcess struct{}

// procAttr shields a program from the signals of this process's console. Windows has no process
// groups in the Unix sense: processes started by the program outlive it.
func (*sysProcess) procAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

func (p *Process) killGroup() { _ = p.own.Kill() }

// terminateGroup kills the program, because Windows has no way to ask a program without a console
// of its own to end.
func (p *Process) terminateGroup() { p.killGroup() }

func (p *Process) reap() (State, error) {
	state, err := p.own.Wait()
	p.killBeforeReap()
	return state, err
}
