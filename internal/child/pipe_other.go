//go:build !linux

package child

import "os"

// newPipe is one of which the end with this index is for a program.
func newPipe(int) (r, w *os.File, err error) { return os.Pipe() }
