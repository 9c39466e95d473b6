package actors

import (
	"sync"
	"time"

	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// orderForwarder sends orders of this member to the owners of their tasks: what jobs have reported
// whose tasks have moved, until an owner has taken it. Of each shard, which has one owner, one
// batch is on its way while the next one gathers.
type orderForwarder struct {
	m           *Member
	mu          sync.Mutex
	lineByShard map[int]*orderLine // by shard, those with something in them

	queuedPermits            map[engine.Order]bool // what is said of keys, again and again, is on its way once
	reported, reportedBefore map[jobKey]int        // which time of its being given to a carrier was reported, of jobs; all = how it ended
	rotatedAt                int64                 // since when they are in the first one
}

// allDeliveries times that a job is given to a carrier: it has ended.
const allDeliveries = -1

// orderLine is the orders for a shard, each of which is sent again until the shard's owner has
// taken it.
type orderLine struct{ away, waiting engine.Orders }

// What an orderForwarder sends at once, and how long the owner may take to answer.
const (
	maxOrders     = 500
	maxOrderBytes = 8 << 20
	orderTimeout  = 10 * time.Second
)

// reportedFor is for how long, in milliseconds, it is remembered at least that a job has been
// reported. A task asks for what it is owed as soon as it has been loaded.
const reportedFor = int64(60_000)

// maxReported is after how many reports they are remembered for a shorter time.
const maxReported = 100_000

func newOrderForwarder(m *Member) *orderForwarder {
	return &orderForwarder{m: m, lineByShard: map[int]*orderLine{}, queuedPermits: map[engine.Order]bool{}}
}

// sendCommand has a command sent until the owner of its task has taken it.
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

// sendOrders sends what is in a line until it is empty.
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

// takeBatch adds the next orders to those that no owner has taken yet. It is false when there are
// none: the line is no more.
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

// sendBatch sends what is away, and keeps what has to be sent again. It says whether there was
// none.
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

// isDelivered reports whether a task has heard what it was told, whatever it thinks of that.
func isDelivered(err error) bool {
	switch flow.ErrorKindOf(err) {
	case flow.Busy, flow.Moved:
		return false
	case "":
		return err == nil
	}
	return true
}

// rememberReport notes that a job has been reported: it is not carried out again, should its task
// come back before that is stored, or before the task knows. What nobody has taken is noted again.
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

// hasReported reports whether what a job has reported was given to the forwarder, not long ago: how
// it ended, or that this member does not carry it out which was given it then.
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

// isEmpty reports whether the owners have taken everything.
func (f *orderForwarder) isEmpty() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.lineByShard) == 0
}
