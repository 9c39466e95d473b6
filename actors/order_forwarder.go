package actors

import (
	"sync"
	"time"

	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// orderForwarder sends this member's orders to the owners of their tasks, with retries until an
// owner has accepted them. These are mainly reports of jobs whose tasks have moved. Each shard has
// one owner, and for each shard one batch is in flight while the next one gathers.
type orderForwarder struct {
	m           *Member
	mu          sync.Mutex
	lineByShard map[int]*orderLine // by shard, non-empty lines

	// permit decisions that are queued already, because they are repeated
	queuedPermits map[engine.Order]bool
	// by job: the delivery that was reported lost, or allDeliveries if the job ended
	reported, reportedBefore map[jobKey]int
	// when reported was last rotated to reportedBefore
	rotatedAt int64
}

// allDeliveries stands for all deliveries of a job: it has ended.
const allDeliveries = -1

// orderLine holds the orders for a shard. Each is retried until the shard's owner has accepted it.
type orderLine struct{ away, waiting engine.Orders }

// Limits of one batch, and how long the owner may take to answer.
const (
	maxOrders     = 500
	maxOrderBytes = 8 << 20
	orderTimeout  = 10 * time.Second
)

// reportedFor is the minimum time, in milliseconds, for which the report of a job is remembered. A
// task asks for its outstanding jobs right after it is loaded.
const reportedFor = int64(60_000)

// maxReported is the number of reports beyond which they are remembered for a shorter time.
const maxReported = 100_000

func newOrderForwarder(m *Member) *orderForwarder {
	return &orderForwarder{m: m, lineByShard: map[int]*orderLine{}, queuedPermits: map[engine.Order]bool{}}
}

// sendCommand sends a command, with retries until the owner of its task has accepted it.
func (f *orderForwarder) sendCommand(task string, cmd flow.Command) {
	reports, many := cmd.(flow.Reports)
	if !many {
		f.enqueueOrder(engine.Order{Task: task, Command: cmd})
		return
	}
	for _, r := range reports {
		f.enqueueOrder(engine.Order{Task: task, Command: r})
	}
}

func (f *orderForwarder) enqueueOrder(o engine.Order) {
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
		f.m.runBackground(func() { f.sendOrders(shard) })
	}
	line.waiting = append(line.waiting, o)
}

// sendOrders sends the orders of a line until it is empty.
func (f *orderForwarder) sendOrders(shard int) {
	for try := 0; f.takeBatch(shard); {
		if f.sendBatch(shard) {
			try = 0
			continue
		}
		if try++; try == 1 {
			f.m.log.Warn("what was reported for tasks of other members could not be brought there: trying on", "shard", shard)
		}
		if !f.m.sleepFor(storePause(try)) {
			return
		}
	}
}

// takeBatch adds the next orders to those not yet accepted. It returns false and removes the line
// if there are none.
func (f *orderForwarder) takeBatch(shard int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	line := f.lineByShard[shard]
	n, bytes := len(line.away), 0
	for n < maxOrders && bytes < maxOrderBytes && len(line.waiting) > 0 {
		o := line.waiting[0]
		line.waiting[0] = engine.Order{}
		line.away, line.waiting = append(line.away, o), line.waiting[1:]
		bytes += bytesOf(o.Command)
		n++
	}
	if n == 0 {
		delete(f.lineByShard, shard)
	}
	return n > 0
}

// sendBatch sends the batch, and keeps the orders that need a retry. It reports whether all were
// accepted.
func (f *orderForwarder) sendBatch(shard int) bool {
	f.mu.Lock()
	away := f.lineByShard[shard].away
	f.mu.Unlock()
	ctx, cancel := f.m.timeoutContext(orderTimeout)
	outcomes := f.m.cfg.Others.Do(ctx, away)
	cancel()
	f.mu.Lock()
	defer f.mu.Unlock()
	var again engine.Orders
	for i, o := range away {
		switch {
		case !isDelivered(outcomes[i].Err):
			again = append(again, o)
			f.rememberReport(o)
		case isPermitCommand(o.Command):
			delete(f.queuedPermits, o)
		}
	}
	f.lineByShard[shard].away = again
	return len(again) == 0
}

// isDelivered reports whether a task has received a command, even if it refused it.
func isDelivered(err error) bool {
	switch flow.ErrorKindOf(err) {
	case flow.Busy, flow.Moved:
		return false
	case "":
		return err == nil
	}
	return true
}

// rememberReport records that a job has been reported, so that the job is not repeated if its task
// comes back before the report is stored. Orders that were not accepted are recorded again.
func (f *orderForwarder) rememberReport(o engine.Order) {
	r, ok := o.Command.(flow.Report)
	if !ok {
		return
	}
	job := jobKey{o.Task, r.Address}
	if now := f.m.nowMillis(); now-f.rotatedAt > reportedFor || len(f.reported) >= maxReported {
		f.rotatedAt, f.reported, f.reportedBefore = now, map[jobKey]int{}, f.reported
	}
	f.reported[job] = allDeliveries
	if r.Lost {
		f.reported[job] = r.Given
	}
}

// hasReported reports whether the forwarder recently got a report of this job: its end, or that
// this member lost the given delivery.
func (f *orderForwarder) hasReported(job jobKey, given int) bool {
	if f.m.owned.ownsAll {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, noted := range []map[jobKey]int{f.reported, f.reportedBefore} {
		if was, ok := noted[job]; ok {
			return was == allDeliveries || was == given
		}
	}
	return false
}

// isEmpty reports whether the owners have accepted everything.
func (f *orderForwarder) isEmpty() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.lineByShard) == 0
}
