//go:build !windows

package sqlite

import (
	"fmt"
	"os"
	"syscall"
)

// checkNames refuses a file of several names: the log beside it, which belongs to the data, has
// only one of them.
func checkNames(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return nil // it is made, or cannot be opened, in a moment
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && stat.Nlink > 1 {
		return fmt.Errorf("%s has %d names (hard links), and its log only one of them: remove the others, or copy the file", path, stat.Nlink)
	}
	return nil
}
