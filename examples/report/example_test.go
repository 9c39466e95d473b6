package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

func Example() {
	dir, err := os.MkdirTemp("", "report-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	for range 2 { // the second start repeats the first one
		if err := runReport(context.Background(), "sqlite:"+filepath.Join(dir, "report.db"), Night{"2026-01-31", 10_000}); err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// sent: 2026-01-31: 10000 shops, at most 6 pieces sold
	// the task has completed
	// the task has completed
}
