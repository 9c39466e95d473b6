// Command nightly is a program that writes a report each night, at the time set in its flow. To
// show a schedule without waiting, it prints the next fire times, around the night when clocks go
// forward, and writes the reports of three past nights.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"time"

	"github.com/troupe-engine/troupe"
	"github.com/troupe-engine/troupe/api/wire"
)

// report adds up the sales and sends the result. Each night has exactly one task, even if the
// program restarts meanwhile.
const report = `
name: report
start: add_up
result: sent
schedule:
  cron: 30 2 * * *
  timezone: Europe/Berlin
  catchup: one        # after a weekend that the program was off there is one report
  overlap: skip       # none while the one before is being written
  params: {shop: Berlin}
nodes:
  add_up:
    exec_type: local_func
    func: add_up
    prep: {input_key: $params.shop}
    post: {output_key: sum}
  send:
    exec_type: local_func
    func: send
    retry: {max_attempts: 4}
    prep: {input_key: $shared.sum}
    post: {output_key: sent}
edges:
  - {from: add_up, action: default, to: send}
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := runExample(ctx, "sqlite:nightly.db"); err != nil {
		fmt.Fprintln(os.Stderr, "nightly:", err)
		os.Exit(1)
	}
}

func runExample(ctx context.Context, store string) (err error) {
	engine, err := troupe.Open(ctx, troupe.Config{Store: store})
	if err != nil {
		return err
	}
	defer func() {
		if e := engine.Close(); err == nil {
			err = e
		}
	}()
	troupe.Handle(engine, "add_up", func(_ context.Context, shop string) (string, error) { return "all that was sold in " + shop, nil })
	troupe.Handle(engine, "send", func(_ context.Context, sum string) (string, error) { return "sent: " + sum, nil })
	if err := engine.Publish(ctx, "report", []byte(report)); err != nil {
		return err
	}
	if err := printSlots(ctx, engine); err != nil {
		return err
	}
	return backfillNights(ctx, engine)
}

// printSlots prints the fire times around the night without 02:30.
func printSlots(ctx context.Context, engine *troupe.Engine) error {
	slots, err := engine.NextSlots(ctx, "report", 2, time.Date(2026, 3, 28, 0, 0, 0, 0, time.UTC))
	if err != nil {
		return err
	}
	for _, slot := range slots.Items {
		fmt.Println("fires at", slot.Local)
		for _, note := range slot.Notes {
			fmt.Println("  because", note)
		}
	}
	return nil
}

// backfillNights writes the reports of three nights, except existing ones.
func backfillNights(ctx context.Context, engine *troupe.Engine) error {
	night := func(day int) wire.Time { return wire.Time{Time: time.Date(2026, 1, day, 0, 0, 0, 0, time.UTC)} }
	filled, err := engine.BackfillSchedule(ctx, "report", troupe.Backfill{From: night(1), To: night(4)})
	if err != nil {
		return err
	}
	for _, item := range filled.Items {
		result, err := engine.Wait(ctx, item.Task)
		if err != nil {
			return err
		}
		fmt.Printf("%s, begun just now: %t, %s: %s\n", item.Slot.Format(time.DateOnly), item.Created, result.Status, result.Value)
	}
	return nil
}
