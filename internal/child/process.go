package child

import (
	"errors"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"
)

// Command describes a program to be started.
type Command struct {
	Path  string
	Argv  []string // program name and arguments
	Dir   string   // "" means the working directory of this process
	Env   []string
	Stdin []byte // nil means empty input
	Split bool   // whether standard error has a pipe of its own
	// Memory limits the private memory of each process in bytes; 0 means no limit. Only Linux
	// enforces it.
	Memory int64

	control *os.File // used as standard input instead of Stdin
}

// State describes how a process has ended.
type State interface {
	Success() bool
	String() string
}

// Process is a started program, the leader of a process group of its own.
type Process struct {
	Pid int
	sysProcess
	Stdout *Output
	Stderr *Output // nil if standard error is merged into Stdout
	in     *os.File
	feeder sync.WaitGroup // waits for the goroutine that writes the input
	family Family

	own    *os.Process // nil if a Forker has forked the process
	forked *forkedProcess

	mu     sync.Mutex
	killed bool
	reaped bool // whether the process was reaped, so that another process may have its id
}

// drainTime is how long a silent pipe is read after its program has ended and its process group is
// dead. Then only a descendant outside the group could still hold the pipe.
const drainTime = 200 * time.Millisecond

// Output is the output of a program.
type Output struct{ *os.File }

// Read returns io.EOF when no process can write any longer. After the program has ended, it returns
// os.ErrDeadlineExceeded when drainTime has passed and no output arrives within drainTime/10. All
// earlier output is returned first, even if the reader is slow.
func (o *Output) Read(b []byte) (int, error) {
	n, err := o.File.Read(b)
	if n == 0 && errors.Is(err, os.ErrDeadlineExceeded) {
		_ = o.SetReadDeadline(time.Now().Add(drainTime / 10))
		n, err = o.File.Read(b)
	}
	return n, err
}

// Start starts a program. The caller has to read all its output, then wait, then close.
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

// startProcess calls start with pipes for the files 0, 1 and 2 of the program.
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
		p.feeder.Go(func() { // the program may ignore its input
			_, _ = p.in.Write(cmd.Stdin)
			p.in.Close()
		})
	}
	return p, nil
}

// processPipes are the pipes opened for a program. This process closes the program's ends after the
// start.
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

// Close closes this process's ends of the pipes. It does not end the program.
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

// Wait returns the exit state when the process has ended and its group was killed. The rest of its
// family ends soon, or at once if Kill or Ask was called.
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

// Kill kills the whole group, unless the process was reaped: then the group no longer exists, or
// its id belongs to another group.
func (p *Process) Kill() { p.endGroup(p.killGroup) }

// Ask sends a termination signal to the whole group. On systems without such a signal it kills the
// group.
func (p *Process) Ask() { p.endGroup(p.terminateGroup) }

func (p *Process) endGroup(how func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.reaped {
		p.killed = true
		how()
	}
}

// killBeforeReap kills the rest of the group before the process is reaped.
func (p *Process) killBeforeReap() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.killGroup()
	p.reaped = true
}
