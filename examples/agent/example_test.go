package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

func Example() {
	dir, err := os.MkdirTemp("", "agent-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	if err := runAgent(context.Background(), "sqlite:"+filepath.Join(dir, "agent.db")); err != nil {
		fmt.Println(err)
	}
	// Output:
	// find ada's order
	// refund order 7
	// completed "it is on its way"
}
