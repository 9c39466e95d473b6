//go:build unix

package pgtest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// postmaster is the first process of a running server.
type postmaster struct {
	process *os.Process
	ended   chan struct{} // closed when the process was reaped
}

// superviseServer starts cmd and waits for it, both on a dedicated thread.
//
// No server may outlive this process, and this process may end without running any deferred code
// (SIGKILL, a test timeout, os.Exit). Only the kernel reliably notices such an end; on Linux it
// signals the child (dieWithParent). But the signal is sent when the thread that started the child
// ends, and the Go runtime may end a thread at any time. A goroutine locked to its thread keeps the
// thread alive exactly as long as the child runs.
//
// The kernel drops the parent-death signal when the child changes its user, so the signal has to be
// set after the change. Package os/exec does so, and also handles a parent that died in between.
func superviseServer(cmd *exec.Cmd) (*postmaster, error) {
	dieWithParent(cmd.SysProcAttr)
	p := &postmaster{ended: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		p.process = cmd.Process
		started <- err
		if err == nil {
			cmd.Wait() // the server log shows the reason for the end
			close(p.ended)
		}
	}()
	return p, <-started
}

// shutDown ends the server in PostgreSQL's fast mode, and after a timeout in immediate mode.
func (p *postmaster) shutDown() error {
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGQUIT} {
		if !p.sendSignal(sig) || p.awaitEnd(stopTimeout) {
			return nil
		}
	}
	return errors.Join(fmt.Errorf("pgtest: postgres (pid %d) did not stop", p.process.Pid), p.killServer())
}

// killServer kills all processes of the server at once. The postmaster is frozen before its
// children are listed, so that it starts no further child. It is killed last: until then it is
// their parent, so no other process can get their ids. All must have ended before a new postmaster
// may start.
func (p *postmaster) killServer() error {
	if !p.sendSignal(syscall.SIGSTOP) {
		return nil
	}
	if err := p.awaitFrozen(); err != nil {
		return errors.Join(err, p.process.Kill())
	}
	children := childrenOf(p.process.Pid)
	for _, child := range children {
		syscall.Kill(child.pid, syscall.SIGKILL)
	}
	p.sendSignal(syscall.SIGKILL)
	if !p.awaitEnd(stopTimeout) {
		return fmt.Errorf("pgtest: postgres (pid %d) survived SIGKILL", p.process.Pid)
	}
	deadline := time.Now().Add(stopTimeout)
	for _, child := range children {
		for !child.hasEnded() {
			if time.Now().After(deadline) {
				return fmt.Errorf("pgtest: child %d of postgres survived SIGKILL", child.pid)
			}
			time.Sleep(time.Millisecond)
		}
	}
	return nil
}

// freeze stops the server's processes. The postmaster is first, so that it starts no further child.
func (p *postmaster) freeze() error {
	if !p.sendSignal(syscall.SIGSTOP) {
		return fmt.Errorf("pgtest: postgres (pid %d) has ended and cannot be frozen", p.process.Pid)
	}
	if err := p.awaitFrozen(); err != nil {
		return err
	}
	return p.signalChildren(syscall.SIGSTOP)
}

// thaw resumes the server's processes, the postmaster last.
func (p *postmaster) thaw() error {
	err := p.signalChildren(syscall.SIGCONT)
	if !p.sendSignal(syscall.SIGCONT) {
		err = errors.Join(err, fmt.Errorf("pgtest: postgres (pid %d) has ended while it was frozen", p.process.Pid))
	}
	return err
}

// signalChildren signals the children of a frozen postmaster. A frozen postmaster reaps no child,
// so their ids stay valid.
func (p *postmaster) signalChildren(sig syscall.Signal) (err error) {
	for _, child := range childrenOf(p.process.Pid) {
		if failed := syscall.Kill(child.pid, sig); failed != nil && !errors.Is(failed, syscall.ESRCH) {
			err = errors.Join(err, fmt.Errorf("pgtest: signal child %d of postgres: %w", child.pid, failed))
		}
	}
	return err
}

// awaitFrozen returns when SIGSTOP has taken effect on the postmaster. Until then it may still
// start a child.
func (p *postmaster) awaitFrozen() error {
	deadline := time.Now().Add(stopTimeout)
	for {
		now, err := readProcess(p.process.Pid)
		// it has ended, or there is no /proc
		if err != nil || now.state == "T" || now.state == "Z" {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("pgtest: postgres (pid %d) does not stop at SIGSTOP", p.process.Pid)
		}
		time.Sleep(time.Millisecond)
	}
}

// sendSignal returns false if the process has ended.
func (p *postmaster) sendSignal(sig syscall.Signal) bool { return p.process.Signal(sig) == nil }

func (p *postmaster) awaitEnd(timeout time.Duration) bool {
	select {
	case <-p.ended:
		return true
	case <-time.After(timeout):
		return false
	}
}
