// Command checkout is a flow that is a function: killed and started again, it goes on where it was.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/troupe-engine/troupe"
	"github.com/troupe-engine/troupe/durable"
)

// Order is the input of the flow.
type Order struct {
	Item   string `json:"item"`
	Amount int    `json:"amount"`
}

func checkOut(f *durable.Flow, o Order) (string, error) {
	place, err := durable.Do(f, "reserve", func(context.Context) (string, error) { return "shelf 7", nil })
	if err != nil {
		return "", err
	}
	f.Undo("release", func(context.Context) error { fmt.Println("released", place); return nil })
	if err := f.Do("charge", func(context.Context) error { // troupe.JobFrom(ctx).Key() is the same in every try
		if o.Amount <= 100 {
			return nil
		}
		return troupe.Fatal(errors.New("no money"))
	}, durable.Retry(3, 50*time.Millisecond)); err != nil {
		return "", err
	}
	return durable.Do(f, "ship", func(context.Context) (string, error) { return o.Item + " from " + place, nil })
}

func runCheckout(ctx context.Context, store string, o Order) error {
	engine, err := troupe.Open(ctx, troupe.Config{Store: store})
	if err != nil {
		return err
	}
	defer engine.Close()
	troupe.HandleFlow(engine, "checkout", checkOut)
	id, err := engine.Start(ctx, "checkout", o)
	if err != nil {
		return err
	}
	result, err := engine.Wait(ctx, id)
	if err == nil {
		fmt.Printf("%s: %s%s\n", result.Status, result.Value, result.Error)
	}
	return err
}

func main() {
	if err := runCheckout(context.Background(), "sqlite:checkout.db", Order{"book", 12}); err != nil {
		log.Fatal(err)
	}
}
