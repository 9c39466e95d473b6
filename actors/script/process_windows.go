package script

import (
	"os"
	"syscall"
)

// sysProcess is what a process has beside its id on this system: nothing.
type sysProcess struct{}

// attr keeps signals of our console from a script. Windows knows no process groups in the
// sense meant here: what a script started itself outlives it.
func (*sysProcess) attr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

func (p *process) killGroup() { _ = p.Kill() }

func (p *process) reap() (*os.ProcessState, error) {
	state, err := p.Wait()
	p.killLast()
	return state, err
}
