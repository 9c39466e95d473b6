package scripts

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
	cut      bool // output beyond the limit was dropped
}

// runCommand runs a command once and returns when its process group has ended. It appends the
// output to out. If stderr is separate, only stdout is appended.
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
		// Read ends with the program
		complaining.Go(func() { _, _ = io.Copy(&cmd.stderr, struct{ io.Reader }{p.Stderr}) })
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

// waitProcess waits for a process, and returns an error if it failed.
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

// readFrom keeps up to max bytes of a script's output. It also reads the rest, so that the script
// never blocks. It reports whether output was dropped.
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
		_, _ = b.copyTo.Write(space[:n]) // a log accepts all output
		if kept < max {
			b.extendBy(n)
			kept += n
		} else if n > 0 {
			cut = true
			b.tail = append(b.tail[:0], space[:n]...)
		}
		if err != nil { // the output ended, or the time to drain it
			return cut
		}
	}
}
