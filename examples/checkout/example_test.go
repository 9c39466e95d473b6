package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

func Example() {
	dir, err := os.MkdirTemp("", "checkout-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	for _, o := range []Order{{"book", 12}, {"piano", 9000}} {
		if err := runCheckout(context.Background(), "sqlite:"+filepath.Join(dir, "checkout.db"), o); err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// completed: "book from shelf 7"
	// released shelf 7
	// failed: main: step charge: no money
}
