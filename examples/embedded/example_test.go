package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// The second run finds the task of the first one.
func Example() {
	dir, err := os.MkdirTemp("", "embedded-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	for range 2 {
		if err := runExample(context.Background(), "sqlite:"+filepath.Join(dir, "party.db")); err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// completed: "3 letters: Dear Ada, Dear Grace, Dear Edsger"
	// completed: "3 letters: Dear Ada, Dear Grace, Dear Edsger"
}
