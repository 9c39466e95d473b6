package faults

import (
	"fmt"
	"os"
	"time"
)

// clock is the time format of the log.
const clock = "15:04:05.000"

// chronicle is the log of faults.
type chronicle struct{ file *os.File }

func newChronicle(path string) (*chronicle, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	return &chronicle{file}, err
}

// write adds a line. It is safe for concurrent use.
func (c *chronicle) write(format string, args ...any) {
	fmt.Fprintf(c.file, "%s %s\n", time.Now().Format(clock), fmt.Sprintf(format, args...))
}
