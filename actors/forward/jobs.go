package forward

import (
	"slices"
	"sync"
	"time"

	"github.com/troupe-engine/troupe/actors/background"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/persistence"
)

// Jobs sends jobs and withdrawals to the members that carry out the jobs, by incarnation. It sends
// in order and retries until the member has answered or is gone. It sends no job of a task that has
// moved, because the new owner sends it and a late copy might run twice. A late withdrawal is
// harmless, because it names one delivery of the job.
type Jobs struct {
	cfg Config

	mu            sync.Mutex
	lineByCarrier map[string]*jobLine // lines by carrier, while errands wait or are in flight
}

type jobLine struct{ away, waiting []pendingErrand }

// pendingErrand is an errand that waits to be sent, with the inbox of the actor that owns the job.
type pendingErrand struct {
	engine.Errand
	inbox Inbox
}

// Inbox is the inbox of the actor that owns a job.
type Inbox interface {
	// HasMoved reports whether the task has moved to another member.
	HasMoved() bool
	// IsAbandoned reports whether the step of the inbox has ended.
	IsAbandoned() bool
}

// NewJobs creates the forwarder of jobs.
func NewJobs(cfg Config) *Jobs {
	return &Jobs{cfg: cfg, lineByCarrier: map[string]*jobLine{}}
}

// isVoid reports whether a job must not be sent anymore, because its step has ended or its task has
// moved. Withdrawals and ends of waits may be sent late. A task that moved and came back has
// another inbox, so its old errands are void.
func (l *pendingErrand) isVoid(shards Shards) bool {
	return !l.Withdrawn && !l.OnlyEnds() && (!shards.OwnsTask(l.Job.Task) || l.inbox.HasMoved() || l.inbox.IsAbandoned())
}

// maxErrands and maxErrandBytes bound one batch. jobTimeout is how long the carrier may take to
// answer.
const (
	maxErrands     = 500
	maxErrandBytes = 4 << 20
	jobTimeout     = 2 * time.Second
)

// Enqueue sends a job or its withdrawal to a carrier. in is the inbox of the actor that owns the
// job.
func (f *Jobs) Enqueue(carrier string, e engine.Errand, in Inbox) {
	f.mu.Lock()
	defer f.mu.Unlock()
	line := f.lineByCarrier[carrier]
	if line == nil {
		line = &jobLine{}
		f.lineByCarrier[carrier] = line
		f.cfg.Work.Run(func() { f.sendErrands(carrier) })
	}
	line.waiting = append(line.waiting, pendingErrand{e, in})
}

// sendErrands sends the errands for a carrier until none is left. If the carrier is gone, the tasks
// recover its jobs.
func (f *Jobs) sendErrands(carrier string) {
	try := 0
	for batch := f.takeBatch(carrier); len(batch) > 0; batch = f.takeBatch(carrier) {
		ctx, cancel := f.cfg.Work.WithTimeout(jobTimeout)
		err := f.cfg.Others.Carry(ctx, carrier, errandsOf(batch))
		cancel()
		switch {
		case err == nil:
			try = 0
			continue
		case !f.cfg.IsAlive(carrier):
			f.recoverUnsent(carrier)
			return
		}
		f.requeueBatch(carrier, batch)
		if try++; try == 1 {
			f.cfg.Log.Warn("forwarding jobs to a member failed, retrying", "incarnation", carrier, "error", err)
		}
		if !f.cfg.Work.Sleep(background.StorePause(try)) {
			return
		}
	}
}

// takeBatch returns the next batch. If there is none, it removes the line.
func (f *Jobs) takeBatch(carrier string) []pendingErrand {
	f.mu.Lock()
	defer f.mu.Unlock()
	line, bytes := f.lineByCarrier[carrier], 0
	line.away = nil
	for len(line.waiting) > 0 && len(line.away) < maxErrands && bytes < maxErrandBytes {
		l := line.waiting[0]
		line.waiting[0] = pendingErrand{}
		line.waiting = line.waiting[1:]
		if !l.isVoid(f.cfg.Shards) {
			line.away = append(line.away, l)
			bytes += l.Bytes()
		}
	}
	if len(line.away) == 0 {
		delete(f.lineByCarrier, carrier)
	}
	return line.away
}

func errandsOf(batch []pendingErrand) engine.Errands {
	all := make(engine.Errands, len(batch))
	for i := range batch {
		all[i] = batch[i].Errand
	}
	return all
}

// requeueBatch puts a failed batch back at the front of the line.
func (f *Jobs) requeueBatch(carrier string, batch []pendingErrand) {
	f.mu.Lock()
	defer f.mu.Unlock()
	line := f.lineByCarrier[carrier]
	line.away, line.waiting = nil, slices.Concat(batch, line.waiting)
}

// IsQueued reports whether a job of a task waits to be sent to a carrier.
func (f *Jobs) IsQueued(carrier, task string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	line := f.lineByCarrier[carrier]
	return line != nil && slices.ContainsFunc(line.waiting, func(l pendingErrand) bool { return l.Job.Task == task })
}

// IsSendingFor reports whether jobs of tasks in some shards are in flight.
func (f *Jobs) IsSendingFor(shards persistence.ShardSet) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, line := range f.lineByCarrier {
		if slices.ContainsFunc(line.away, func(l pendingErrand) bool { return shards.Has(l.Job.Task) }) {
			return true
		}
	}
	return false
}

// recoverUnsent makes the tasks recover the jobs that a departed carrier did not get.
func (f *Jobs) recoverUnsent(carrier string) {
	f.mu.Lock()
	line := slices.Concat(f.lineByCarrier[carrier].away, f.lineByCarrier[carrier].waiting)
	delete(f.lineByCarrier, carrier)
	f.mu.Unlock()
	recovered := map[string]bool{}
	for i := range line {
		if task := line[i].Job.Task; !line[i].Withdrawn && !line[i].OnlyEnds() && !recovered[task] {
			recovered[task] = true
			f.cfg.RecoverTask(task)
		}
	}
}
