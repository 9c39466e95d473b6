// Command builder is a program with a workflow engine inside whose flows are built in Go, one of each mode:
// nodes are variables, so that none can be misspelled; everything else is checked when a flow is published.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"

	"github.com/troupe-engine/troupe"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, "sqlite:builder.db"); err != nil {
		fmt.Fprintln(os.Stderr, "builder:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, store string) (err error) {
	engine, err := troupe.Open(ctx, troupe.Config{Store: store})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	handle(engine)
	return errors.Join(
		engine.PublishFlow(ctx, parcels()), // tells every mistake in it at once
		show(ctx, engine, "parcels", map[string]any{"items": []string{"lamp", "vase"}, "value": 250}),
		show(ctx, engine, "parcels", map[string]any{"items": []string{"book"}, "value": 12}),
		engine.PublishFlow(ctx, booking()),
		show(ctx, engine, "booking", map[string]any{"people": 2}),
		show(ctx, engine, "booking", map[string]any{"people": 20}),
	)
}

// show runs a task and says how it ended.
func show(ctx context.Context, engine *troupe.Engine, slug string, input any) error {
	id, err := engine.Start(ctx, slug, input)
	if err != nil {
		return err
	}
	result, err := engine.Wait(ctx, id)
	if err != nil {
		return err
	}
	if result.Error != "" {
		fmt.Printf("%s %s: %s\n", slug, result.Status, result.Error)
		return nil
	}
	fmt.Printf("%s %s: %s\n", slug, result.Status, result.Value)
	return nil
}

// handle registers the functions that nodes name. What they take is the input of their node, or its params where it has none.
func handle(engine *troupe.Engine) {
	troupe.Handle(engine, "pack", func(_ context.Context, item string) (string, error) { return "box with a " + item, nil })
	troupe.Handle(engine, "insure", func(context.Context, any) (string, error) { return "insured", nil })
	troupe.Handle(engine, "ship", ship)
	troupe.Handle(engine, "book", func(_ context.Context, in booked) (booked, error) { return in, nil })
	troupe.Handle(engine, "pay", func(_ context.Context, people int) (string, error) {
		if people > 10 {
			return "", errors.New("the card was declined")
		}
		return "paid", nil
	})
	troupe.Handle(engine, "cancel", func(_ context.Context, in booked) (any, error) {
		fmt.Println("canceled what was booked by", in.By)
		return nil, nil
	})
}

type booked struct {
	By string `json:"by"`
}

type packed struct {
	Pack   []string
	Insure string
}

type parcel struct {
	Label string `json:"label"`
}

func ship(_ context.Context, in packed) (parcel, error) {
	label := strings.Join(in.Pack, ", ")
	if in.Insure != "" {
		label += ", " + in.Insure
	}
	return parcel{label}, nil
}
