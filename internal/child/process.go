package child

import (
	"errors"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"
)

// Command is a program to be started.
type Command struct {
	Path  string
	Argv  []string // the program's name, and its arguments
	Dir   string   // "" = ours
	Env   []string
	Stdin []byte // nil = nothing to read
	Split bool   // what it says of errors has a pipe of its own
	// Memory is how many bytes each of its processes may have of its own; 0 = as many as there are.
	// Only Linux holds it to that.
	Memory int64

	control *os.File // is its standard input instead
}

// State is how a process has ended.
type State interface {
	Success() bool
	String() string
}

// Process is a program that was started, leader of a process group of its own.
type Process struct {
	Pid int
	sysProcess
	Stdout *Output
	Stderr *Output // nil = it is in Stdout
	in     *os.File
	feeder sync.WaitGroup // writes the input
	family Family

	own    *os.Process // nil = somebody else has forked it
	forked *forkedProcess

	mu     sync.Mutex
	killed bool
	reaped bool // its id may belong to somebody else
}

// drainTime is how long a pipe is read on after its program has ended and its process group is
// dead, when nothing comes. Only a descendant that left the group, and that nobody has ended yet,
// could still hold the pipe then.
const drainTime = 200 * time.Millisecond

// Output is what a program prints.
type Output struct{ *os.File }

// Read ends when nobody can print any more, or when the program has ended and nothing came for a
// moment: what it had printed is there, however late we come to read it.
func (o *Output) Read(b []byte) (int, error) {
	n, err := o.File.Read(b)
	if n == 0 && errors.Is(err, os.ErrDeadlineExceeded) {
		_ = o.SetReadDeadline(time.Now().Add(drainTime / 10))
		n, err = o.File.Read(b)
	}
	return n, err
}

// Start starts a program. Whoever does reads all that it prints, waits, and closes.
func Start(cmd Command) (*Process, error) {
	return startProcess(cmd, func(p *Process, files []*os.File) (err error) {
		p.own, err = os.StartProcess(cmd.Path, cmd.Argv, &os.ProcAttr{
			Dir: cmd.Dir, Env: append(slices.Clip(cmd.Env), p.family.Variable()), Files: files, Sys: p.procAttr()})
		if errors.Is(err, syscall.E2BIG) {
			return tooLong(&cmd)
		}
		if err == nil {
			p.Pid = p.own.Pid
			p.family.Adopt(p.Pid)
			p.lowerPriority()
		}
		return err
	})
}

// startProcess has a program begin with pipes to us, which are its files 0, 1 and 2.
func startProcess(cmd Command, start func(p *Process, files []*os.File) error) (*Process, error) {
	var files processPipes
	defer files.closeTheirs()
	p := &Process{}
	in := cmd.control
	if in == nil {
		in = files.openInput(&p.in, cmd.Stdin != nil)
	}
	stdout := files.openOutput(&p.Stdout)
	stderr := stdout
	if cmd.Split {
		stderr = files.openOutput(&p.Stderr)
	}
	if files.err != nil {
		p.Close()
		return nil, files.err
	}
	p.family = New()
	if err := start(p, []*os.File{in, stdout, stderr}); err != nil {
		p.family.Leave()
		p.Close()
		return nil, err
	}
	if cmd.Memory > 0 {
		limitMemory(p.Pid, uint64(cmd.Memory))
	}
	if p.in != nil {
		p.feeder.Go(func() { // a program need not read what it is given
			_, _ = p.in.Write(cmd.Stdin)
			p.in.Close()
		})
	}
	return p, nil
}

// processPipes are opened for a program. Its own ends of them are closed here once it has them.
type processPipes struct {
	theirs []*os.File
	err    error
}

func (p *processPipes) openInput(ours **os.File, any bool) *os.File {
	if !any {
		return p.addTheirs(os.Open(os.DevNull))
	}
	in, feed, err := newPipe(0)
	*ours = feed
	return p.addTheirs(in, err)
}

func (p *processPipes) openOutput(ours **Output) *os.File {
	r, w, err := newPipe(1)
	if err == nil {
		*ours = &Output{r}
	}
	return p.addTheirs(w, err)
}

func (p *processPipes) addTheirs(f *os.File, err error) *os.File {
	if err == nil {
		p.theirs = append(p.theirs, f)
	} else if p.err == nil {
		p.err = err
	}
	return f
}

func (p *processPipes) closeTheirs() {
	for _, f := range p.theirs {
		f.Close()
	}
}

// Close closes what we have open of the program. It is not ended by that.
func (p *Process) Close() {
	for _, o := range []*Output{p.Stdout, p.Stderr} {
		if o != nil {
			o.Close()
		}
	}
	if p.in != nil {
		p.in.Close()
	}
	p.feeder.Wait()
}

// Wait returns when the process has ended and its group was killed, and how it ended. What is left
// of its family ends soon, or at once if the process was told to end.
func (p *Process) Wait() (State, error) {
	state, err := p.awaitExit()
	if p.killed {
		p.family.Kill()
	} else {
		p.family.Leave()
	}
	for _, o := range []*Output{p.Stdout, p.Stderr} {
		if o != nil {
			_ = o.SetReadDeadline(time.Now().Add(drainTime))
		}
	}
	if p.in != nil {
		p.in.Close()
	}
	return state, err
}

func (p *Process) awaitExit() (State, error) {
	if p.forked != nil {
		return p.forked.reap(p)
	}
	return p.reap()
}

// Kill ends the whole group, unless the process was reaped: then there is no such group any more,
// or it is somebody else's.
func (p *Process) Kill() { p.endGroup(p.killGroup) }

// Ask tells the whole group to end, as far as the system knows a way to do so; elsewhere it is
// killed.
func (p *Process) Ask() { p.endGroup(p.terminateGroup) }

func (p *Process) endGroup(how func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.reaped {
		p.killed = true
		how()
	}
}

// killBeforeReap kills what is left of the group before the process is reaped.
func (p *Process) killBeforeReap() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.killGroup()
	p.reaped = true
}
