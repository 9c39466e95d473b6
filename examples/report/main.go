// Command report writes a nightly report over 10,000 shops as a durable function. Killed and
// started again, it asks only the shops whose sales it has not recorded.
package main

import (
	"context"
	"fmt"
	"log"
	"slices"
	"time"

	"github.com/troupe-engine/troupe"
	"github.com/troupe-engine/troupe/durable"
)

// Night is the input of the flow.
type Night struct {
	Date  string `json:"date"`
	Shops int    `json:"shops"`
}

func writeReport(f *durable.Flow, n Night) (string, error) {
	shops := make([]int, n.Shops)
	for i := range shops {
		shops[i] = i + 1
	}
	sales, err := durable.Each(f, "shop", shops, 50, func(f *durable.Flow, shop int) (int, error) {
		return durable.Do(f, "count", func(context.Context) (int, error) { return shop % 7, nil }, // it asks the shop
			durable.Retry(3, 100*time.Millisecond), durable.Timeout(10*time.Second))
	})
	if err != nil {
		return "", err
	}
	report := fmt.Sprintf("%s: %d shops, at most %d pieces sold", n.Date, len(sales), slices.Max(sales))
	return report, f.Do("send", func(context.Context) error { fmt.Println("sent:", report); return nil })
}

func runReport(ctx context.Context, store string, n Night) error {
	engine, err := troupe.Open(ctx, troupe.Config{Store: store})
	if err != nil {
		return err
	}
	defer engine.Close()
	troupe.HandleFlow(engine, "report", writeReport)
	id, err := engine.Start(ctx, "report", n, troupe.WithKey(n.Date)) // a repeated start gets the same task
	if err != nil {
		return err
	}
	result, err := engine.Wait(ctx, id)
	if err == nil {
		fmt.Println("the task has", result.Status)
	}
	return err
}

func main() {
	if err := runReport(context.Background(), "sqlite:report.db", Night{"2026-01-31", 10_000}); err != nil {
		log.Fatal(err)
	}
}
