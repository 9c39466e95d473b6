//go:build unix

package child

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"
)

// CanFork reports whether this system supports a Forker.
const CanFork = true

// Forker is a process that forks itself on request, over a socket that is its standard input. A
// request holds the folder, environment and files of the new process. The answers are its id and
// exit status. When the Forker ends, all processes forked by the Forker are ended, because their
// exit status would be lost.
type Forker struct {
	process  *Process
	control  *net.UnixConn
	gone     chan struct{} // closed when the process has ended and all its messages were read
	exitText string        // how the process has ended; set when gone is closed
	output   outputTail
	work     sync.WaitGroup

	sending sync.Mutex

	mu      sync.Mutex
	number  uint64 // number of the last request
	pending map[uint64]chan forkResult
	running map[int]*forkedProcess
	ended   bool
}

// forkResult is the answer to a request.
type forkResult struct {
	forked *forkedProcess
	err    error
}

// forkedProcess is a process that a Forker has forked.
type forkedProcess struct {
	forker *Forker
	pid    int
	ended  chan syscall.WaitStatus
}

const (
	// readyTimeout is the time limit for a Forker to become ready.
	readyTimeout = 30 * time.Second
	// forkTimeout is the time limit for one fork.
	forkTimeout = 30 * time.Second
)

// StartForker starts a program that implements the protocol of a Forker, and returns when it is
// ready.
func StartForker(cmd Command) (*Forker, error) {
	ours, theirs, err := socketPair()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	f := &Forker{control: ours, gone: make(chan struct{}), pending: map[uint64]chan forkResult{}, running: map[int]*forkedProcess{}}
	cmd.control, cmd.Split = theirs, false
	if f.process, err = Start(cmd); err != nil {
		ours.Close()
		return nil, err
	}
	f.work.Go(func() { _, _ = io.Copy(&f.output, f.process.Stdout) })
	_ = ours.SetReadDeadline(time.Now().Add(readyTimeout)) // an error here shows up in readMessage
	what, _, _, err := f.readMessage()
	_ = ours.SetReadDeadline(time.Time{})
	f.work.Go(f.readMessages)
	if err != nil || what != 'H' {
		f.Close()
		return nil, fmt.Errorf("%s is not ready to fork: %s", cmd.Path, f.output.String())
	}
	return f, nil
}

func socketPair() (ours *net.UnixConn, theirs *os.File, err error) {
	syscall.ForkLock.RLock()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(fds[0])
		syscall.CloseOnExec(fds[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, nil, err
	}
	theirs = os.NewFile(uintptr(fds[1]), "theirs")
	file := os.NewFile(uintptr(fds[0]), "ours")
	defer file.Close()
	conn, err := net.FileConn(file)
	if err != nil {
		theirs.Close()
		return nil, nil, err
	}
	return conn.(*net.UnixConn), theirs, nil
}

// readMessage reads one message.
func (f *Forker) readMessage() (what byte, one, two int64, err error) {
	var b [17]byte
	_, err = io.ReadFull(f.control, b[:])
	return b[0], int64(binary.BigEndian.Uint64(b[1:])), int64(binary.BigEndian.Uint64(b[9:])), err
}

// readMessages handles messages until the process is gone.
func (f *Forker) readMessages() {
	for {
		what, one, two, err := f.readMessage()
		if err != nil {
			break
		}
		switch what {
		case 'F':
			f.answerRequest(uint64(one), f.addForked(int(two)), nil)
		case 'E':
			f.answerRequest(uint64(one), nil, syscall.Errno(two))
		case 'X':
			f.recordExit(int(one), syscall.WaitStatus(two))
		}
	}
	f.mu.Lock()
	f.ended = true
	f.mu.Unlock()
	f.process.Kill()
	f.exitText = "it is killed"
	if state, err := f.process.Wait(); err == nil {
		f.exitText = state.String()
	}
	f.control.Close()
	close(f.gone)
}

func (f *Forker) addForked(pid int) *forkedProcess {
	one := &forkedProcess{forker: f, pid: pid, ended: make(chan syscall.WaitStatus, 1)}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.running[pid] = one
	return one
}

func (f *Forker) answerRequest(number uint64, one *forkedProcess, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if asked := f.pending[number]; asked != nil {
		asked <- forkResult{one, err}
		delete(f.pending, number)
	}
}

func (f *Forker) recordExit(pid int, status syscall.WaitStatus) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if one := f.running[pid]; one != nil {
		one.ended <- status
	}
}

// Start forks a process for a command. The Forker ignores the program and arguments of the command
// and uses its own. If NotAsked is false for the error, the fork may have begun; then the new
// process is ended.
func (f *Forker) Start(cmd Command) (*Process, error) {
	return startProcess(cmd, func(p *Process, files []*os.File) error {
		one, err := f.requestFork(cmd, p.family, files)
		if err != nil {
			if isForkerGone(err) && !NotAsked(err) {
				p.family.Kill()
			}
			return err
		}
		p.Pid, p.forked = one.pid, one
		return nil
	})
}

