//go:build unix

// Command bench measures a member. It prints one JSON line per run.
//
//	go run ./cmd/bench -workload chain -store postgres -worker func -concurrency 64 -n 2000
//
// Workloads of one member:
//   - chain: 10 no-op steps in sequence, each taking and returning a 200-byte JSON payload
//   - keyed, keyfull: chain with a concurrency key for each step: one of 64 that are never full, or
//     one that is always full
//   - fanout: units at once, then a join
//   - latency: 3 steps, one task at a time
//   - parked: memory of tasks that wait for an approval
//   - starts: starts over HTTP, -width of them per request
//   - timers: timers that are all due in the same second
//   - killed: tasks running when their member is killed: the time until the last one continues
//     after a restart, and the memory
//   - signals: signals of 0.8 MB and tiny ones to a parked task that holds such a value, and
//     reading it
//   - scripts: 5 parallel scripts per task, compared with a bare loop that starts the same scripts
//   - lists: queries of the pages, with -n tasks in the store: the median of each route, printed by
//     "liststable"
//   - payload: -n outputs of 1 MB, of tasks of -width units, kept in a folder: growth of the
//     database, and memory
//   - history: a chain in tasks with a history of -history units
//   - raw: the rows of chain written by the cheapest statement without any engine, as the limit to
//     compare with
//
// Workloads of a cluster:
//   - members: chain on -members members, each a process with callers of its own, compared with a
//     single member
//   - together: the same, with the cost of all members
//   - idle: statements sent by an idle cluster
//   - failover: attached workers that are killed: the time until another worker has their job
//
// Workloads of programs, on `troupe serve` in its own process, over HTTP:
//   - ork-a to ork-d: the profiles of Ork's own performance test, and of programs that do nothing,
//     compared with a bare loop that starts the same programs, and ork-d with Go functions; printed
//     by "orktable" beside Ork's figures
//   - python: Python functions in warm interpreters, compared with a new interpreter for each
//
// Further commands:
// - peer: runs another engine's benchmark on a server like ours (-workload peer -- COMMAND …)
// - table: prints the medians of input lines
// - beside: prints the medians of two trees and their ratios
// - figures: prints the results of a cluster with their targets
// - curves FOLDER: draws the lines of scripts/curves.sh
// - where: prints how the time of CPU profiles divides into areas
//
// The store is "sqlite", "postgres" (a temporary server with default settings), or a setting
// accepted by troupe. Latency is the time from the request that starts a task until its end is
// durable and known to the client.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/troupe-engine/troupe/internal/garbage"
)

// benchOptions are the options of a run.
type benchOptions struct {
	workload    string
	store       string
	worker      string
	concurrency int
	n           int
	steps       int
	width       int
	settle      time.Duration
	watch       time.Duration
	members     int
	rounds      int
	troupe      string
	profile     string
	beyond      float64
	payload     int
	history     int
	heap        string
}

func main() {
	var o benchOptions
	flag.StringVar(&o.workload, "workload", "chain",
		"chain, code, keyed, keyfull, fanout, each, latency, dagchain, diamond, dagfanout, parked, "+
			"starts, timers, sleepers, replay, killed, signals, scripts, lists, payload, raw, history, "+
			"members, together, idle, failover, ork-a, ork-b, ork-c, ork-d, python; peer, table, beside, curves, "+
			"where, figures, orktable or liststable")
	flag.StringVar(&o.store, "store", "sqlite", `"sqlite", "postgres" (throwaway servers), "sqlite:PATH" or "postgres://…"`)
	flag.StringVar(&o.worker, "worker", "func", "func, push, pull or attach: who carries out the steps")
	flag.IntVar(&o.concurrency, "concurrency", 0, "tasks in flight; 0 = the workload's own")
	flag.IntVar(&o.n, "n", 0, "tasks; 0 = the workload's own")
	flag.IntVar(&o.steps, "steps", 0, "steps of a chain, nodes of a dag; 0 = 10 and 1,000")
	flag.IntVar(&o.width, "width", 0, "units of a fan-out, tasks of a run of Ork, starts in a "+
		"request; 0 = 1,000, of a dag 10,000, of Ork 5 and 10, of starts 1")
	flag.DurationVar(&o.settle, "settle", 30*time.Second, "parked, idle: when it is measured, after the last start")
	flag.DurationVar(&o.watch, "watch", 0, "parked, idle: for how long CPU and statements are counted; 0 = of parked not, of idle 30 s")
	flag.IntVar(&o.members, "members", 3, "members, together, idle: how many there are")
	flag.IntVar(&o.rounds, "rounds", 3, "members, ork-…, python: how often each is measured, in "+
		"turn with what it is compared with; lists: how often each route is asked")
	flag.StringVar(&o.troupe, "troupe", "", "ork-…, python: the program troupe; \"\" = it is built")
	flag.StringVar(&o.profile, "cpuprofile", "", "write a CPU profile of the measured part to this file")
	flag.Float64Var(&o.beyond, "beyond", 0, "beside: name the workloads whose step takes more than so many times as much CPU; 0 = none")
	flag.IntVar(&o.payload, "payload", 0, "chain: bytes that each step takes and returns, which "+
		"nobody looks into; 0 = a small value that each step decodes and encodes; payload: "+
		"bytes of an output; 0 = 1 MB")
	flag.IntVar(&o.history, "history", 10, "history: units that each task has behind it")
	flag.StringVar(&o.heap, "heapprofile", "", "write what is in memory to this file: when it is most, or, of parked, when all tasks wait")
	flag.Parse()
	garbage.Bound() // as in the command troupe
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := dispatchWorkload(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		stop()
		os.Exit(1)
	}
}

