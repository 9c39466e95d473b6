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
	// {"Tool":"find","Text":"ada's order"}
	// {"Tool":"refund","Text":"order 7"}
	// {"Tool":"say","Text":"it is"}
	// {"Tool":"say","Text":"on its way"}
}
