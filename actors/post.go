package actors

import (
	"slices"
	"sync"
	"time"

	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/persistence"
)

// post gives jobs to the members that are to carry them out, by their incarnations, and tells them which ones nobody waits for
// any longer: in order, and again and again until that member has heard it, or is gone. It gives none of a task that has moved:
// the next owner does, and a job that comes late might be carried out a second time. A withdrawal may come late: it ends one time of the job's
// being given, so it takes none away that the next owner has given since.
type post struct {
	m     *Member
	mu    sync.Mutex
	lines map[string]*postLine // by carrier, while somebody is on his way there
}

type postLine struct{ away, waiting []letter }

// letter is an errand of an actor, whose inbox is here.
type letter struct {
	engine.Errand
	inbox *inbox
}

// void says whether a job is not to be given any more: its step is over, or its task has moved. A task that has been elsewhere and is back
// has another inbox: what the job has come to meanwhile this letter does not know.
func (l *letter) void(m *Member) bool {
	return !l.Withdrawn && (!m.owned.owns(l.Job.Task) || l.inbox.moved() || l.inbox.void())
}

// What is given at once, and how long the carrier may take to answer.
const (
	maxErrands     = 500
	maxErrandBytes = 4 << 20
	postStays      = 2 * time.Second
)

func (p *post) send(carrier string, e engine.Errand, in *inbox) {
	p.mu.Lock()
	defer p.mu.Unlock()
	line := p.lines[carrier]
	if line == nil {
		line = &postLine{}
		p.lines[carrier] = line
		p.m.background(func() { p.run(carrier) })
	}
	line.waiting = append(line.waiting, letter{e, in})
}

// run brings what there is for a carrier until there is no more. What it gives to one that is gone is taken over.
func (p *post) run(carrier string) {
	try := 0
	for lot := p.take(carrier); len(lot) > 0; lot = p.take(carrier) {
		ctx, cancel := p.m.bounded(postStays)
		err := p.m.cfg.Others.Carry(ctx, carrier, errandsOf(lot))
		cancel()
		switch {
		case err == nil:
			try = 0
			continue
		case !p.m.lives(carrier):
			p.giveUp(carrier)
			return
		}
		p.back(carrier, lot)
		if try++; try == 1 {
			p.m.log.Warn("a member could not be given its jobs: trying on", "incarnation", carrier, "error", err)
		}
		if !p.m.pause(storePause(try)) {
			return
		}
	}
}

// take is what is brought at once. When there is nothing, nobody is on his way there any longer.
func (p *post) take(carrier string) []letter {
	p.mu.Lock()
	defer p.mu.Unlock()
	line, bytes := p.lines[carrier], 0
	line.away = nil
	for len(line.waiting) > 0 && len(line.away) < maxErrands && bytes < maxErrandBytes {
		l := line.waiting[0]
		line.waiting[0] = letter{}
		line.waiting = line.waiting[1:]
		if !l.void(p.m) {
			line.away = append(line.away, l)
			bytes += len(l.Job.Input) + len(l.Job.Params)
		}
	}
	if len(line.away) == 0 {
		delete(p.lines, carrier)
	}
	return line.away
}

func errandsOf(lot []letter) engine.Errands {
	all := make(engine.Errands, len(lot))
	for i := range lot {
		all[i] = lot[i].Errand
	}
	return all
}

// back keeps what was brought in vain.
func (p *post) back(carrier string, lot []letter) {
	p.mu.Lock()
	defer p.mu.Unlock()
	line := p.lines[carrier]
	line.away, line.waiting = nil, slices.Concat(lot, line.waiting)
}

// busyWith says whether somebody is on his way with jobs of tasks of some shards.
func (p *post) busyWith(shards persistence.ShardSet) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, line := range p.lines {
		if slices.ContainsFunc(line.away, func(l letter) bool { return shards.Has(l.Job.Task) }) {
			return true
		}
	}
	return false
}

// giveUp has the tasks take over what a carrier was to be given that is gone.
func (p *post) giveUp(carrier string) {
	p.mu.Lock()
	line := slices.Concat(p.lines[carrier].away, p.lines[carrier].waiting)
	delete(p.lines, carrier)
	p.mu.Unlock()
	told := map[string]bool{}
	for i := range line {
		if task := line[i].Job.Task; !line[i].Withdrawn && !told[task] {
			told[task] = true
			p.m.tell(p.m.tasks, &command{task: task, cmd: p.m.recovering(task)})
		}
	}
}