func dispatchWorkload(ctx context.Context, o benchOptions) error {
	switch o.workload {
	case "peer":
		return runPeer(ctx, flag.Args())
	case "table":
		return printTable(os.Stdin, os.Stdout)
	case "figures":
		return printFigures(os.Stdin, os.Stdout)
	case "orktable":
		return profilesTable(os.Stdin, os.Stdout)
	case "liststable":
		return listsTable(os.Stdin, os.Stdout)
	case "beside":
		return printComparison(os.Stdin, os.Stdout, os.Stderr, o.beyond)
	case "curves":
		return drawCurves(os.Stdin, flag.Arg(0))
	case "where":
		return printBreakdown(flag.Args(), os.Stdout)
	case "hand":
		return runHolder(ctx, o.worker)
	}
	result, err := runWorkload(ctx, o)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(result)
}

// workloads are the workloads with their default options.
var workloads = map[string]struct {
	n, concurrency, steps, width int
	run                          func(*benchRun) error
}{
	"chain":     {5000, 64, 10, 0, (*benchRun).measureChain},
	"code":      {5000, 64, 10, 0, (*benchRun).measureCode},
	"each":      {10, 1, 0, 1000, (*benchRun).measureEach},
	"sleepers":  {10_000, 64, 0, 0, (*benchRun).measureSleepers},
	"replay":    {5, 1, 10_000, 0, (*benchRun).measureReplay},
	"keyed":     {1000, 64, 10, 0, (*benchRun).measureKeyed},
	"keyfull":   {500, 64, 10, 0, (*benchRun).keyFull},
	"fanout":    {10, 1, 0, 1000, (*benchRun).measureFanout},
	"latency":   {500, 1, 3, 0, (*benchRun).measureLatency},
	"dagchain":  {64, 64, 1000, 0, (*benchRun).dagChain},
	"diamond":   {64, 8, 1000, 0, (*benchRun).measureDiamond},
	"dagfanout": {8, 1, 0, 10_000, (*benchRun).dagFanout},
	"parked":    {100_000, 64, 0, 0, (*benchRun).measureParked},
	"starts":    {20_000, 64, 1, 1, (*benchRun).measureStarts},
	"timers":    {10_000, 64, 0, 0, (*benchRun).measureTimers},
	"killed":    {100_000, 64, 0, 0, (*benchRun).memberKilled},
	"signals":   {20, 1, 0, 0, (*benchRun).measureSignals},
	"scripts":   {100, 100, 0, 0, (*benchRun).measureScripts},
	"lists":     {1_000_000, 64, 0, 0, (*benchRun).measureLists},
	"payload":   {10_000, 2, 0, 100, (*benchRun).measureLarge},
	"raw":       {200_000, 64, 0, 0, (*benchRun).measureRaw},
	"members":   {2000, 64, 10, 0, (*benchRun).measureMembers},
	"together":  {1000, 64, 10, 0, (*benchRun).measureTogether},
	"history":   {0, 4, 1000, 0, (*benchRun).measureHistory},
	"member":    {0, 64, 10, 0, (*benchRun).serveCommands},
	"idle":      {0, 0, 0, 0, (*benchRun).measureIdle},
	"failover":  {20, 1, 0, 0, (*benchRun).measureFailover},
	"functions": {0, 0, 0, 0, (*benchRun).serveFunctions},
	"ork-a":     {100, 512, 0, 5, (*benchRun).measureProfile},
	"ork-b":     {1000, 512, 0, 10, (*benchRun).measureProfile},
	"ork-c":     {100, 512, 0, 5, (*benchRun).measureProfile},
	"ork-d":     {100, 512, 0, 5, (*benchRun).measureProfile},
	"python":    {20, 512, 0, 5, (*benchRun).measurePython},
}

func runWorkload(ctx context.Context, o benchOptions) (*benchResult, error) {
	w, ok := workloads[o.workload]
	if !ok {
		return nil, fmt.Errorf("there is no workload %q", o.workload)
	}
	for _, x := range []struct {
		to  *int
		own int
	}{{&o.n, w.n}, {&o.concurrency, w.concurrency}, {&o.steps, w.steps}, {&o.width, w.width}} {
		if *x.to == 0 {
			*x.to = x.own
		}
	}
	b, err := openBench(ctx, o)
	if err != nil {
		return nil, err
	}
	defer b.close()
	if err := w.run(b); err != nil {
		return nil, err
	}
	return &b.result, nil
}
