//go:build unix

// Package process runs programs beside a test. The programs end with the test in any case. They can
// be killed, frozen and stopped, and the output of each program goes to a log named after it.
package process

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

// Process is a started program.
type Process struct {
	Name  string
	Err   error // how the process ended; valid when Gone is closed
	cmd   *exec.Cmd
	log   string // path
	ended chan struct{}
}

// Start starts a command on a thread that lives as long as the program, because the kernel treats
// the end of that thread as the end of the parent. The log is in dir.
func Start(dir, name string, cmd *exec.Cmd) (*Process, error) { return StartIn(nil, dir, name, cmd) }

// StartIn starts a command on a thread that enter has moved, for example into a network namespace,
// so the program runs there too. The thread is discarded when the program has ended.
func StartIn(enter func() error, dir, name string, cmd *exec.Cmd) (*Process, error) {
	path := filepath.Join(dir, name+".log")
	log, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	fmt.Fprintf(log, "--- %s starts\n", time.Now().Format(time.StampMilli))
	cmd.Stdout, cmd.Stderr = log, log
	endWithParent(cmd)
	p := &Process{Name: name, cmd: cmd, log: path, ended: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		if enter == nil { // otherwise the thread has changed and must end with this goroutine
			defer runtime.UnlockOSThread()
		}
		err := startIn(enter, cmd)
		started <- err
		if err == nil {
			p.Err = cmd.Wait()
			close(p.ended)
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	return p, nil
}

// startIn calls enter, unless it is nil, and starts a command.
func startIn(enter func() error, cmd *exec.Cmd) error {
	if enter != nil {
		if err := enter(); err != nil {
			return err
		}
	}
	return cmd.Start()
}

// Pid returns the process id.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Said returns the end of the program's log, for error messages.
func (p *Process) Said() string {
	const most = 8 << 10
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-most):])
}

// Kill kills the process and returns when it has ended.
func (p *Process) Kill() {
	_ = p.cmd.Process.Signal(syscall.SIGKILL) // fails if the process has ended already
	<-p.ended
}

// Stop sends SIGTERM to the process and returns its exit error, or nil.
func (p *Process) Stop(patience time.Duration) error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("stop %s: %w", p.Name, err)
	}
	return p.Wait(patience)
}

// Freeze pauses the process until Thaw.
func (p *Process) Freeze() error { return p.cmd.Process.Signal(syscall.SIGSTOP) }

// Thaw resumes a frozen process.
func (p *Process) Thaw() error { return p.cmd.Process.Signal(syscall.SIGCONT) }

// Wait waits until the process ends by itself and returns its exit error, or nil.
func (p *Process) Wait(patience time.Duration) error {
	select {
	case <-p.ended:
		return p.Err
	case <-time.After(patience):
		return fmt.Errorf("%s %w after %v", p.Name, errGoesOn, patience)
	}
}

var errGoesOn = errors.New("goes on")

// Done returns a channel that is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.ended }

// Gone reports whether the process has ended.
func (p *Process) Gone() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}
