package program

import (
	"cmp"
	"encoding/json"
	"errors"
	"io"

	"github.com/troupe-engine/troupe/flow"
)

// Listener hears what a program says that somebody else starts, and tells what has become of it.
type Listener struct{ parser *outputParser }

// Listen listens to one whose output has so many bytes at most; 0 = 1 MiB. What of its words is the
// output, the program's OutputMode and LooseMarks say.
func Listen(most int, of *flow.Program) *Listener {
	return &Listener{newOutputParser(cmp.Or(most, defaultMaxOutput), of)}
}

// Stdout returns the writer for the standard output of the program.
func (l *Listener) Stdout() io.Writer { return l.parser.stdoutWriter() }

// Stderr returns the writer for the standard error of the program.
func (l *Listener) Stderr() io.Writer { return l.parser.stderrWriter() }

// Marked reports whether it has marked something as its output.
func (l *Listener) Marked() bool { return l.parser.marked }

// Result is what has become of it when it has ended: how = "" means well. It is asked for once.
func (l *Listener) Result(how string) Result {
	if how != "" {
		return l.parser.finishResult(exitError(how))
	}
	return l.parser.finishResult(nil)
}

// Input is what a program gets, in one line.
func Input(input json.RawMessage) []byte { return inputLine(input) }

// ErrTooLarge is what fails an output of more than so many bytes.
func ErrTooLarge(most int) error { return errors.New(tooLarge(cmp.Or(most, defaultMaxOutput))) }
