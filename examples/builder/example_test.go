package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

func Example() {
	dir, err := os.MkdirTemp("", "builder-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	if err := runExample(context.Background(), "sqlite:"+filepath.Join(dir, "builder.db")); err != nil {
		fmt.Println(err)
	}
	// Output:
	// parcels completed: "box with a lamp, box with a vase, insured"
	// parcels completed: "box with a book"
	// booking completed: {"by":"the site"}
	// canceled what was booked by an agent
	// booking failed: pay: the card was declined
}
