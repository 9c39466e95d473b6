//go:build unix

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/troupe-engine/troupe"
)

// taskMoves counts the tasks that have continued after their member was killed, or after their
// timer was due.
type taskMoves struct {
	tasks sync.Map
	count atomic.Int64
	most  int64
	all   chan struct{} // closed when all tasks have continued
}

func (m *taskMoves) markMoved(task string) {
	if _, again := m.tasks.LoadOrStore(task, time.Now()); !again && m.count.Add(1) == m.most {
		close(m.all)
	}
}

// movedAt returns the time when a task continued.
func (m *taskMoves) movedAt(task string) time.Time {
	at, _ := m.tasks.Load(task)
	moved, _ := at.(time.Time)
	return moved
}

// awaitAll waits until all tasks have continued.
func (m *taskMoves) awaitAll(ctx context.Context) error {
	select {
	case <-m.all:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(5 * time.Minute):
		return fmt.Errorf("%d of %d tasks went on", m.count.Load(), m.most)
	}
}

// holdJob carries out a job that lasts as long as its member, in the process that is killed. In the
// following process, holdJob only counts the job.
func (b *benchRun) holdJob(ctx context.Context, job troupe.Job) (json.RawMessage, error) {
	if b.moves == nil {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	b.moves.markMoved(job.Task)
	return nil, nil
}

// memberKilled kills a member process with running tasks and opens another member on its store. It
// measures the time until the last task has continued, and the memory.
func (b *benchRun) memberKilled() error {
	store, err := b.ownStore()
	if err != nil {
		return err
	}
	if err := b.countUnderWay(store); err != nil {
		return err
	}
	b.store, b.moves = store, &taskMoves{most: int64(b.o.n), all: make(chan struct{})}
	before := settledRSS()
	m, err := b.startMeter()
	if err != nil {
		return err
	}
	if err := b.openEngine(); err != nil {
		return err
	}
	if _, err := b.engine.Member(b.ctx); err != nil {
		return err
	}
	if err := b.moves.awaitAll(b.ctx); err != nil {
		return err
	}
	last := time.Since(m.began)
	if err := m.finishMeter(b.o.n, b.o.n); err != nil {
		return err
	}
	b.result.Extra = map[string]float64{"last_moved_after_s": last.Seconds(), "rss_before_mb": before}
	return nil
}

// countUnderWay starts the tasks on a member that is killed as soon as all tasks are stored.
func (b *benchRun) countUnderWay(store string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	s, err := b.startServed(self, "-workload", "functions", "-store", store)
	if err != nil {
		return err
	}
	err = s.publishFlow(b.ctx, "held", chainOf(1, "exec_type: local_func, func: hold"))
	if err == nil {
		err = b.forEach(b.o.n, b.o.concurrency, func(int) error {
			return s.sendRequest(b.ctx, http.MethodPost, "/v1/tasks", "application/json",
				[]byte(`{"flow":"held","params":{"p":1}}`), &struct{}{})
		})
	}
	killed := s.cmd.Process.Kill()
	s.rest.Wait()
	_ = s.cmd.Wait() // "signal: killed" is expected
	return errors.Join(err, killed)
}
