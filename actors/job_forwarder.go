package actors

import (
	"slices"
	"sync"
	"time"

	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/persistence"
)

// jobForwarder gives jobs to the members that are to carry them out, by their incarnations, and tells them which ones nobody waits for
// any longer: in order, and again and again until that member has heard it, or is gone. It gives none of a task that has moved:
// the next owner does, and a job that comes late might be carried out a second time. A withdrawal may come late: it ends one time of the job's
// being given, so it takes none away that the next owner has given since.
type jobForwarder struct {
	m     *Member
	mu    sync.Mutex
	lines map[string]*jobLine // by carrier, while something is on its way there
}

type jobLine struct{ away, waiting []heldErrand }

// heldErrand is an errand that waits to be sent, and the inbox of the actor whose job it is.
type heldErrand struct {
	engine.Errand
	inbox *inbox
}

// void says whether a job is not to be given any more: its step is over, or its task has moved. A task that has been elsewhere and is back
// has another inbox: what the job has come to meanwhile is not known here.
func (l *heldErrand) void(m *Member) bool {
	return !l.Withdrawn && (!m.owned.owns(l.Job.Task) || l.inbox.moved() || l.inbox.void())
}

// What is given at once, and how long the carrier may take to answer.
const (
	maxErrands     = 500
	maxErrandBytes = 4 << 20
	jobTimeout     = 2 * time.Second
)

func (f *jobForwarder) send(carrier string, e engine.Errand, in *inbox) {
	f.mu.Lock()
	defer f.mu.Unlock()
	line := f.lines[carrier]
	if line == nil {
		line = &jobLine{}
		f.lines[carrier] = line
		f.m.background(func() { f.run(carrier) })
	}
	line.waiting = append(line.waiting, heldErrand{e, in})
}

// run sends what there is for a carrier until there is no more. What one that is gone was to get is taken over.
func (f *jobForwarder) run(carrier string) {
	try := 0
	for batch := f.take(carrier); len(batch) > 0; batch = f.take(carrier) {
		ctx, cancel := f.m.bounded(jobTimeout)
		err := f.m.cfg.Others.Carry(ctx, carrier, errandsOf(batch))
		cancel()
		switch {
		case err == nil:
			try = 0
			continue
		case !f.m.lives(carrier):
			f.giveUp(carrier)
			return
		}
		f.back(carrier, batch)
		if try++; try == 1 {
			f.m.log.Warn("a member could not be given its jobs: trying on", "incarnation", carrier, "error", err)
		}
		if !f.m.pause(storePause(try)) {
			return
		}
	}
}

// take is what is sent at once. When there is nothing, the line is no more.
func (f *jobForwarder) take(carrier string) []heldErrand {
	f.mu.Lock()
	defer f.mu.Unlock()
	line, bytes := f.lines[carrier], 0
	line.away = nil
	for len(line.waiting) > 0 && len(line.away) < maxErrands && bytes < maxErrandBytes {
		l := line.waiting[0]
		line.waiting[0] = heldErrand{}
		line.waiting = line.waiting[1:]
		if !l.void(f.m) {
			line.away = append(line.away, l)
			bytes += len(l.Job.Input) + len(l.Job.Params)
		}
	}
	if len(line.away) == 0 {
		delete(f.lines, carrier)
	}
	return line.away
}

func errandsOf(batch []heldErrand) engine.Errands {
	all := make(engine.Errands, len(batch))
	for i := range batch {
		all[i] = batch[i].Errand
	}
	return all
}

// back keeps what was sent in vain.
func (f *jobForwarder) back(carrier string, batch []heldErrand) {
	f.mu.Lock()
	defer f.mu.Unlock()
	line := f.lines[carrier]
	line.away, line.waiting = nil, slices.Concat(batch, line.waiting)
}

// busyWith says whether jobs of tasks of some shards are being sent.
func (f *jobForwarder) busyWith(shards persistence.ShardSet) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, line := range f.lines {
		if slices.ContainsFunc(line.away, func(l heldErrand) bool { return shards.Has(l.Job.Task) }) {
			return true
		}
	}
	return false
}

// giveUp has the tasks take over what a carrier was to be given that is gone.
func (f *jobForwarder) giveUp(carrier string) {
	f.mu.Lock()
	line := slices.Concat(f.lines[carrier].away, f.lines[carrier].waiting)
	delete(f.lines, carrier)
	f.mu.Unlock()
	told := map[string]bool{}
	for i := range line {
		if task := line[i].Job.Task; !line[i].Withdrawn && !told[task] {
			told[task] = true
			f.m.tell(f.m.tasks, &command{task: task, cmd: f.m.recovering(task)})
		}
	}
}
