package child

import "syscall"

// sysProcess is what a process has beside its id on this system: nothing.
type sysProcess struct{}

// procAttr keeps signals of our console from a program. Windows knows no process groups in the
// sense meant here: what a program started itself outlives it.
func (*sysProcess) procAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

func (p *Process) killGroup() { _ = p.own.Kill() }

// terminateGroup kills: a program without a console of its own cannot be asked here.
func (p *Process) terminateGroup() { p.killGroup() }

func (p *Process) reap() (State, error) {
	state, err := p.own.Wait()
	p.killBeforeReap()
	return state, err
}
