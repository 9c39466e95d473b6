// Command builder is a program with a workflow engine inside whose flows are built in Go, one of each mode:
// nodes are variables, so that none can be misspelled; everything else is checked when a flow is published.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"

	"github.com/troupe-engine/troupe"
	"github.com/troupe-engine/troupe/flow/define"
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
		publish(ctx, engine, "parcels", parcels()),
		show(ctx, engine, "parcels", map[string]any{"items": []string{"lamp", "vase"}, "value": 250}),
		show(ctx, engine, "parcels", map[string]any{"items": []string{"book"}, "value": 12}),
		publish(ctx, engine, "booking", booking()),
		show(ctx, engine, "booking", map[string]any{"people": 2}),
		show(ctx, engine, "booking", map[string]any{"people": 20}),
	)
}

func publish(ctx context.Context, engine *troupe.Engine, slug string, b *define.Builder) error {
	definition, err := b.JSON()
	if err != nil {
		return err
	}
	return engine.Publish(ctx, slug, definition) // tells every mistake in it at once
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

// handle registers the functions that nodes name.
func handle(engine *troupe.Engine) {
	engine.Handle("pack", with(func(item string) (any, error) { return "box with a " + item, nil }))
	engine.Handle("insure", with(func(struct{}) (any, error) { return "insured", nil }))
	engine.Handle("ship", with(func(in struct {
		Pack   []string
		Insure string
	}) (any, error) {
		label := strings.Join(in.Pack, ", ")
		if in.Insure != "" {
			label += ", " + in.Insure
		}
		return map[string]string{"label": label}, nil
	}))
	engine.Handle("book", func(_ context.Context, job troupe.Job) (any, error) {
		var params struct{ By string }
		err := json.Unmarshal(job.Params, &params)
		return map[string]string{"by": params.By}, err
	})
	engine.Handle("pay", with(func(people int) (any, error) {
		if people > 10 {
			return nil, errors.New("the card was declined")
		}
		return "paid", nil
	}))
	engine.Handle("cancel", with(func(booked struct{ By string }) (any, error) {
		fmt.Println("canceled what was booked by", booked.By)
		return nil, nil
	}))
}

// with makes a handler of a function that gets its input decoded.
func with[In any](do func(In) (any, error)) troupe.Handler {
	return func(_ context.Context, job troupe.Job) (any, error) {
		var in In
		if err := json.Unmarshal(job.Input, &in); err != nil {
			return nil, err
		}
		return do(in)
	}
}
