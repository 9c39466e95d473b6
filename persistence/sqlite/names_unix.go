//go:build !windows

package sqlite

import (
	"fmt"
	"os"
	"syscall"
)

// checkNames refuses a file with several hard links, because the name of its log depends on the
// name of the file.
func checkNames(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return nil // opening creates the file, or fails next
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && stat.Nlink > 1 {
		return fmt.Errorf("%s has %d names (hard links), and its log only one of them: remove "+
			"the others, or copy the file", path, stat.Nlink)
	}
	return nil
}
