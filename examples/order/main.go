// Command order reserves the ordered goods, waits for an approval, charges with retries, and ships.
// After a restart it continues where it was.
package main

import (
	"context"
	"fmt"
	"time"

	"github.com/troupe-engine/troupe"
	"github.com/troupe-engine/troupe/definition/define"
)

type order struct{ ID, Card string }

func reserve(_ context.Context, o order) (string, error) { return "parcel " + o.ID, nil }

func charge(ctx context.Context, o order) (string, error) {
	if o.Card == "" {
		return "", fmt.Errorf("there is no card to charge for order %s", o.ID) // is retried
	}
	return "charged under " + troupe.JobFrom(ctx).Key(), nil // same key for all attempts
}

func ship(_ context.Context, parcel string) (string, error) { return parcel + " is on its way", nil }

func run(ctx context.Context, store string, o order) error {
	engine, err := troupe.Open(ctx, troupe.Config{Store: store})
	if err != nil {
		return err
	}
	defer engine.Close()
	troupe.Handle(engine, "reserve", reserve)
	troupe.Handle(engine, "charge", charge)
	troupe.Handle(engine, "ship", ship)

	b := define.NewGraph("order").Result("sent")
	reserved := b.Node("reserve").Func("reserve")
	approved := b.Approval("approve", define.Shared("approved"))
	charged := b.Node("charge").Func("charge").Retry(4, 10*time.Millisecond)
	shipped := b.Node("ship").Func("ship").From(reserved.Output()).To("sent")
	reserved.Then(approved).On("approved", charged)
	charged.Then(shipped)
	if err := engine.PublishFlow(ctx, b); err != nil {
		return err
	}
	id, err := engine.Start(ctx, "order", o, troupe.WithKey(o.ID))
	if err != nil {
		return err
	}
	if err := engine.Signal(ctx, id, "approved", true); err != nil { // or: troupe task signal ID approved true
		return err
	}
	result, err := engine.Wait(ctx, id)
	if err == nil {
		fmt.Println(result.Status, result.Error, string(result.Value))
	}
	return err
}

func main() {
	if err := run(context.Background(), "sqlite:orders.db", order{"7", "4242"}); err != nil {
		fmt.Println(err)
	}
}
