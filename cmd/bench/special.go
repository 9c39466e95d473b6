//go:build unix

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"time"

	"github.com/troupe-engine/troupe"
)

const parkedFlow = `
start: wait
nodes:
  wait: {kind: approval, params: {approval_key: $shared.ok}, post: {output_key: ok}}
`

// measureParked measures the resident memory of tasks that wait for an approval, 30 s after the
// last start and 30 s after a restart.
func (b *benchRun) measureParked() error {
	if err := b.publishFlow("parked", parkedFlow); err != nil {
		return err
	}
	// so that the member's basic memory is allocated before
	if err := b.startParked(100); err != nil {
		return err
	}
	time.Sleep(5 * time.Second)
	before := settledRSS()
	m, err := b.startMeter()
	if err != nil {
		return err
	}
	if err := b.startParked(b.o.n); err != nil {
		return err
	}
	if err := m.finishMeter(b.o.n, b.o.n); err != nil {
		return err
	}
	time.Sleep(b.o.settle)
	added, idle := rssMB()-before, b.idleCPU()
	if err := b.heapProfile(); err != nil {
		return err
	}
	if err := b.reopenMember(); err != nil {
		return err
	}
	time.Sleep(b.o.settle)
	b.result.Extra = map[string]float64{"rss_before_mb": before, "added_rss_mb": added, "added_rss_after_restart_mb": rssMB() - before,
		"idle_cpu_percent": idle,
		"refused_as_busy":  float64(b.refused.Load())}
	return nil
}

// idleCPU returns the share of a core that this process uses while idle.
func (b *benchRun) idleCPU() float64 {
	if b.o.watch == 0 {
		return 0
	}
	began, cpu := time.Now(), ownCPU()
	time.Sleep(b.o.watch)
	return 100 * (ownCPU() - cpu).Seconds() / time.Since(began).Seconds()
}

func (b *benchRun) startParked(n int) error {
	return b.forEach(n, b.o.concurrency, func(int) error {
		_, err := b.startTask("parked", nil)
		return err
	})
}

// settledRSS returns the resident memory after a garbage collection.
func settledRSS() float64 {
	runtime.GC()
	debug.FreeOSMemory()
	return rssMB()
}

// reopenMember closes the member and starts another member on the same store.
func (b *benchRun) reopenMember() error {
	if err := b.engine.Close(); err != nil {
		return err
	}
	b.engine = nil
	settledRSS()
	engine, err := troupe.Open(b.ctx, troupe.Config{Store: b.store})
	if err != nil {
		return err
	}
	b.engine = engine
	_, err = engine.Member(b.ctx)
	return err
}

// measureTimers makes all tasks due in the same second. It measures the largest delay until the
// function after a timer began.
func (b *benchRun) measureTimers() error {
	if err := b.publishFlow("timers", `
start: wait
nodes:
  wait: {kind: timer, params: {delay_ms: $params.delay_ms}}
  work: {exec_type: local_func, func: hold}
edges:
  - {from: wait, action: default, to: work}
`); err != nil {
		return err
	}
	b.moves = &taskMoves{most: int64(b.o.n), all: make(chan struct{})}
	due := time.Now().Add(30 * time.Second)
	at := func(i int) time.Time { return due.Add(time.Duration(i) * time.Second / time.Duration(b.o.n)) }
	ids := make([]string, b.o.n)
	err := b.forEach(b.o.n, b.o.concurrency, func(i int) (err error) {
		ids[i], err = b.startTask("timers", map[string]any{"delay_ms": time.Until(at(i)).Milliseconds()})
		return err
	})
	if err != nil {
		return err
	}
	if time.Until(due) < time.Second {
		return errors.New("starting the tasks took too long: use fewer")
	}
	time.Sleep(time.Until(due) - 100*time.Millisecond)
	m, err := b.startMeter()
	if err != nil {
		return err
	}
	if err := b.moves.awaitAll(b.ctx); err != nil {
		return err
	}
	if err := m.finishMeter(b.o.n, b.o.n); err != nil {
		return err
	}
	var late latencySamples
	last := time.Time{}
	for i, id := range ids {
		moved := b.moves.movedAt(id)
		late.addSample(moved.Sub(at(i)))
		if moved.After(last) {
			last = moved
		}
	}
	late.fillPercentiles(&b.result)
	b.result.Extra = map[string]float64{"last_fired_after_last_due_s": last.Sub(at(b.o.n - 1)).Seconds()}
	return nil
}

const scriptsPerTask = 5

// measureScripts runs tasks of 5 parallel scripts that sleep 0.1 s, and then the same number of
// scripts in a bare loop.
func (b *benchRun) measureScripts() error {
	node := `
start: five
nodes:
  five:
    kind: parallel
    parallel_mode: concurrent
    parallel_execs:
`
	for i := range scriptsPerTask {
		node += fmt.Sprintf("      - {service: s%d, exec_type: local_script, script: {cmd: sleep, args: ['0.1']}}\n", i)
	}
	if err := b.publishFlow("scripts", node); err != nil {
		return err
	}
	if err := b.measureTasks("scripts", scriptsPerTask, func(int) any { return nil }); err != nil {
		return err
	}
	bare, err := b.bareLoop([]string{"sleep", "0.1"}, b.o.n*scriptsPerTask, b.o.n*scriptsPerTask)
	if err != nil {
		return err
	}
	b.result.Extra = map[string]float64{"bare_scripts_per_s": bare, "of_bare": b.result.StepsPerS / bare}
	return nil
}

// bareLoop starts a program n times without any engine, atOnce at the same time.
func (b *benchRun) bareLoop(argv []string, n, atOnce int) (perSecond float64, err error) {
	began := time.Now()
	err = b.forEach(n, atOnce, func(int) error { return exec.CommandContext(b.ctx, argv[0], argv[1:]...).Run() })
	return float64(n) / time.Since(began).Seconds(), err
}

// heapProfile writes a heap profile.
func (b *benchRun) heapProfile() error {
	if b.o.heap == "" {
		return nil
	}
	f, err := os.Create(b.o.heap)
	if err != nil {
		return err
	}
	defer f.Close()
	return pprof.WriteHeapProfile(f)
}
