package e2e

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

// process is a program that runs beside the test. What it says goes to a log of its name.
type process struct {
	name  string
	cmd   *exec.Cmd
	ended chan struct{}
	err   error // how it ended
}

// startProcess starts a command and waits for it on a thread that lives as long: the kernel would take
// the end of that thread for the end of the parent.
func startProcess(dir, name string, cmd *exec.Cmd) (*process, error) {
	log, err := os.OpenFile(filepath.Join(dir, name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	fmt.Fprintf(log, "--- %s starts\n", time.Now().Format(time.StampMilli))
	cmd.Stdout, cmd.Stderr = log, log
	endWithParent(cmd)
	p := &process{name: name, cmd: cmd, ended: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			p.err = cmd.Wait()
			close(p.ended)
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	return p, nil
}

// kill ends the process without warning, and returns when it is gone.
func (p *process) kill() {
	_ = p.cmd.Process.Signal(syscall.SIGKILL) // it may have ended
	<-p.ended
}

// stop asks the process to end and says how it did.
func (p *process) stop(patience time.Duration) error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("stop %s: %w", p.name, err)
	}
	select {
	case <-p.ended:
		return p.err
	case <-time.After(patience):
		return fmt.Errorf("stop %s: it goes on after %v", p.name, patience)
	}
}

// gone says whether the process has ended.
func (p *process) gone() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// freePort looks below the ports that the kernel hands out by itself: there a client that dials while
// nobody listens may be given the very port it dials, and connect to itself.
func freePort() (int, error) {
	const first, last = 20000, 32000
	for range 100 {
		port := first + rand.IntN(last-first)
		if l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			return port, l.Close()
		}
	}
	return 0, errors.New("no port is free")
}
