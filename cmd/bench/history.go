//go:build unix

package main

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"time"

	"github.com/troupe-engine/troupe"
)

// historyVisit is the number of concurrent units per visit while the history of a task grows.
const historyVisit = 1000

// measureHistory measures a chain of -steps in concurrent tasks with a history of -history units.
// First the histories grow, in visits of up to a thousand units. The measurement starts when the
// last task has its history.
func (b *benchRun) measureHistory() error {
	b.o.n = b.o.concurrency // later tasks would wait at the gate forever
	b.result.N = b.o.n
	width := min(b.o.history, historyVisit)
	if err := b.publishFlow("history", historyOf(b.o.steps)); err != nil {
		return err
	}
	g := b.newGate()
	var seen latencySamples
	work, failed := sync.WaitGroup{}, make(chan error, b.o.n)
	params := map[string]any{"list": make([]int, width), "visits": b.o.history / width, "p": newPayload("h")}
	for range b.o.n {
		work.Go(func() {
			err := b.runToCompletion("history", params)
			seen.addSample(time.Since(g.opened))
			if err != nil {
				failed <- err
			}
		})
	}
	select {
	case <-g.full:
	case err := <-failed:
		return err
	}
	m, err := b.startMeter()
	if err != nil {
		return err
	}
	g.openGate()
	work.Wait()
	if err := m.finishMeter(b.o.n, b.o.n*b.o.steps); err != nil {
		return err
	}
	seen.fillPercentiles(&b.result)
	b.result.Extra = map[string]float64{"history": float64(b.o.history)}
	close(failed)
	return <-failed
}

// growthGate is a barrier for all tasks.
type growthGate struct {
	full     chan struct{} // closed when all tasks have arrived
	released chan struct{} // closed when the tasks may continue
	opened   time.Time
}

func (g *growthGate) openGate() {
	g.opened = time.Now()
	close(g.released)
}

// newGate registers the functions of a growing task: "gate", and "count" for its visits.
func (b *benchRun) newGate() *growthGate {
	g := &growthGate{full: make(chan struct{}), released: make(chan struct{})}
	var missing sync.WaitGroup
	missing.Add(b.o.n)
	go func() { missing.Wait(); close(g.full) }()
	b.engine.HandleJSON("gate", func(ctx context.Context, _ troupe.Job) (json.RawMessage, error) {
		missing.Done()
		select {
		case <-g.released:
			return nil, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	})
	b.engine.HandleJSON("count", func(_ context.Context, job troupe.Job) (json.RawMessage, error) {
		var visits int
		if err := json.Unmarshal(job.Input, &visits); err != nil { // null at the first visit
			return nil, err
		}
		return json.Marshal(visits + 1)
	})
	return g
}

// historyOf returns a loop that grows a history, the gate, and a chain.
func historyOf(steps int) string {
	grow := `start: each
nodes:
  each: {kind: foreach, exec_type: local_func, func: nothing, parallel_mode: concurrent, prep: {input_key: $params.list}, post: {action_static: next}}
  count: {exec_type: local_func, func: count, prep: {input_key: visits}, post: {output_key: visits, action_static: next}}
  more: {kind: choice, choice_cases: [{action: again, expr: {gt: [$params.visits, $shared.visits]}}], default_action: enough}
  gate: {exec_type: local_func, func: gate, post: {action_static: next}}
`
	edges := `edges:
  - {from: each, action: next, to: count}
  - {from: count, action: next, to: more}
  - {from: more, action: again, to: each}
  - {from: more, action: enough, to: gate}
  - {from: gate, action: next, to: s1}
`
	chain := chainOf(steps, `exec_type: local_func, func: noop`)
	chain = strings.Replace(chain, "start: s1\nnodes:\n", grow, 1)
	return strings.Replace(chain, "edges:\n", edges, 1)
}
