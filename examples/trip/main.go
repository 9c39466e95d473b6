// Command trip books at two services. If the second one refuses, the first booking is undone.
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

type tripRequest struct {
	City  string
	Price int
}

func bookTrip(f *durable.Flow, t tripRequest) (string, error) {
	flight, err := durable.Do(f, "book flight", func(context.Context) (string, error) { return "flight to " + t.City, nil })
	if err != nil {
		return "", err
	}
	f.Undo("cancel flight", func(context.Context) error { fmt.Println("canceled", flight); return nil })
	hotel, err := durable.Do(f, "book hotel", func(context.Context) (string, error) {
		if t.Price < 100 {
			return "", troupe.Fatal(errors.New("no room at that price"))
		}
		return "hotel in " + t.City, nil // a real call sends troupe.JobFrom(ctx).Key(), the same in every try
	}, durable.Retry(3, time.Second), durable.Timeout(10*time.Second))
	return flight + ", " + hotel, err
}

func runTrip(ctx context.Context, store string, t tripRequest) error {
	engine, err := troupe.Open(ctx, troupe.Config{Store: store})
	if err != nil {
		return err
	}
	defer engine.Close()
	troupe.HandleFlow(engine, "trip", bookTrip)
	id, err := engine.Start(ctx, "trip", t)
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
	if err := runTrip(context.Background(), "sqlite:trip.db", tripRequest{"Rome", 90}); err != nil {
		log.Fatal(err)
	}
}
