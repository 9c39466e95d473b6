// Package forward sends orders, claims and jobs to other members in batches, with a line for each
// destination. All types are structures with locks.
package forward

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/troupe-engine/troupe/actors/background"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// Orders sends orders of this member to the owners of their tasks, with retries until an owner has
// accepted them. Most are reports of jobs whose tasks have moved. For each shard, one batch is in
// flight while the next one gathers.
type Orders struct {
	cfg Config

	mu          sync.Mutex
	lineByShard map[int]*orderLine // non-empty lines by shard

	// queued decisions about permits, to drop repetitions
	queuedPermits map[engine.Order]bool
	// newest report of each job, in two generations
	reported, reportedBefore map[engine.JobKey]notedReport
	// when reported was last rotated to reportedBefore
	rotatedAt int64
}

// Config configures the forwarders of a member.
type Config struct {
	Others Members // nil if there are none
	Shards Shards
	Now    func() int64 // the store's time in Unix milliseconds
	Work   *background.Work
	Log    *slog.Logger
	// IsAlive reports whether another member is alive, by its incarnation.
	IsAlive func(incarnation string) bool
	// RecoverTask makes a task recover the jobs of members that are gone.
	RecoverTask func(task string)
}

// Members are the other members, as far as forwarders need them.
type Members interface {
	Do(ctx context.Context, orders engine.Orders) engine.Outcomes
	Owner(task string) string
	Carry(ctx context.Context, carrier string, errands engine.Errands) error
}

// Shards knows which tasks this member owns.
type Shards interface {
	OwnsAll() bool
	OwnsTask(task string) bool
}

// notedReport is a remembered report of a job. ends reports whether the report ended the job;
// otherwise it only returned one delivery.
type notedReport struct {
	given int
	ends  bool
}

// orderLine holds the orders for a shard. Each is retried until the shard's owner has accepted it.
type orderLine struct{ away, waiting engine.Orders }

// maxOrders and maxOrderBytes bound one batch. orderTimeout is how long the owner may take to
// answer.
const (
	maxOrders     = 500
	maxOrderBytes = 8 << 20
	orderTimeout  = 10 * time.Second
)

// reportedFor is the minimum time, in milliseconds, for which a report is remembered. This covers
// the request for outstanding jobs, which a task sends right after it is loaded.
const reportedFor = int64(60_000)

// maxReported is the number of remembered reports above which they are forgotten earlier.
const maxReported = 100_000

// NewOrders creates the forwarder of orders.
func NewOrders(cfg Config) *Orders {
	return &Orders{cfg: cfg, lineByShard: map[int]*orderLine{}, queuedPermits: map[engine.Order]bool{}}
}

// SendCommand sends a command, with retries until the owner of its task has accepted it.
func (f *Orders) SendCommand(task string, cmd flow.Command) {
	reports, many := cmd.(flow.Reports)
	if !many {
		f.Enqueue(engine.Order{Task: task, Command: cmd})
		return
	}
	for _, r := range reports {
		f.Enqueue(engine.Order{Task: task, Command: r})
	}
}

// Enqueue sends an order, with retries until the owner of its task has accepted it.
func (f *Orders) Enqueue(o engine.Order) {
	shard := persistence.ShardOf(o.Task)
	f.mu.Lock()
	defer f.mu.Unlock()
	if isPermitCommand(o.Command) {
		if f.queuedPermits[o] {
			return
		}
		f.queuedPermits[o] = true
	}
	f.rememberReport(o)
	line := f.lineByShard[shard]
	if line == nil {
		line = &orderLine{}
		f.lineByShard[shard] = line
		f.cfg.Work.Run(func() { f.sendOrders(shard) })
	}
	line.waiting = append(line.waiting, o)
}

// sendOrders sends the orders of a line until it is empty.
func (f *Orders) sendOrders(shard int) {
	for try := 0; f.takeBatch(shard); {
		if f.sendBatch(shard) {
			try = 0
			continue
		}
		if try++; try == 1 {
			f.cfg.Log.Warn("forwarding reports to other members failed, retrying", "shard", shard)
		}
		if !f.cfg.Work.Sleep(background.StorePause(try)) {
			return
		}
	}
}

// takeBatch adds waiting orders to those that were not accepted yet. If there are none, it removes
// the line and returns false.
func (f *Orders) takeBatch(shard int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	line := f.lineByShard[shard]
	n, bytes := len(line.away), 0
	for n < maxOrders && bytes < maxOrderBytes && len(line.waiting) > 0 {
		o := line.waiting[0]
		line.waiting[0] = engine.Order{}
		line.away, line.waiting = append(line.away, o), line.waiting[1:]
		bytes += engine.BytesOf(o.Command)
		n++
	}
	if n == 0 {
		delete(f.lineByShard, shard)
	}
	return n > 0
}

// sendBatch sends the batch, and keeps the orders that need a retry. It reports whether all were
// accepted.
func (f *Orders) sendBatch(shard int) bool {
	f.mu.Lock()
	away := f.lineByShard[shard].away
	f.mu.Unlock()
	ctx, cancel := f.cfg.Work.WithTimeout(orderTimeout)
	outcomes := f.cfg.Others.Do(ctx, away)
	cancel()
	f.mu.Lock()
	defer f.mu.Unlock()
	var again engine.Orders
	for i, o := range away {
		switch {
		case !engine.IsDelivered(outcomes[i].Err):
			again = append(again, o)
			f.rememberReport(o)
		case isPermitCommand(o.Command):
			delete(f.queuedPermits, o)
		}
	}
	f.lineByShard[shard].away = again
	return len(again) == 0
}

// rememberReport records the report of a job. So the job is not repeated if its task returns to
// this member before the report is stored. Orders that were not accepted are recorded again.
func (f *Orders) rememberReport(o engine.Order) {
	r, ok := o.Command.(flow.Report)
	if !ok {
		return
	}
	job := engine.JobKey{Task: o.Task, At: r.Address}
	if now := f.cfg.Now(); now-f.rotatedAt > reportedFor || len(f.reported) >= maxReported {
		f.rotatedAt, f.reported, f.reportedBefore = now, map[engine.JobKey]notedReport{}, f.reported
	}
	f.reported[job] = notedReport{r.Given, !r.Lost && r.GivenUp == nil}
}

// HasReported reports whether the job recently ended here, or its given delivery was returned. For
// a function flow, only a report of the given delivery counts.
func (f *Orders) HasReported(job engine.JobKey, given int, function bool) bool {
	if f.cfg.Shards.OwnsAll() {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, noted := range []map[engine.JobKey]notedReport{f.reported, f.reportedBefore} {
		if was, ok := noted[job]; ok {
			return was.ends && !function || was.given == given
		}
	}
	return false
}

// CountPending returns how many orders no owner has accepted yet.
func (f *Orders) CountPending() (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, line := range f.lineByShard {
		n += len(line.away) + len(line.waiting)
	}
	return n
}

// IsEmpty reports whether the owners have accepted all orders.
func (f *Orders) IsEmpty() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.lineByShard) == 0
}

// isPermitCommand reports whether an order carries a decision about a permit.
func isPermitCommand(cmd flow.Command) bool {
	switch cmd.(type) {
	case flow.Granted, flow.Evict:
		return true
	}
	return false
}
