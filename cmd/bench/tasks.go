//go:build unix

package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/troupe-engine/troupe"
	"github.com/troupe-engine/troupe/flow"
)

// chainPayload is the value passed along a chain: about 200 bytes of JSON.
type chainPayload struct {
	ID    string `json:"id"`
	Step  int    `json:"step"`
	Note  string `json:"note"`
	Trail string `json:"trail"`
}

func newPayload(id string) chainPayload {
	return chainPayload{ID: id, Note: strings.Repeat("n", 60), Trail: strings.Repeat("t", 60)}
}

// runNoop is the function of a step. It decodes its input, counts and encodes it, like any real
// step. A unit of a fanout gets its number and returns the number.
func runNoop(input json.RawMessage) (json.RawMessage, error) {
	var p chainPayload
	into := any(&p)
	if len(input) > 0 && input[0] != '{' {
		p = newPayload("unit")
		into = &p.Step
	}
	if err := json.Unmarshal(input, into); err != nil {
		return nil, err
	}
	p.Step++
	return json.Marshal(p)
}

// execSpec returns the executor of a node for the chosen worker.
func (b *benchRun) execSpec() string {
	switch b.o.worker {
	case "push":
		return `exec_type: push, service: noop`
	case "attach":
		return `exec_type: remote, service: noop`
	case "pull":
		return `exec_type: queue, service: noop`
	default:
		return `exec_type: local_func, func: noop`
	}
}

func chainOf(steps int, exec string) string {
	var d strings.Builder
	d.WriteString("start: s1\nnodes:\n")
	for i := 1; i <= steps; i++ {
		input := "p"
		if i == 1 {
			input = "$params.p"
		}
		fmt.Fprintf(&d, "  s%d: {%s, prep: {input_key: %q}, post: {output_key: p}}\n", i, exec, input)
	}
	d.WriteString("edges:\n")
	for i := 1; i < steps; i++ {
		fmt.Fprintf(&d, "  - {from: s%d, action: default, to: s%d}\n", i, i+1)
	}
	return d.String()
}

func (b *benchRun) publishFlow(slug, definition string) error {
	return b.engine.Publish(b.ctx, slug, []byte(definition))
}

// forEach calls f for every number below n, concurrently.
func (b *benchRun) forEach(n, concurrency int, f func(i int) error) error {
	var next atomic.Int64
	var workers sync.WaitGroup
	failed := make(chan error, concurrency)
	for range concurrency {
		workers.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= n || b.ctx.Err() != nil {
					return
				}
				if err := f(i); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	workers.Wait()
	close(failed)
	return <-failed
}

// startTask starts a task. It retries while the member is busy, like any client.
func (b *benchRun) startTask(slug string, params any, options ...troupe.Option) (id string, err error) {
	for wait := 5 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		id, err = b.engine.Start(b.ctx, slug, params, options...)
		if flow.ErrorKindOf(err) != flow.Busy {
			return id, err
		}
		b.refused.Add(1)
		select {
		case <-time.After(wait):
		case <-b.ctx.Done():
			return "", err
		}
	}
}

// runToCompletion starts a task and waits for its successful end.
func (b *benchRun) runToCompletion(slug string, params any) error {
	id, err := b.startTask(slug, params)
	if err != nil {
		return err
	}
	status, err := b.awaitTask(id)
	if err == nil && status != "completed" {
		r, _ := b.engine.Wait(b.ctx, id)
		err = fmt.Errorf("task %s ended %s: %+v", id, status, r)
	}
	return err
}

func (b *benchRun) awaitTask(id string) (string, error) {
	m, err := b.engine.Member(b.ctx)
	if err != nil {
		return "", err
	}
	status, err := m.Await(b.ctx, id)
	return string(status), err
}

// measureTasks runs n tasks of the given number of steps.
func (b *benchRun) measureTasks(slug string, steps int, params func(i int) any) error {
	warm := min(b.o.n/10, 200)
	if err := b.forEach(warm, b.o.concurrency, func(i int) error { return b.runToCompletion(slug, params(i)) }); err != nil {
		return err
	}
	var seen latencySamples
	m, err := b.startMeter()
	if err != nil {
		return err
	}
	err = b.forEach(b.o.n, b.o.concurrency, func(i int) error {
		began := time.Now()
		err := b.runToCompletion(slug, params(i))
		seen.addSample(time.Since(began))
		return err
	})
	if err != nil {
		return err
	}
	seen.fillPercentiles(&b.result)
	return m.finishMeter(b.o.n, b.o.n*steps)
}

func (b *benchRun) measureChain() error {
	if b.o.payload > 0 {
		return b.measureEchoes()
	}
	if err := b.publishFlow("chain", chainOf(b.o.steps, b.execSpec())); err != nil {
		return err
	}
	return b.measureTasks("chain", b.o.steps, func(i int) any { return map[string]any{"p": newPayload(fmt.Sprint("c", i))} })
}

// measureEchoes measures chain with values of -payload bytes, which are never decoded and cannot be
// compressed.
func (b *benchRun) measureEchoes() error {
	if err := b.publishFlow("echoes", chainOf(b.o.steps, `exec_type: local_func, func: echo`)); err != nil {
		return err
	}
	b.result.Extra = map[string]float64{"payload": float64(b.o.payload)}
	return b.measureTasks("echoes", b.o.steps, func(i int) any { return map[string]any{"p": randomText(i, b.o.payload)} })
}

// randomText returns a text that takes the given number of bytes as JSON.
func randomText(seed, bytes int) string {
	raw := make([]byte, bytes)
	// never fails
	_, _ = rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), byte(seed >> 16)}).Read(raw)
	return base64.RawStdEncoding.EncodeToString(raw)[:max(bytes-2, 0)]
}

// measureKeyed measures chain with a key for each step that always has room. There are as many keys
// as concurrent tasks.
func (b *benchRun) measureKeyed() error { return b.withKey("$params.c", 1_000_000) }

// keyFull measures chain with one key for all steps, with a limit far below the number of steps.
func (b *benchRun) keyFull() error { return b.withKey("all", 8) }

func (b *benchRun) withKey(key string, limit int) error {
	exec := fmt.Sprintf("%s, concurrency: {name: bench, key: %s, limit: %d}", b.execSpec(), key, limit)
	if err := b.publishFlow("keyed", chainOf(b.o.steps, exec)); err != nil {
		return err
	}
	return b.measureTasks("keyed", b.o.steps, func(i int) any {
		return map[string]any{"p": newPayload(fmt.Sprint("c", i)), "c": i % b.o.concurrency}
	})
}

func (b *benchRun) measureLatency() error {
	return b.measureChain()
}

func (b *benchRun) measureFanout() error {
	definition := fmt.Sprintf(`
start: each
nodes:
  each: {kind: foreach, %s, parallel_mode: concurrent, prep: {input_key: $params.list}, post: {output_key: out, action_static: next}}
  join: {kind: choice, default_action: done}
edges:
  - {from: each, action: next, to: join}
`, b.execSpec())
	if err := b.publishFlow("fanout", definition); err != nil {
		return err
	}
	list := make([]int, b.o.width)
	for i := range list {
		list[i] = i
	}
	return b.measureTasks("fanout", b.o.width, func(int) any { return map[string]any{"list": list} })
}
