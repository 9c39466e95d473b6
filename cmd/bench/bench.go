//go:build unix

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/troupe-engine/troupe"
	"github.com/troupe-engine/troupe/internal/testing/pgtest"
	"github.com/troupe-engine/troupe/worker"
)

// benchRun is one run: a store, a member on it, and the workers of its steps.
type benchRun struct {
	o         benchOptions
	ctx       context.Context
	stop      context.CancelFunc
	dir       string
	store     string
	dsn       string // connection string of Postgres
	server    *pgtest.Server
	serverPid int // process of Postgres whose CPU time is measured; 0 if unknown
	engine    *troupe.Engine
	processes *memberProcesses // members in other processes, if these are measured; nil otherwise
	url       string
	work      sync.WaitGroup
	refused   atomic.Int64 // number of starts refused by a busy member
	result    benchResult
	moves     *taskMoves // continuations of tasks whose member was killed

	databases int // number of databases created on the temporary server
}

// elsewhere are the workloads without a member in this process.
var elsewhere = []string{"raw", "members", "together", "idle", "killed", "ork-a", "ork-b", "ork-c", "ork-d", "python"}

func openBench(ctx context.Context, o benchOptions) (*benchRun, error) {
	b := &benchRun{o: o, result: benchResult{Workload: o.workload, Store: storeName(o.store),
		Worker: o.worker, N: o.n, Concurrency: o.concurrency}}
	b.ctx, b.stop = context.WithCancel(ctx)
	dir, err := os.MkdirTemp("", "troupe-bench-")
	if err != nil {
		return nil, err
	}
	b.dir = dir
	if err := b.openStore(); err != nil {
		b.close()
		return nil, err
	}
	if slices.Contains(elsewhere, o.workload) {
		return b, nil
	}
	if err := b.openEngine(); err != nil {
		b.close()
		return nil, err
	}
	return b, nil
}

func storeName(store string) string {
	name, _, _ := strings.Cut(store, ":")
	return name
}

func (b *benchRun) openStore() error {
	switch {
	case b.o.store == "sqlite":
		b.store = "sqlite:" + filepath.Join(b.dir, "bench.db")
	case b.o.store == "postgres":
		server, err := pgtest.StartServer(b.ctx, "")
		if err != nil {
			return err
		}
		b.server, b.dsn, b.serverPid = server, server.DSN("postgres"), server.Pid()
		b.store = b.dsn
	default:
		b.store = b.o.store
		if strings.HasPrefix(b.store, "postgres") {
			b.dsn = b.store
			// set by the program that started the server; see runPeer
			b.serverPid, _ = strconv.Atoi(os.Getenv("BENCH_PG_PID"))
		}
	}
	return nil
}

func (b *benchRun) openEngine() error {
	cfg := troupe.Config{Store: b.store, AllowScripts: true, Scripts: 512, IdleAfter: b.o.idleAfter(), ResumeGrace: b.o.resumeGrace()}
	if b.o.workload == "payload" {
		cfg.PayloadStore = "file://" + b.valuesDir()
	}
	if b.o.workload == "replay" {
		cfg.KeepWarm = -1
	}
	engine, err := troupe.Open(b.ctx, cfg)
	if err != nil {
		return err
	}
	b.engine = engine
	engine.HandleJSON("noop", func(_ context.Context, job troupe.Job) (json.RawMessage, error) { return runNoop(job.Input) })
	engine.HandleJSON("echo", func(_ context.Context, job troupe.Job) (json.RawMessage, error) { return job.Input, nil })
	engine.HandleJSON("nothing", func(context.Context, troupe.Job) (json.RawMessage, error) { return nil, nil })
	engine.HandleJSON("hold", b.holdJob)
	if b.o.worker == "func" {
		return nil
	}
	return b.openWorker()
}

// openWorker serves the API and runs a worker in this process, over real connections.
func (b *benchRun) openWorker() error {
	serving, leave := context.WithCancel(context.WithoutCancel(b.ctx))
	if err := b.serveAPI(serving); err != nil {
		leave()
		return err
	}
	w := worker.New(worker.Config{Server: b.url, ID: "bench", Push: b.o.worker == "push",
		Pull: b.o.worker == "pull", Attach: b.o.worker == "attach",
		URL: "http://127.0.0.1:8080", Concurrency: 256})
	w.Handle("noop", func(_ context.Context, job worker.Job) (any, error) { return runNoop(job.Input) })
	b.runBackground(func() error {
		defer leave() // the worker detaches while the server is still running
		return w.Run(b.ctx)
	})
	return b.awaitWorker()
}

// serveAPI serves the API on loopback.
func (b *benchRun) serveAPI(ctx context.Context) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	b.url = "http://" + l.Addr().String()
	b.runBackground(func() error { return b.engine.Serve(ctx, l) })
	return nil
}

func (b *benchRun) runBackground(f func() error) {
	b.work.Add(1)
	go func() {
		defer b.work.Done()
		if err := f(); err != nil && b.ctx.Err() == nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
		}
	}()
}

// awaitWorker runs one step to wait for a worker.
func (b *benchRun) awaitWorker() error {
	if err := b.publishFlow("warm-up", chainOf(1, b.execSpec())); err != nil {
		return err
	}
	for range 100 {
		id, err := b.engine.Start(b.ctx, "warm-up", map[string]any{"p": newPayload("w")})
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(b.ctx, 5*time.Second)
		r, err := b.engine.Wait(ctx, id)
		cancel()
		if err == nil && r.Status == "completed" {
			return nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	return fmt.Errorf("no %s worker took a job", b.o.worker)
}

func (b *benchRun) close() {
	b.stop()
	b.work.Wait()
	if b.engine != nil {
		if err := b.engine.Close(); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
		}
	}
	if b.server != nil {
		if err := b.server.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
		}
	}
	os.RemoveAll(b.dir)
}
