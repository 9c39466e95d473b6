// Command subscription bills a customer each month, for years, as a durable function. Each month
// begins it anew, so its memory and its replays stay small.
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

// Subscription is the input of the flow.
type Subscription struct {
	Customer string        `json:"customer"`
	Month    int           `json:"month"`
	Last     int           `json:"last"`   // number of the last month; 0 if it has none
	Length   time.Duration `json:"length"` // of a month
}

func billMonth(f *durable.Flow, s Subscription) (string, error) {
	send := func(context.Context) error { fmt.Println("billed", s.Customer, "for month", s.Month); return nil }
	if err := f.Do("bill", send, durable.Retry(10, time.Minute)); err != nil {
		return "", err
	}
	_, err := durable.Signal[string](f, "end", durable.Within(s.Length)) // it waits for a month
	if !errors.Is(err, durable.ErrTimeout) || s.Month == s.Last {
		return fmt.Sprintf("%s has paid %d months", s.Customer, s.Month), nil
	}
	s.Month++
	return "", f.Restart(s)
}

func runSubscription(ctx context.Context, store string, s Subscription) error {
	engine, err := troupe.Open(ctx, troupe.Config{Store: store})
	if err != nil {
		return err
	}
	defer engine.Close()
	troupe.HandleFlow(engine, "subscription", billMonth)
	id, err := engine.Start(ctx, "subscription", s, troupe.WithKey(s.Customer))
	if err != nil {
		return err
	}
	result, err := engine.Wait(ctx, id)
	if err == nil {
		fmt.Printf("%s: %s\n", result.Status, result.Value)
	}
	return err
}

func main() {
	if err := runSubscription(context.Background(), "sqlite:subscription.db", Subscription{"ada", 1, 3, time.Second}); err != nil {
		log.Fatal(err)
	}
}
