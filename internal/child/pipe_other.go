//go:build !linux

package child

import "os"

// pipe is one of which the end with this index is for a program.
func pipe(int) (r, w *os.File, err error) { return os.Pipe() }
