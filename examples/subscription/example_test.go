package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

func Example() {
	dir, err := os.MkdirTemp("", "subscription-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	s := Subscription{Customer: "ada", Month: 1, Last: 3, Length: 10 * time.Millisecond}
	if err := runSubscription(context.Background(), "sqlite:"+filepath.Join(dir, "subscription.db"), s); err != nil {
		fmt.Println(err)
	}
	// Output:
	// billed ada for month 1
	// billed ada for month 2
	// billed ada for month 3
	// completed: "ada has paid 3 months"
}
