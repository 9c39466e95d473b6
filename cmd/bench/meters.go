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
)

// result is one JSON line.
type result struct {
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
	TxPerStep    float64 `json:"statements_per_step,omitempty"` // every write is a statement and transaction of its own
	WALPerStep   float64 `json:"wal_bytes_per_step,omitempty"`

	Extra      map[string]float64 `json:"extra,omitempty"`
	Statements map[string]float64 `json:"statements_per_s,omitempty"` // of an idle cluster, by how they begin
}

// latencies gathers what clients saw.
type latencies struct {
	mu   sync.Mutex
	list []time.Duration
}

func (l *latencies) add(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, d)
}

func (l *latencies) fill(r *result) {
	slices.Sort(l.list)
	at := func(q float64) float64 {
		if len(l.list) == 0 {
			return 0
		}
		return milli(l.list[min(int(q*float64(len(l.list))), len(l.list)-1)])
	}
	r.P50MS, r.P95MS, r.P99MS = at(0.5), at(0.95), at(0.99)
}

func milli(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// meter measures what a stretch of work costs.
type meter struct {
	b       *bench
	began   time.Time
	cpu, pg time.Duration
	tx, wal int64
	stop    chan struct{}
	done    sync.WaitGroup
	peak    float64
	profile *os.File
}

func (b *bench) measure() (*meter, error) {
	m := &meter{b: b, stop: make(chan struct{})}
	var err error
	if m.tx, m.wal, err = b.counters(); err != nil {
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
	m.pg, m.cpu, m.began = b.postgresCPU(), ownCPU(), time.Now()
	m.done.Add(1)
	go m.watch()
	return m, nil
}

// watch samples resident memory.
func (m *meter) watch() {
	defer m.done.Done()
	for {
		m.peak = max(m.peak, rssMB())
		select {
		case <-m.stop:
			return
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// end fills in a result for so many steps.
func (m *meter) end(tasks, steps int) error {
	wall := time.Since(m.began)
	cpu, pg := ownCPU()-m.cpu, m.b.postgresCPU()-m.pg
	if m.profile != nil {
		pprof.StopCPUProfile()
		m.profile.Close()
	}
	close(m.stop)
	m.done.Wait()
	tx, wal, err := m.b.counters()
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
	r.TxPerStep = float64(tx-m.tx) / float64(steps)
	r.WALPerStep = float64(wal-m.wal) / float64(steps)
	return nil
}

func ownCPU() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // cannot fail for oneself
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func rssMB() float64 { return rssOf("self") }

// rssOf is the resident memory of a process, 0 where nobody tells.
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

func (b *bench) postgresCPU() time.Duration {
	if b.server == nil {
		return 0
	}
	d, _ := b.server.StatProcesses() // a server that is gone shows in the run itself
	return d
}

// counters are Postgres's own: transactions and bytes of WAL.
func (b *bench) counters() (tx, wal int64, err error) {
	if b.dsn == "" {
		return 0, 0, nil
	}
	ctx := context.Background()
	c, err := pgx.Connect(ctx, b.dsn)
	if err != nil {
		return 0, 0, fmt.Errorf("reading Postgres's counters: %w", err)
	}
	defer c.Close(ctx)
	// The statistics of other sessions arrive with a delay of up to a second.
	time.Sleep(1100 * time.Millisecond)
	err = c.QueryRow(ctx, `SELECT (SELECT sum(xact_commit) FROM pg_stat_database WHERE datname = current_database())::bigint,
		(pg_current_wal_insert_lsn() - '0/0')::bigint`).Scan(&tx, &wal)
	return tx, wal, err
}
