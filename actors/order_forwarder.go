package actors

import (
	"sync"
	"time"

	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// orderForwarder sends orders of this member to the owners of their tasks: what jobs have reported whose tasks have moved, until
// an owner has taken it. Of each shard, which has one owner, one batch is on its way while the next one gathers.
type orderForwarder struct {
	m     *Member
	mu    sync.Mutex
	lines map[int]*orderLine // by shard, those with something in them

	told              map[engine.Order]bool // what is said of keys, again and again, is on its way once
	reported, earlier map[jobKey]int        // which time of its being given to a carrier was reported, of jobs; all = how it ended
	turned            int64                 // since when they are in the first one
}

// all times that a job is given to a carrier: it has ended.
const all = -1

// orderLine is the orders for a shard, each of which is sent again until the shard's owner has taken it.
type orderLine struct{ away, waiting engine.Orders }

// What an orderForwarder sends at once, and how long the owner may take to answer.
const (
	maxOrders     = 500
	maxOrderBytes = 8 << 20
	orderTimeout  = 10 * time.Second
)

// reportedFor is for how long, in milliseconds, it is remembered at least that a job has been reported. A task asks for what
// it is owed as soon as it has been loaded.
const reportedFor = int64(60_000)

// maxReported is after how many reports they are remembered for a shorter time.
const maxReported = 100_000

func newOrderForwarder(m *Member) *orderForwarder {
	return &orderForwarder{m: m, lines: map[int]*orderLine{}, told: map[engine.Order]bool{}}
}

// send has a command sent until the owner of its task has taken it.
func (f *orderForwarder) send(task string, cmd flow.Command) {
	reports, many := cmd.(flow.Reports)
	if !many {
		f.add(engine.Order{Task: task, Command: cmd})
		return
	}
	for _, r := range reports {
		f.add(engine.Order{Task: task, Command: r})
	}
}

func (f *orderForwarder) add(o engine.Order) {
	shard := persistence.ShardOf(o.Task)
	f.mu.Lock()
	defer f.mu.Unlock()
	if aboutPermit(o.Command) {
		if f.told[o] {
			return
		}
		f.told[o] = true
	}
	f.remember(o)
	line := f.lines[shard]
	if line == nil {
		line = &orderLine{}
		f.lines[shard] = line
		f.m.background(func() { f.run(shard) })
	}
	line.waiting = append(line.waiting, o)
}

// run sends what is in a line until it is empty.
func (f *orderForwarder) run(shard int) {
	for try := 0; f.take(shard); {
		if f.bring(shard) {
			try = 0
			continue
		}
		if try++; try == 1 {
			f.m.log.Warn("what was reported for tasks of other members could not be brought there: trying on", "shard", shard)
		}
		if !f.m.pause(storePause(try)) {
			return
		}
	}
}

// take adds the next orders to those that no owner has taken yet. It is false when there are none: the line is no more.
func (f *orderForwarder) take(shard int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	line := f.lines[shard]
	n, bytes := len(line.away), 0
	for n < maxOrders && bytes < maxOrderBytes && len(line.waiting) > 0 {
		o := line.waiting[0]
		line.waiting[0] = engine.Order{}
		line.away, line.waiting = append(line.away, o), line.waiting[1:]
		bytes += bytesOf(o.Command)
		n++
	}
	if n == 0 {
		delete(f.lines, shard)
	}
	return n > 0
}

// bring sends what is away, and keeps what has to be sent again. It says whether there was none.
func (f *orderForwarder) bring(shard int) bool {
	f.mu.Lock()
	away := f.lines[shard].away
	f.mu.Unlock()
	ctx, cancel := f.m.bounded(orderTimeout)
	outcomes := f.m.cfg.Others.Do(ctx, away)
	cancel()
	f.mu.Lock()
	defer f.mu.Unlock()
	var again engine.Orders
	for i, o := range away {
		switch {
		case !taken(outcomes[i].Err):
			again = append(again, o)
			f.remember(o)
		case aboutPermit(o.Command):
			delete(f.told, o)
		}
	}
	f.lines[shard].away = again
	return len(again) == 0
}

// taken says whether a task has heard what it was told, whatever it thinks of that.
func taken(err error) bool {
	switch flow.ErrorKindOf(err) {
	case flow.Busy, flow.Moved:
		return false
	case "":
		return err == nil
	}
	return true
}

// remember notes that a job has been reported: it is not carried out again, should its task come back before that is
// stored, or before the task knows. What nobody has taken is noted again.
func (f *orderForwarder) remember(o engine.Order) {
	r, ok := o.Command.(flow.Report)
	if !ok {
		return
	}
	job := jobKey{o.Task, r.Address}
	if now := f.m.now(); now-f.turned > reportedFor || len(f.reported) >= maxReported {
		f.turned, f.reported, f.earlier = now, map[jobKey]int{}, f.reported
	}
	f.reported[job] = all
	if r.Lost {
		f.reported[job] = r.Given
	}
}

// has says whether what a job has reported was given to the forwarder, not long ago: how it ended, or that this member does not carry
// it out which was given it then.
func (f *orderForwarder) has(job jobKey, given int) bool {
	if f.m.owned.fixed {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, noted := range []map[jobKey]int{f.reported, f.earlier} {
		if was, ok := noted[job]; ok {
			return was == all || was == given
		}
	}
	return false
}

// empty says whether the owners have taken everything.
func (f *orderForwarder) empty() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.lines) == 0
}
