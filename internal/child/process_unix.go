//go:build unix && !linux

package child

import "syscall"

// sysProcess is what a process has beside its id on this system: nothing.
type sysProcess struct{}

// procAttr makes a program the leader of its own process group.
func (*sysProcess) procAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func (p *Process) killGroup() { _ = syscall.Kill(-p.Pid, syscall.SIGKILL) }

func (p *Process) terminateGroup() { _ = syscall.Kill(-p.Pid, syscall.SIGTERM) }

// reap waits for the process and then kills what is left of its group.
func (p *Process) reap() (State, error) {
	state, err := p.own.Wait()
	p.killBeforeReap()
	return state, err
}
