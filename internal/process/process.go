//go:build unix

// Package process runs programs beside a test: they end with it, whatever happens, can be killed,
// frozen and stopped, and what they say goes to a log of their name.
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

// Process is a program that was started.
type Process struct {
	Name  string
	Err   error // how it ended, once Gone
	cmd   *exec.Cmd
	log   string // path
	ended chan struct{}
}

// Start starts a command and waits for it on a thread that lives as long: the kernel would take
// the end of that thread for the end of the parent. The log is in dir.
func Start(dir, name string, cmd *exec.Cmd) (*Process, error) { return StartIn(nil, dir, name, cmd) }

// StartIn starts a command on a thread that enter has moved somewhere, e.g. into a network
// namespace: the program is there, too. The thread is given up when the program has ended.
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
		if enter == nil { // else the thread, which is not like the others any more, ends with this goroutine
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

// startIn starts a command where enter leads, nil = here.
func startIn(enter func() error, cmd *exec.Cmd) error {
	if enter != nil {
		if err := enter(); err != nil {
			return err
		}
	}
	return cmd.Start()
}

// Pid is the program's number.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Said is the end of the program's log, for whoever has to tell why it did not do what it should.
func (p *Process) Said() string {
	const most = 8 << 10
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-most):])
}

// Kill ends the process without warning, and returns when it is gone.
func (p *Process) Kill() {
	_ = p.cmd.Process.Signal(syscall.SIGKILL) // it may have ended
	<-p.ended
}

// Stop asks the process to end and says how it did.
func (p *Process) Stop(patience time.Duration) error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("stop %s: %w", p.Name, err)
	}
	return p.Wait(patience)
}

// Freeze stops the process where it is; Thaw lets it go on.
func (p *Process) Freeze() error { return p.cmd.Process.Signal(syscall.SIGSTOP) }

// Thaw lets a frozen process go on.
func (p *Process) Thaw() error { return p.cmd.Process.Signal(syscall.SIGCONT) }

// Wait waits for the process to end by itself and says how it did.
func (p *Process) Wait(patience time.Duration) error {
	select {
	case <-p.ended:
		return p.Err
	case <-time.After(patience):
		return fmt.Errorf("%s %w after %v", p.Name, errGoesOn, patience)
	}
}

var errGoesOn = errors.New("goes on")

// Done is closed when the process has ended.
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
