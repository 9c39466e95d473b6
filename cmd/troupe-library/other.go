//go:build !linux && !darwin

package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "troupe-library: there is none for this system: install Python 3, which loads libraries everywhere")
	os.Exit(1)
}
