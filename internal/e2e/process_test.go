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
	"testing"
	"time"

	"github.com/stretchr/testify/require"
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
	return p.wait(patience)
}

// freeze stops the process where it is; thaw lets it go on.
func (p *process) freeze() error { return p.cmd.Process.Signal(syscall.SIGSTOP) }

func (p *process) thaw() error { return p.cmd.Process.Signal(syscall.SIGCONT) }

// wait waits for the process to end by itself and says how it did.
func (p *process) wait(patience time.Duration) error {
	select {
	case <-p.ended:
		return p.err
	case <-time.After(patience):
		return fmt.Errorf("%s %w after %v", p.name, errGoesOn, patience)
	}
}

var errGoesOn = errors.New("goes on")

// gone says whether the process has ended.
func (p *process) gone() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// freeAddress looks below the ports that the kernel hands out by itself: there a client that dials
// while nobody listens may be given the very port it dials, and connect to itself.
func freeAddress(t *testing.T) string {
	const first, last = 20000, 32000
	for range 100 {
		address := fmt.Sprintf("127.0.0.1:%d", first+rand.IntN(last-first))
		if l, err := net.Listen("tcp", address); err == nil {
			require.NoError(t, l.Close())
			return address
		}
	}
	t.Fatal("no port is free")
	return ""
}
