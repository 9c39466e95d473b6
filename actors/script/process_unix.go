//go:build unix && !linux

package script

import (
	"os"
	"syscall"
)

// sysProcess is what a process has beside its id on this system: nothing.
type sysProcess struct{}

// attr makes a script the leader of its own process group.
func (*sysProcess) attr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func (p *process) killGroup() { _ = syscall.Kill(-p.Pid, syscall.SIGKILL) }

// reap waits for the process and then kills what is left of its group.
func (p *process) reap() (*os.ProcessState, error) {
	state, err := p.Wait()
	p.killLast()
	return state, err
}
