//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/troupe-engine/troupe"
	"github.com/troupe-engine/troupe/durable"
)

// codeInput is the input of a measured function.
type codeInput struct {
	P chainPayload `json:"p"`
}

// measureCode measures chain as a durable function: each step decodes a value, counts and encodes
// it, as runNoop does.
func (b *benchRun) measureCode() error {
	troupe.HandleFlow(b.engine, "code", func(f *durable.Flow, in codeInput) (p chainPayload, err error) {
		p = in.P
		for i := range b.o.steps {
			if p, err = countStep(f, fmt.Sprint("s", i+1), p); err != nil {
				return p, err
			}
		}
		return p, nil
	})
	return b.measureTasks("code", b.o.steps, func(i int) any { return map[string]any{"p": newPayload(fmt.Sprint("c", i))} })
}

func countStep(f *durable.Flow, name string, p chainPayload) (chainPayload, error) {
	return durable.Do(f, name, func(context.Context) (chainPayload, error) { p.Step++; return p, nil })
}

// measureEach measures fanout as a durable function.
func (b *benchRun) measureEach() error {
	items := make([]int, b.o.width)
	troupe.HandleFlow(b.engine, "each", func(f *durable.Flow, in codeInput) (int, error) {
		parts, err := durable.Each(f, "part", items, len(items), func(f *durable.Flow, _ int) (chainPayload, error) {
			return countStep(f, "count", in.P)
		})
		return len(parts), err
	})
	return b.measureTasks("each", b.o.width, func(i int) any { return map[string]any{"p": newPayload(fmt.Sprint("c", i))} })
}

// asleep is the time from the start of a workload of sleeping functions until they wake.
const asleep = 45 * time.Second

// measureSleepers makes functions sleep, long enough to be removed from memory, and wakes all at
// one moment. It measures the memory of the sleeping functions, and the time until the last
// function has ended.
func (b *benchRun) measureSleepers() error {
	ended := make(chan struct{}, b.o.n)
	due := time.Now().Add(asleep)
	troupe.HandleFlow(b.engine, "sleeper", func(f *durable.Flow, in codeInput) (p chainPayload, err error) {
		if p, err = countStep(f, "before", in.P); err != nil {
			return p, err
		}
		f.Sleep("until all wake", due.Sub(f.Now()))
		p, err = countStep(f, "behind", p)
		ended <- struct{}{}
		return p, err
	})
	if err := b.startSleepers(0, 1); err != nil {
		return err
	}
	before := settledRSS()
	if err := b.startSleepers(1, b.o.n); err != nil {
		return err
	}
	if time.Until(due) < 30*time.Second {
		return errors.New("starting the functions took too long: use fewer")
	}
	time.Sleep(time.Until(due) - 15*time.Second) // tasks are loaded some seconds before they are due
	b.result.Extra = map[string]float64{"sleeping_mb": settledRSS() - before}
	time.Sleep(time.Until(due) - time.Second)
	m, err := b.startMeter()
	if err != nil {
		return err
	}
	for range b.o.n {
		select {
		case <-ended:
		case <-b.ctx.Done():
			return b.ctx.Err()
		}
	}
	b.result.Extra["last_ended_after_due_s"] = time.Since(due).Seconds()
	return m.finishMeter(b.o.n, b.o.n)
}

// startSleepers starts the functions with numbers from first to end.
func (b *benchRun) startSleepers(first, end int) error {
	return b.forEach(end-first, b.o.concurrency, func(i int) error {
		_, err := b.startTask("sleeper", map[string]any{"p": newPayload(fmt.Sprint("c", first+i))})
		return err
	})
}

// measureReplay calls functions again that have recorded many steps. It measures the time until a
// function has repeated its recorded steps.
func (b *benchRun) measureReplay() error {
	var replays latencySamples
	calls := 0 // each task has two calls
	troupe.HandleFlow(b.engine, "replay", func(f *durable.Flow, in codeInput) (p chainPayload, err error) {
		began := time.Now()
		calls++
		p = in.P
		for range b.o.steps {
			if p, err = countStep(f, "s", p); err != nil {
				return p, err
			}
		}
		if calls%2 == 0 {
			replays.addSample(time.Since(began))
		}
		f.Sleep("until it is called again", time.Millisecond)
		return p, nil
	})
	params := map[string]any{"p": newPayload("c")}
	for range b.o.n {
		if err := b.runToCompletion("replay", params); err != nil {
			return err
		}
	}
	replays.fillPercentiles(&b.result)
	return nil
}
