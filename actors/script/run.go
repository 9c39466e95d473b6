package script

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/troupe-engine/troupe/internal/child"
)

type runOutcome struct {
	timedOut bool
	cut      bool // the output was longer than what is kept
}

// runCommand starts a command once and returns when it and its process group have ended. What they
// print is appended to out, or, where they are told apart, what they print to stdout.
func (c *Carrier) runCommand(ctx context.Context, cmd *scriptCommand, out *outputBuffer) (runOutcome, error) {
	if err := ctx.Err(); err != nil {
		return runOutcome{}, context.Cause(ctx)
	}
	var p *child.Process
	err := c.patience.Do(ctx, func() (err error) {
		p, err = child.Start(cmd.Command)
		return err
	})
	if err != nil {
		return runOutcome{}, err
	}
	defer p.Close()
	ctx, cancel := context.WithTimeoutCause(ctx, cmd.timeout, errTimeout)
	defer cancel()
	defer context.AfterFunc(ctx, p.Kill)()
	ended := make(chan error, 1)
	go func() { ended <- waitProcess(p) }()
	var complaining sync.WaitGroup
	if p.Stderr != nil {
		complaining.Go(func() { _, _ = io.Copy(&cmd.stderr, struct{ io.Reader }{p.Stderr}) }) // its own Read ends with the program
	}
	cut := out.readFrom(p.Stdout, c.opts.MaxOutput)
	complaining.Wait()
	err = <-ended
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if errors.Is(err, errTimeout) {
		return runOutcome{timedOut: true, cut: cut}, fmt.Errorf("%w after %s", err, cmd.timeout)
	}
	return runOutcome{cut: cut}, err
}

// waitProcess says what went wrong, if anything did.
func waitProcess(p *child.Process) error {
	state, err := p.Wait()
	if err != nil {
		return err
	}
	if !state.Success() {
		return errors.New(state.String())
	}
	return nil
}

var errTimeout = errors.New("timeout")

// readFrom keeps up to max bytes of what a script prints and reads on to its end, so that it is
// never held up. It says whether anything was left out.
func (b *outputBuffer) readFrom(r io.Reader, max int) (cut bool) {
	var scratch []byte
	for kept := 0; ; {
		space := b.freeSpace(min(max-kept, readSize))
		if kept >= max {
			if scratch == nil {
				scratch = make([]byte, readSize)
			}
			space = scratch
		}
		n, err := r.Read(space)
		_, _ = b.copyTo.Write(space[:n]) // a log takes everything
		if kept < max {
			b.extendBy(n)
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
