package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

func Example() {
	dir, err := os.MkdirTemp("", "trip-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	for _, t := range []tripRequest{{"Rome", 120}, {"Paris", 90}} {
		if err := runTrip(context.Background(), "sqlite:"+filepath.Join(dir, "trip.db"), t); err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// completed: "flight to Rome, hotel in Rome"
	// canceled flight to Paris
	// failed: main: step book hotel: no room at that price
}
