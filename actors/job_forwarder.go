package actors

import (
	"slices"
	"sync"
	"time"

	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/persistence"
)

// jobForwarder sends jobs to the members that carry them out, by incarnation, and withdraws jobs
// that are no longer needed. It sends in order and retries until the member has answered or is
// gone. It sends no job of a task that has moved: the next owner does, and a late job might be
// carried out twice. A withdrawal may arrive late: it names one delivery of the job, so it does not
// cancel a delivery that the next owner has made since.
type jobForwarder struct {
	m             *Member
	mu            sync.Mutex
	lineByCarrier map[string]*jobLine // by carrier, while something is in flight to it
}

type jobLine struct{ away, waiting []pendingErrand }

// pendingErrand is an errand that waits to be sent, with the inbox of the actor that owns the job.
type pendingErrand struct {
	engine.Errand
	inbox *inbox
}

// isVoid reports whether a job must not be sent anymore: its step has ended, or its task has moved.
// A task that moved away and came back has another inbox: the state of the job meanwhile is not
// known here.
func (l *pendingErrand) isVoid(m *Member) bool {
	return !l.Withdrawn && (!m.owned.ownsTask(l.Job.Task) || l.inbox.hasMoved() || l.inbox.isAbandoned())
}

// Limits of one batch, and how long the carrier may take to answer.
const (
	maxErrands     = 500
	maxErrandBytes = 4 << 20
	jobTimeout     = 2 * time.Second
)

func (f *jobForwarder) enqueueErrand(carrier string, e engine.Errand, in *inbox) {
	f.mu.Lock()
	defer f.mu.Unlock()
	line := f.lineByCarrier[carrier]
	if line == nil {
		line = &jobLine{}
		f.lineByCarrier[carrier] = line
		f.m.runBackground(func() { f.sendErrands(carrier) })
	}
	line.waiting = append(line.waiting, pendingErrand{e, in})
}

// sendErrands sends the errands for a carrier until none is left. If the carrier is gone, its jobs
// are recovered.
func (f *jobForwarder) sendErrands(carrier string) {
	try := 0
	for batch := f.takeBatch(carrier); len(batch) > 0; batch = f.takeBatch(carrier) {
		ctx, cancel := f.m.timeoutContext(jobTimeout)
		err := f.m.cfg.Others.Carry(ctx, carrier, errandsOf(batch))
		cancel()
		switch {
		case err == nil:
			try = 0
			continue
		case !f.m.isMemberAlive(carrier):
			f.recoverUnsent(carrier)
			return
		}
		f.requeueBatch(carrier, batch)
		if try++; try == 1 {
			f.m.log.Warn("a member could not be given its jobs: trying on", "incarnation", carrier, "error", err)
		}
		if !f.m.sleepFor(storePause(try)) {
			return
		}
	}
}

// takeBatch returns the next batch. If there is none, it removes the line.
func (f *jobForwarder) takeBatch(carrier string) []pendingErrand {
	f.mu.Lock()
	defer f.mu.Unlock()
	line, bytes := f.lineByCarrier[carrier], 0
	line.away = nil
	for len(line.waiting) > 0 && len(line.away) < maxErrands && bytes < maxErrandBytes {
		l := line.waiting[0]
		line.waiting[0] = pendingErrand{}
		line.waiting = line.waiting[1:]
		if !l.isVoid(f.m) {
			line.away = append(line.away, l)
			bytes += len(l.Job.Input) + len(l.Job.Params)
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

// requeueBatch puts a batch that failed back in front of the line.
func (f *jobForwarder) requeueBatch(carrier string, batch []pendingErrand) {
	f.mu.Lock()
	defer f.mu.Unlock()
	line := f.lineByCarrier[carrier]
	line.away, line.waiting = nil, slices.Concat(batch, line.waiting)
}

// isSendingFor reports whether jobs of tasks in some shards are in flight.
func (f *jobForwarder) isSendingFor(shards persistence.ShardSet) bool {
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
func (f *jobForwarder) recoverUnsent(carrier string) {
	f.mu.Lock()
	line := slices.Concat(f.lineByCarrier[carrier].away, f.lineByCarrier[carrier].waiting)
	delete(f.lineByCarrier, carrier)
	f.mu.Unlock()
	told := map[string]bool{}
	for i := range line {
		if task := line[i].Job.Task; !line[i].Withdrawn && !told[task] {
			told[task] = true
			f.m.sendMessage(f.m.tasks, &taskCommand{task: task, command: f.m.recoverCommand(task)})
		}
	}
}
