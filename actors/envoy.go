package actors

import (
	"sync"
	"time"

	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// envoy brings orders of this member to whoever owns their tasks: what jobs have reported whose tasks have moved, until
// somebody has taken it. Of each shard, which has one owner, one lot is on its way while the next one gathers.
type envoy struct {
	m     *Member
	mu    sync.Mutex
	lines map[int]*envoyLine // by shard, those with something in them

	told              map[engine.Order]bool // what is said of keys, again and again, is on its way once
	reported, earlier map[jobKey]int        // which time of its being given to a carrier was reported, of jobs; all = how it ended
	turned            int64                 // since when they are in the first one
}

// all times that a job is given to a carrier: it has ended.
const all = -1

// envoyLine is orders, each of which is brought again and again until somebody has taken it.
type envoyLine struct{ away, waiting engine.Orders }

// What an envoy carries at once, and how long it stays away with it.
const (
	maxLetters     = 500
	maxLetterBytes = 8 << 20
	envoyStays     = 10 * time.Second
)

// reportedFor is for how long, in milliseconds, it is remembered at least that a job has been reported. A task asks for what
// it is owed as soon as it has been loaded.
const reportedFor = int64(60_000)

// maxReported is after how many reports they are remembered for a shorter time.
const maxReported = 100_000

func newEnvoy(m *Member) *envoy {
	return &envoy{m: m, lines: map[int]*envoyLine{}, told: map[engine.Order]bool{}}
}

// send brings a command to its task until its owner has taken it.
func (e *envoy) send(task string, cmd flow.Command) {
	reports, many := cmd.(flow.Reports)
	if !many {
		e.add(engine.Order{Task: task, Command: cmd})
		return
	}
	for _, r := range reports {
		e.add(engine.Order{Task: task, Command: r})
	}
}

func (e *envoy) add(o engine.Order) {
	shard := persistence.ShardOf(o.Task)
	e.mu.Lock()
	defer e.mu.Unlock()
	if aboutPermit(o.Command) {
		if e.told[o] {
			return
		}
		e.told[o] = true
	}
	e.remember(o)
	line := e.lines[shard]
	if line == nil {
		line = &envoyLine{}
		e.lines[shard] = line
		e.m.background(func() { e.run(shard) })
	}
	line.waiting = append(line.waiting, o)
}

// run brings what is in a line until it is empty.
func (e *envoy) run(shard int) {
	for try := 0; e.take(shard); {
		if e.bring(shard) {
			try = 0
			continue
		}
		if try++; try == 1 {
			e.m.log.Warn("what was reported for tasks of other members could not be brought there: trying on", "shard", shard)
		}
		if !e.m.pause(storePause(try)) {
			return
		}
	}
}

// take takes the next lot along with what nobody has taken yet. It is false when there is nothing: the line is no more.
func (e *envoy) take(shard int) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	line := e.lines[shard]
	n, bytes := len(line.away), 0
	for n < maxLetters && bytes < maxLetterBytes && len(line.waiting) > 0 {
		o := line.waiting[0]
		line.waiting[0] = engine.Order{}
		line.away, line.waiting = append(line.away, o), line.waiting[1:]
		bytes += bytesOf(o.Command)
		n++
	}
	if n == 0 {
		delete(e.lines, shard)
	}
	return n > 0
}

// bring carries out what is away, and keeps what has to be brought again. It says whether there was none.
func (e *envoy) bring(shard int) bool {
	e.mu.Lock()
	away := e.lines[shard].away
	e.mu.Unlock()
	ctx, cancel := e.m.bounded(envoyStays)
	outcomes := e.m.cfg.Others.Do(ctx, away)
	cancel()
	e.mu.Lock()
	defer e.mu.Unlock()
	var again engine.Orders
	for i, o := range away {
		switch {
		case !taken(outcomes[i].Err):
			again = append(again, o)
			e.remember(o)
		case aboutPermit(o.Command):
			delete(e.told, o)
		}
	}
	e.lines[shard].away = again
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
func (e *envoy) remember(o engine.Order) {
	r, ok := o.Command.(flow.Report)
	if !ok {
		return
	}
	job := jobKey{o.Task, r.Address}
	if now := e.m.now(); now-e.turned > reportedFor || len(e.reported) >= maxReported {
		e.turned, e.reported, e.earlier = now, map[jobKey]int{}, e.reported
	}
	e.reported[job] = all
	if r.Lost {
		e.reported[job] = r.Given
	}
}

// has says whether what a job has reported was given to the envoy, not long ago: how it ended, or that this member does not carry
// it out which was given it then.
func (e *envoy) has(job jobKey, given int) bool {
	if e.m.owned.fixed {
		return false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, noted := range []map[jobKey]int{e.reported, e.earlier} {
		if was, ok := noted[job]; ok {
			return was == all || was == given
		}
	}
	return false
}

// empty says whether everything has been brought.
func (e *envoy) empty() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.lines) == 0
}
