//go:build unix && !linux

package child

import "syscall"

// sysProcess is the system-specific part of a Process; it is empty here.
type sysProcess struct{}

// procAttr makes a program the leader of its own process group.
func (*sysProcess) procAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func (p *Process) killGroup() { _ = syscall.Kill(-p.Pid, syscall.SIGKILL) }

func (p *Process) terminateGroup() { _ = syscall.Kill(-p.Pid, syscall.SIGTERM) }

// reap waits for the process and then kills the rest of its group.
func (p *Process) reap() (State, error) {
	state, err := p.own.Wait()
	p.killBeforeReap()
	return state, err
}
