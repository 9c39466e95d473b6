package script

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/troupe-engine/troupe/internal/child"
)

// drainTime is how long a pipe is read on after its script has ended and its process group is dead.
// Only a descendant that left the group, and that nobody has ended yet, could still hold the pipe then.
const drainTime = 200 * time.Millisecond

type outcome struct {
	timedOut bool
	cut      bool // the output was longer than what is kept
}

// run starts a command once and returns when it and its process group have ended. What they print
// is appended to out.
func (c *Carrier) run(ctx context.Context, cmd *command, out *buffer) (outcome, error) {
	if err := ctx.Err(); err != nil {
		return outcome{}, context.Cause(ctx)
	}
	var p *process
	err := c.patiently(ctx, func() (err error) {
		p, err = start(cmd)
		return err
	})
	if err != nil {
		return outcome{}, err
	}
	defer p.out.Close()
	ctx, cancel := context.WithTimeoutCause(ctx, cmd.timeout, errTimeout)
	defer cancel()
	defer context.AfterFunc(ctx, p.kill)()
	ended := make(chan error, 1)
	go func() { ended <- p.wait() }()
	cut := out.readFrom(p.out, c.opts.MaxOutput)
	err = <-ended
	p.feeder.Wait()
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if errors.Is(err, errTimeout) {
		return outcome{timedOut: true, cut: cut}, fmt.Errorf("%w after %s", err, cmd.timeout)
	}
	return outcome{cut: cut}, err
}

var errTimeout = errors.New("timeout")

// process is a script that was started, leader of a process group of its own.
type process struct {
	*os.Process
	sysProcess
	out    *os.File       // the reading end of its output
	in     *os.File       // the writing end of its input; nil = none
	feeder sync.WaitGroup // writes the input
	family child.Family

	mu     sync.Mutex
	killed bool
	reaped bool // its id may belong to somebody else
}

func start(cmd *command) (*process, error) {
	in, feed, err := input(cmd.stdin)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	out, printed, err := os.Pipe()
	if err != nil {
		closeFile(feed)
		return nil, err
	}
	defer printed.Close()
	p := &process{out: out, in: feed, family: child.New()}
	p.Process, err = os.StartProcess(cmd.path, cmd.argv, &os.ProcAttr{
		Dir: cmd.dir, Env: append(slices.Clip(cmd.env), p.family.Variable()), Files: []*os.File{in, printed, printed}, Sys: p.attr()})
	if err != nil {
		p.family.Leave()
		out.Close()
		closeFile(feed)
		return nil, err
	}
	p.family.Adopt(p.Pid)
	if feed != nil {
		p.feeder.Go(func() { // a script need not read what it is given
			_, _ = feed.Write(cmd.stdin)
			feed.Close()
		})
	}
	return p, nil
}

// input is what a script reads from, and where to write that.
func input(stdin []byte) (in, feed *os.File, err error) {
	if stdin == nil {
		in, err = os.Open(os.DevNull)
		return in, nil, err
	}
	return os.Pipe()
}

func closeFile(f *os.File) {
	if f != nil {
		f.Close()
	}
}

// wait returns when the process has ended and its group was killed, and how it ended.
func (p *process) wait() error {
	state, err := p.reap()
	if p.killed {
		p.family.Kill()
	} else {
		p.family.Leave()
	}
	_ = p.out.SetReadDeadline(time.Now().Add(drainTime))
	if p.in != nil {
		p.in.Close()
	}
	if err != nil {
		return err
	}
	if !state.Success() {
		return errors.New(state.String())
	}
	return nil
}

// kill ends the whole group, unless the process was reaped: then there is no such group any more, or
// it is somebody else's.
func (p *process) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.reaped {
		p.killed = true
		p.killGroup()
	}
}

// killLast kills what is left of the group before the process is reaped.
func (p *process) killLast() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.killGroup()
	p.reaped = true
}

// readFrom keeps up to max bytes of what a script prints and reads on to its end, so that it is
// never held up. It says whether anything was left out.
func (b *buffer) readFrom(r io.Reader, max int) (cut bool) {
	var scratch []byte
	for kept := 0; ; {
		space := b.free(min(max-kept, readSize))
		if kept >= max {
			if scratch == nil {
				scratch = make([]byte, readSize)
			}
			space = scratch
		}
		n, err := r.Read(space)
		_, _ = b.also.Write(space[:n]) // a log takes everything
		if kept < max {
			b.grow(n)
			kept += n
		} else if n > 0 {
			cut = true
			b.tail = append(b.tail[:0], space[:n]...)
		}
		if err != nil { // the end, or the drain time is over
			return cut
		}
	}
}
