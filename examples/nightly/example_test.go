package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// The second run finds the reports of the first one.
func Example() {
	dir, err := os.MkdirTemp("", "nightly-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	for range 2 {
		if err := runExample(context.Background(), "sqlite:"+filepath.Join(dir, "reports.db")); err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// fires at 2026-03-28T02:30:00+01:00
	// fires at 2026-03-29T03:00:00+02:00
	//   because in Europe/Berlin the clock is put forward: 2026-03-29 02:30 does not exist, and fires at 2026-03-29 03:00
	// 2026-01-01, begun just now: true, completed: "sent: all that was sold in Berlin"
	// 2026-01-02, begun just now: true, completed: "sent: all that was sold in Berlin"
	// 2026-01-03, begun just now: true, completed: "sent: all that was sold in Berlin"
	// fires at 2026-03-28T02:30:00+01:00
	// fires at 2026-03-29T03:00:00+02:00
	//   because in Europe/Berlin the clock is put forward: 2026-03-29 02:30 does not exist, and fires at 2026-03-29 03:00
	// 2026-01-01, begun just now: false, completed: "sent: all that was sold in Berlin"
	// 2026-01-02, begun just now: false, completed: "sent: all that was sold in Berlin"
	// 2026-01-03, begun just now: false, completed: "sent: all that was sold in Berlin"
}