// addRequest registers a request. It returns false if the Forker has ended, because no answer would
// arrive.
func (f *Forker) addRequest(answer chan forkResult) (number uint64, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended {
		return 0, false
	}
	f.number++
	f.pending[f.number] = answer
	return f.number, true
}

// encodeRequest encodes a request to fork.
func encodeRequest(number uint64, cmd Command, family Family) []byte {
	body := binary.BigEndian.AppendUint64(nil, number)
	body = binary.BigEndian.AppendUint64(body, family.Mark())
	return append(body, strings.Join(append([]string{cmd.Dir},
		append(cmd.Env[:len(cmd.Env):len(cmd.Env)], family.Variable())...), "\x00")...)
}

func (f *Forker) requestFork(cmd Command, family Family, files []*os.File) (*forkedProcess, error) {
	asked := make(chan forkResult, 1)
	number, ok := f.addRequest(asked)
	if !ok {
		return nil, &ForkerGone{notAsked: true}
	}
	if err := f.sendRequest('F', encodeRequest(number, cmd, family), files); err != nil {
		f.process.Kill()
		<-f.gone
		return nil, &ForkerGone{How: f.exitText}
	}
	timer := time.NewTimer(forkTimeout)
	defer timer.Stop()
	select {
	case a := <-asked:
		return a.forked, a.err
	case <-timer.C:
		f.process.Kill() // the Forker hangs, and it is unknown which processes were forked
		<-f.gone
	case <-f.gone:
	}
	select {
	case a := <-asked: // the last message of the Forker
		return a.forked, a.err
	default:
		return nil, &ForkerGone{How: f.exitText}
	}
}

// sendRequest sends a request, with the files attached to its first bytes.
func (f *Forker) sendRequest(what byte, body []byte, files []*os.File) error {
	head := binary.BigEndian.AppendUint32([]byte{what}, uint32(len(body)))
	fds := make([]int, len(files))
	for i, file := range files {
		fds[i] = int(file.Fd())
	}
	var rights []byte
	if len(fds) > 0 {
		rights = syscall.UnixRights(fds...)
	}
	f.sending.Lock()
	defer f.sending.Unlock()
	// if this fails, the next write fails too
	_ = f.control.SetWriteDeadline(time.Now().Add(forkTimeout))
	if _, _, err := f.control.WriteMsgUnix(head, rights, nil); err != nil {
		return err
	}
	_, err := f.control.Write(body)
	return err
}

// Running returns the number of forked processes still running; 0 if the Forker has ended.
func (f *Forker) Running() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended {
		return 0
	}
	return len(f.running) + len(f.pending)
}

// Gone returns a channel that is closed when the Forker has ended.
func (f *Forker) Gone() <-chan struct{} { return f.gone }

// Close ends the Forker and all processes it has forked.
func (f *Forker) Close() {
	f.process.Kill()
	f.work.Wait()
	f.process.Close()
}

// reap waits for a process and kills its group while the process id cannot belong to another
// process. Then the Forker may reap the process.
func (one *forkedProcess) reap(p *Process) (State, error) {
	status, err := one.awaitStatus()
	select {
	// the system has reaped the process, or will; another process may get its id
	case <-one.forker.gone:
		p.leaveGroup()
		return status, err
	default:
	}
	p.killBeforeReap()
	one.forker.mu.Lock()
	delete(one.forker.running, one.pid)
	one.forker.mu.Unlock()
	// an error means that the Forker has ended; then there is nothing to release
	_ = one.forker.sendRequest('R', binary.BigEndian.AppendUint64(nil, uint64(one.pid)), nil)
	return status, err
}

// awaitStatus waits for the exit status.
func (one *forkedProcess) awaitStatus() (State, error) {
	select {
	case status := <-one.ended:
		return exitStatus(status), nil
	case <-one.forker.gone:
	}
	select {
	case status := <-one.ended: // the last message of the Forker
		return exitStatus(status), nil
	default:
		return nil, &ForkerGone{How: one.forker.exitText}
	}
}

// leaveGroup prevents further signals to the group. The rest of the family is still ended.
func (p *Process) leaveGroup() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.killed, p.reaped = true, true
}

// exitStatus is an exit status with the wording of package os.
type exitStatus syscall.WaitStatus

// Success reports whether the exit status is 0.
func (e exitStatus) Success() bool { return syscall.WaitStatus(e).ExitStatus() == 0 }

func (e exitStatus) String() string {
	status := syscall.WaitStatus(e)
	text := fmt.Sprintf("exit status %d", status.ExitStatus())
	if status.Signaled() {
		text = "signal: " + status.Signal().String()
	}
	if status.CoreDump() {
		text += " (core dumped)"
	}
	return text
}

// outputTail is the end of a program's output.
type outputTail struct {
	mu sync.Mutex
	b  []byte
}

const tailBytes = 2 << 10

func (t *outputTail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, b...)
	t.b = t.b[max(len(t.b)-tailBytes, 0):]
	return len(b), nil
}

func (t *outputTail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(bytes.TrimSpace(t.b))
}
