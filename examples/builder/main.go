// Command builder is a program with an embedded workflow engine whose flows are built in Go, one of
// each mode. Nodes are variables, so their names cannot be misspelled. Everything else is checked
// when a flow is published.
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
	if err := runExample(ctx, "sqlite:builder.db"); err != nil {
		fmt.Fprintln(os.Stderr, "builder:", err)
		os.Exit(1)
	}
}

func runExample(ctx context.Context, store string) (err error) {
	engine, err := troupe.Open(ctx, troupe.Config{Store: store})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	registerFunctions(engine)
	return errors.Join(
		engine.PublishFlow(ctx, parcelFlow()), // reports all mistakes at once
		showResult(ctx, engine, "parcels", map[string]any{"items": []string{"lamp", "vase"}, "value": 250}),
		showResult(ctx, engine, "parcels", map[string]any{"items": []string{"book"}, "value": 12}),
		engine.PublishFlow(ctx, bookingFlow()),
		showResult(ctx, engine, "booking", map[string]any{"people": 2}),
		showResult(ctx, engine, "booking", map[string]any{"people": 20}),
	)
}

// showResult runs a task and prints how it ended.
func showResult(ctx context.Context, engine *troupe.Engine, slug string, input any) error {
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

// registerFunctions registers the functions named by nodes. Their argument is the input of the
// node, or the params if it has none.
func registerFunctions(engine *troupe.Engine) {
	troupe.Handle(engine, "pack", func(_ context.Context, item string) (string, error) { return "box with a " + item, nil })
	troupe.Handle(engine, "insure", func(context.Context, any) (string, error) { return "insured", nil })
	troupe.Handle(engine, "ship", shipParcel)
	troupe.Handle(engine, "book", func(_ context.Context, in bookingNote) (bookingNote, error) { return in, nil })
	troupe.Handle(engine, "pay", func(_ context.Context, people int) (string, error) {
		if people > 10 {
			return "", errors.New("the card was declined")
		}
		return "paid", nil
	})
	troupe.Handle(engine, "cancel", func(_ context.Context, in bookingNote) (any, error) {
		fmt.Println("canceled what was booked by", in.By)
		return nil, nil
	})
}

type bookingNote struct {
	By string `json:"by"`
}

type packedOrder struct {
	Pack   []string
	Insure string
}

type parcel struct {
	Label string `json:"label"`
}

func shipParcel(_ context.Context, in packedOrder) (parcel, error) {
	label := strings.Join(in.Pack, ", ")
	if in.Insure != "" {
		label += ", " + in.Insure
	}
	return parcel{label}, nil
}
