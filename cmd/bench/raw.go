//go:build unix

package main

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// measureRaw writes the journal rows of a chain with the cheapest possible statement, in natural
// groups over two connections. The number of callers is the number of tasks in flight. No engine on
// this store can be faster.
func (b *benchRun) measureRaw() error {
	if b.dsn == "" {
		return errors.New("raw is measured on Postgres only")
	}
	if err := b.prepareRaw(); err != nil {
		return err
	}
	lanes := make([]*rawLane, 2)
	for i := range lanes {
		conn, err := pgx.Connect(b.ctx, b.dsn)
		if err != nil {
			return err
		}
		lanes[i] = &rawLane{conn: conn}
		lanes[i].grown = sync.NewCond(&lanes[i].mu)
		b.runBackground(func() error { return lanes[i].writeRows(b.ctx) })
	}
	row := strings.Repeat("x", 450)
	m, err := b.startMeter()
	if err != nil {
		return err
	}
	var seen latencySamples
	err = b.forEach(b.o.concurrency, b.o.concurrency, func(c int) error {
		task := uuid.Must(uuid.NewV7())
		for seq := range b.o.n / b.o.concurrency {
			began := time.Now()
			if err := lanes[c%2].writeRow(rawRow{task, int64(seq), `"` + row + `"`}); err != nil {
				return err
			}
			seen.addSample(time.Since(began))
		}
		return nil
	})
	if err != nil {
		return err
	}
	seen.fillPercentiles(&b.result)
	if err := m.finishMeter(b.o.concurrency, b.o.n/b.o.concurrency*b.o.concurrency); err != nil {
		return err
	}
	for _, l := range lanes {
		l.close()
	}
	return nil
}

func (b *benchRun) prepareRaw() error {
	conn, err := pgx.Connect(b.ctx, b.dsn)
	if err != nil {
		return err
	}
	defer conn.Close(b.ctx)
	_, err = conn.Exec(b.ctx, `CREATE TABLE raw_events (task uuid, seq bigint, events json, PRIMARY KEY (task, seq))`)
	return err
}

type rawRow struct {
	task   uuid.UUID
	seq    int64
	events string
}

// rawLane groups the rows that arrive while a statement is running.
type rawLane struct {
	conn    *pgx.Conn
	mu      sync.Mutex
	grown   *sync.Cond
	waiting []rawRow
	answers []chan error
	closed  bool
}

func (l *rawLane) writeRow(r rawRow) error {
	done := make(chan error, 1)
	l.mu.Lock()
	l.waiting, l.answers = append(l.waiting, r), append(l.answers, done)
	l.grown.Signal()
	l.mu.Unlock()
	return <-done
}

func (l *rawLane) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	l.grown.Signal()
}

func (l *rawLane) writeRows(ctx context.Context) error {
	defer l.conn.Close(ctx)
	for {
		l.mu.Lock()
		for len(l.waiting) == 0 && !l.closed {
			l.grown.Wait()
		}
		rows, answers := l.waiting, l.answers
		l.waiting, l.answers = nil, nil
		l.mu.Unlock()
		if len(rows) == 0 {
			return nil
		}
		tasks, seqs, events := make([]uuid.UUID, len(rows)), make([]int64, len(rows)), make([]string, len(rows))
		for i, r := range rows {
			tasks[i], seqs[i], events[i] = r.task, r.seq, r.events
		}
		_, err := l.conn.Exec(ctx, `INSERT INTO raw_events SELECT * FROM unnest($1::uuid[], $2::bigint[], $3::json[])`, tasks, seqs, events)
		for _, done := range answers {
			done <- err
		}
	}
}
