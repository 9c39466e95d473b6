//go:build !windows

package sqlite

import (
	"fmt"
	"os"
	"syscall"
)

// checkNames refuses a file with several names, because its log, which is part of the data, is
// named after only one of them.
func checkNames(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return nil // opening creates it or fails next
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && stat.Nlink > 1 {
		return fmt.Errorf("%s has %d names (hard links), and its log only one of them: remove "+
			"the others, or copy the file", path, stat.Nlink)
	}
	return nil
}
