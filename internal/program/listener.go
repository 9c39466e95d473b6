package program

import (
	"cmp"
	"encoding/json"
	"errors"
	"io"

	"github.com/troupe-engine/troupe/flow"
)

// Listener reads the output of a program that another system started, and returns its result.
type Listener struct{ parser *outputParser }

// Listen returns a Listener that accepts an output of at most most bytes; 0 means 1 MiB. The
// program's OutputMode and LooseMarks determine which part of the text is the output.
func Listen(most int, of *flow.Program) *Listener {
	return &Listener{newOutputParser(cmp.Or(most, defaultMaxOutput), of)}
}

// Stdout returns the writer for the standard output of the program.
func (l *Listener) Stdout() io.Writer { return l.parser.stdoutWriter() }

// Stderr returns the writer for the standard error of the program.
func (l *Listener) Stderr() io.Writer { return l.parser.stderrWriter() }

// Marked reports whether the program has marked an output.
func (l *Listener) Marked() bool { return l.parser.marked }

// Result returns the result of a program that has ended; how is the error, or "" for success. It
// may be called only once.
func (l *Listener) Result(how string) Result {
	if how != "" {
		return l.parser.finishResult(exitError(how))
	}
	return l.parser.finishResult(nil)
}

// Input returns a program's input as one line.
func Input(input json.RawMessage) []byte { return inputLine(input) }

// ErrTooLarge returns the error for an output larger than most bytes.
func ErrTooLarge(most int) error { return errors.New(tooLarge(cmp.Or(most, defaultMaxOutput))) }
