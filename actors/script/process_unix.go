//go:build unix && !linux

package script

import (
	"os"
	"syscall"
)

// groupLeader makes a script the leader of its own process group.
func groupLeader() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func (p *process) killGroup() { _ = syscall.Kill(-p.Pid, syscall.SIGKILL) }

// reap waits for the process and then kills what is left of its group.
func (p *process) reap() (*os.ProcessState, error) {
	state, err := p.Wait()
	p.killLast()
	return state, err
}
