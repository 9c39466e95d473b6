//go:build unix

package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/troupe-engine/troupe/internal/testing/pgtest"
)

// benchResult is a printed JSON line with the result of a run.
type benchResult struct {
	Workload    string  `json:"workload"`
	Store       string  `json:"store"`
	Worker      string  `json:"worker"`
	N           int     `json:"n"`
	Concurrency int     `json:"concurrency"`
	WallS       float64 `json:"wall_s"`
	TasksPerS   float64 `json:"tasks_per_s"`
	StepsPerS   float64 `json:"steps_per_s"`
	P50MS       float64 `json:"p50_ms"`
	P95MS       float64 `json:"p95_ms"`
	P99MS       float64 `json:"p99_ms"`
	PeakRSSMB   float64 `json:"peak_rss_mb"`

	ClientCores  float64 `json:"client_cpu_cores,omitempty"`
	PostgresCore float64 `json:"pg_cpu_cores,omitempty"`
	CPUPerStep   float64 `json:"cpu_us_per_step,omitempty"`
	// each write of the store is one statement and one transaction
	TxPerStep   float64 `json:"statements_per_step,omitempty"`
	WALPerStep  float64 `json:"wal_bytes_per_step,omitempty"`
	JournalStep float64 `json:"journal_bytes_per_step,omitempty"` // size of the journal rows
	// growth of all tables and their indexes
	StoreStep float64 `json:"store_bytes_per_step,omitempty"`

	Extra map[string]float64 `json:"extra,omitempty"`
	// statements of an idle cluster, by their beginning
	Statements map[string]float64 `json:"statements_per_s,omitempty"`
}

// latencySamples collects the latencies seen by clients.
type latencySamples struct {
	mu   sync.Mutex
	list []time.Duration
}

func (l *latencySamples) addSample(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, d)
}

func (l *latencySamples) fillPercentiles(r *benchResult) {
	slices.Sort(l.list)
	at := func(q float64) float64 {
		if len(l.list) == 0 {
			return 0
		}
		return toMillis(l.list[min(int(q*float64(len(l.list))), len(l.list)-1)])
	}
	r.P50MS, r.P95MS, r.P99MS = at(0.5), at(0.95), at(0.99)
}

func toMillis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// costMeter measures the cost of a section of work.
type costMeter struct {
	b       *benchRun
	began   time.Time
	cpu, pg time.Duration
	before  pgCounters
	stop    chan struct{}
	done    sync.WaitGroup
	peak    float64
	profile *os.File
}

func (b *benchRun) startMeter() (*costMeter, error) {
	m := &costMeter{b: b, stop: make(chan struct{})}
	var err error
	if m.before, err = b.readCounters(); err != nil {
		return nil, err
	}
	if b.o.profile != "" {
		if m.profile, err = os.Create(b.o.profile); err != nil {
			return nil, err
		}
		if err := pprof.StartCPUProfile(m.profile); err != nil {
			return nil, err
		}
	}
	m.pg, m.cpu, m.began = b.postgresCPU(), b.memberCPU(), time.Now()
	m.done.Add(1)
	go m.sampleMemory()
	return m, nil
}

// sampleMemory samples the resident memory, and writes a heap profile at each new peak.
func (m *costMeter) sampleMemory() {
	defer m.done.Done()
	told := 0.0
	for {
		m.peak = max(m.peak, m.b.memberRSS())
		if m.peak > told*1.05 {
			told = m.peak
			_ = m.b.heapProfile() // an error does not matter for the measurement
		}
		select {
		case <-m.stop:
			return
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// finishMeter fills in a result for the given numbers of tasks and steps.
func (m *costMeter) finishMeter(tasks, steps int) error {
	wall := time.Since(m.began)
	cpu, pg := m.b.memberCPU()-m.cpu, m.b.postgresCPU()-m.pg
	if m.profile != nil {
		pprof.StopCPUProfile()
		m.profile.Close()
	}
	close(m.stop)
	m.done.Wait()
	after, err := m.b.readCounters()
	if err != nil {
		return err
	}
	r := &m.b.result
	r.WallS = wall.Seconds()
	r.TasksPerS = float64(tasks) / r.WallS
	r.StepsPerS = float64(steps) / r.WallS
	r.PeakRSSMB = m.peak
	r.ClientCores = cpu.Seconds() / r.WallS
	r.PostgresCore = pg.Seconds() / r.WallS
	r.CPUPerStep = float64((cpu + pg).Microseconds()) / float64(steps)
	each := func(after, before int64) float64 { return float64(after-before) / float64(steps) }
	r.TxPerStep, r.WALPerStep = each(after.tx, m.before.tx), each(after.wal, m.before.wal)
	r.JournalStep, r.StoreStep = each(after.journal, m.before.journal), each(after.store, m.before.store)
	return nil
}

// memberCPU returns the CPU time of the measured members, in this process or in others.
func (b *benchRun) memberCPU() time.Duration {
	if b.processes != nil {
		return b.processes.totalCPU()
	}
	return ownCPU()
}

func (b *benchRun) memberRSS() float64 {
	if b.processes != nil {
		return b.processes.rssMB()
	}
	return rssMB()
}

func ownCPU() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // cannot fail for this process
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func rssMB() float64 { return rssOf("self") }

// rssOf returns the resident memory of a process; 0 if unknown.
func rssOf(process string) float64 {
	f, err := os.Open("/proc/" + process + "/status")
	if err != nil {
		return 0
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if rest, ok := strings.CutPrefix(s.Text(), "VmRSS:"); ok {
			kb, _ := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			return kb / 1024
		}
	}
	return 0
}

func (b *benchRun) postgresCPU() time.Duration {
	if b.serverPid == 0 {
		return 0
	}
	d, _ := pgtest.CPUOf(b.serverPid) // if the server has ended, the run itself fails
	return d
}

// pgCounters are counters of Postgres: transactions, and the bytes of WAL, of journal rows, and of
// all tables with their indexes.
type pgCounters struct {
	tx, wal, journal, store int64
	journaled               bool // there is a journal table
}

func (b *benchRun) readCounters() (n pgCounters, err error) {
	if b.dsn == "" {
		return n, nil
	}
	ctx := context.Background()
	c, err := pgx.Connect(ctx, b.dsn)
	if err != nil {
		return n, fmt.Errorf("reading Postgres's counters: %w", err)
	}
	defer c.Close(ctx)
	// The statistics of other sessions arrive with a delay of up to a second.
	time.Sleep(1100 * time.Millisecond)
	err = c.QueryRow(ctx, `SELECT (SELECT sum(xact_commit) FROM pg_stat_database WHERE datname = current_database())::bigint,
		(pg_current_wal_insert_lsn() - '0/0')::bigint,
		(SELECT coalesce(sum(pg_total_relation_size(oid)), 0) FROM pg_class WHERE relkind = 'r' AND relnamespace = to_regnamespace('troupe'))::bigint,
		to_regclass('troupe.task_events') IS NOT NULL`).Scan(&n.tx, &n.wal, &n.store, &n.journaled)
	if err != nil || !n.journaled {
		return n, err
	}
	return n, c.QueryRow(ctx, `SELECT coalesce(sum(pg_column_size(e.*)), 0)::bigint FROM troupe.task_events e`).Scan(&n.journal)
}
