package actors

import (
	"maps"
	"slices"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/google/uuid"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// queue is the part of sessions where jobs wait for pollers and pollers for jobs. It holds
// references; the jobs themselves are in their tasks. What does not fit in memory stays in the store,
// from where a page at a time is fetched before a service runs out.
type queue struct {
	m       *Member
	ready   map[string]*shelf // by service
	refs    map[jobKey]*ref
	waiting []*poller // long polls without a job yet, first one first
	closed  bool
}

// shelf holds the jobs of one service.
type shelf struct {
	refs     []*ref
	spilled  bool // the store may hold more than refs
	behind   bool // also before the position of the last fetch
	fetching bool
	afterAt  int64 // position of the last fetch
	afterJob string
}

// ref is a job that waits for a poller.
type ref struct {
	key     jobKey
	service string
	at      int64 // when it was enqueued
	gone    bool  // withdrawn or claimed meanwhile
}

// poller is one poll that is being answered.
type poller struct {
	Poll
	reply    func([]Claimed)
	got      []Claimed
	claiming int
	over     bool // its time is up: answer as soon as no claim is under way
	left     bool // nobody reads the answer any more
}

type (
	stopPoll      struct{ poller *poller } // its time is up
	leavePoll     struct{ poller *poller } // its caller has gone
	claimAnswered struct {
		poller *poller
		ref    *ref
		claim  flow.Claim
		at     int64
		answer answer
	}
	refilled struct {
		service string
		rows    []persistence.QueueRow
		err     error
	}
)

// fetchRows is how many jobs are fetched from the store at once, and of how many a shelf that has
// fewer is filled up: else new jobs would be handed out before old ones that only the store has.
const fetchRows = 500

// maxShelves bounds how many services are remembered, because anybody may ask for any.
const maxShelves = 10_000

func newQueue(m *Member) *queue {
	return &queue{m: m, ready: map[string]*shelf{}, refs: map[jobKey]*ref{}}
}

// shelf of a service; what the store holds of a service not seen before is not known yet.
func (q *queue) shelf(service string) *shelf {
	s := q.ready[service]
	if s == nil {
		if len(q.ready) >= maxShelves {
			maps.DeleteFunc(q.ready, func(_ string, s *shelf) bool { return !s.fetching && s.first() == nil })
		}
		s = &shelf{spilled: true}
		q.ready[service] = s
	}
	return s
}

// offer puts a job on its shelf and serves whoever waits for one.
func (q *queue) offer(c actor.Context, key jobKey, service string, at int64) {
	if q.refs[key] != nil {
		return
	}
	s := q.shelf(service)
	if q.m.queued.Load() >= int64(q.m.cfg.MaxReady) && q.waiter(service) == nil {
		s.spill()
		return
	}
	q.put(s, key, service, at)
	q.serve(c, service)
}

// spill leaves a job in the store. A search under way may be past it: then there is another one.
func (s *shelf) spill() {
	s.behind = s.behind || s.fetching || s.afterAt > 0
	s.spilled = true
}

func (q *queue) put(s *shelf, key jobKey, service string, at int64) {
	r := &ref{key: key, service: service, at: at}
	q.refs[key] = r
	q.m.queued.Add(1)
	i := len(s.refs)
	for i > 0 && s.refs[i-1].at > at {
		i--
	}
	s.refs = slices.Insert(s.refs, i, r)
}

func (q *queue) withdraw(key jobKey) {
	if r := q.refs[key]; r != nil {
		q.drop(r)
	}
}

// drop takes a job off the shelf; its place there is cleared when it is reached.
func (q *queue) drop(r *ref) {
	if !r.gone {
		r.gone = true
		delete(q.refs, r.key)
		q.m.queued.Add(-1)
	}
}

// first is the oldest job on a shelf.
func (s *shelf) first() *ref {
	for len(s.refs) > 0 && s.refs[0].gone {
		s.refs[0] = nil
		s.refs = s.refs[1:]
	}
	if len(s.refs) == 0 {
		return nil
	}
	return s.refs[0]
}

func (q *queue) poll(c actor.Context, p *poller) {
	if q.closed {
		p.reply(nil)
		return
	}
	q.grant(c, p)
	fetching := q.fetchFor(p.Services)
	switch {
	case p.claiming > 0 || fetching:
		p.over = p.Wait <= 0
		q.waiting = append(q.waiting, p)
	case p.Wait <= 0:
		p.reply(nil)
	default:
		q.waiting = append(q.waiting, p)
	}
}

// room says whether a poller takes more jobs.
func (p *poller) room() bool { return len(p.got)+p.claiming < max(p.Max, 1) }

// grant claims jobs for a poller, the oldest of its services first.
func (q *queue) grant(c actor.Context, p *poller) {
	for !q.closed && p.room() {
		var oldest *ref
		for _, service := range p.Services {
			if r := q.shelf(service).first(); r != nil && (oldest == nil || r.at < oldest.at) {
				oldest = r
			}
		}
		if oldest == nil {
			return
		}
		q.claim(c, p, oldest)
	}
}

// claim asks the task for the job. Its answer comes after the commit.
func (q *queue) claim(c actor.Context, p *poller, r *ref) {
	p.claiming++
	q.drop(r)
	now := q.m.now()
	visibility := q.m.cfg.Visibility.Milliseconds()
	claim := flow.Claim{Address: r.key.at, Worker: p.Worker, Token: uuid.NewString(), Until: now + visibility}
	self, m := c.Self(), q.m
	c.Send(m.tasks, &command{task: r.key.task, cmd: claim, reply: func(a answer) {
		m.tell(self, claimAnswered{p, r, claim, now, a})
	}})
}

// answered gives a claimed job to its poller; one that somebody else has, or nobody wants any more, is
// replaced by the next.
func (q *queue) answered(c actor.Context, a claimAnswered) {
	p := a.poller
	p.claiming--
	if a.answer.err == nil {
		q.m.metrics.dispatched(a.at - a.ref.at)
		p.got = append(p.got, Claimed{Job: a.answer.job, Token: a.claim.Token, ClaimedAt: a.at, Until: a.answer.job.Until})
	} else if flow.KindOf(a.answer.err) == flow.Busy {
		q.offer(c, a.ref.key, a.ref.service, a.ref.at) // its actor crashed or is leaving; the job is still there
	}
	if p.left {
		q.giveBack(c, p)
		return
	}
	if len(p.got) == 0 {
		q.grant(c, p)
	}
	q.finish(p, len(p.got) == 0 && p.claiming == 0 && q.fetchFor(p.Services))
}

// finish answers a poll that has jobs, or whose time is up, once no claim is under way.
func (q *queue) finish(p *poller, fetching bool) {
	if p.claiming > 0 || fetching || len(p.got) == 0 && !p.over && !q.closed {
		return
	}
	if i := slices.Index(q.waiting, p); i >= 0 {
		q.waiting = slices.Delete(q.waiting, i, i+1)
		p.reply(p.got)
	}
}

// stop ends a poll whose time is up.
func (q *queue) stop(p *poller) {
	p.over = true
	q.finish(p, false)
}

// leave ends a poll whose caller has gone.
func (q *queue) leave(c actor.Context, p *poller) {
	p.over, p.left = true, true
	if i := slices.Index(q.waiting, p); i >= 0 {
		q.waiting = slices.Delete(q.waiting, i, i+1)
	}
	q.giveBack(c, p)
}

// giveBack returns what was claimed for a caller who has gone.
func (q *queue) giveBack(c actor.Context, p *poller) {
	for _, got := range p.got {
		c.Send(q.m.tasks, &command{task: got.Job.Task, cmd: flow.GiveBack{Address: got.Job.Address, Token: got.Token}})
	}
	p.got = nil
}

// serve looks for a poller that waits for a service.
func (q *queue) serve(c actor.Context, service string) {
	if p := q.waiter(service); p != nil {
		q.grant(c, p)
	}
}

// waiter is the first poller that waits for a service.
func (q *queue) waiter(service string) *poller {
	for _, p := range q.waiting {
		if !p.over && p.room() && slices.Contains(p.Services, service) {
			return p
		}
	}
	return nil
}

// fetchFor asks the store for jobs of services that have few in memory.
func (q *queue) fetchFor(services []string) (fetching bool) {
	for _, service := range services {
		s := q.shelf(service)
		if s.spilled && !s.fetching && !q.closed && (s.first() == nil || len(s.refs) < fetchRows) {
			q.fetch(service, s)
		}
		fetching = fetching || s.fetching
	}
	return fetching
}

func (q *queue) fetch(service string, s *shelf) {
	s.fetching = true
	m, at, job := q.m, s.afterAt, s.afterJob
	m.background(func() {
		ctx, cancel := m.storeCall()
		defer cancel()
		rows, err := m.store.QueueRows(ctx, []string{service}, at, job, fetchRows)
		m.tell(m.sessions, refilled{service, rows, err})
	})
}

func (q *queue) refilled(c actor.Context, m refilled) {
	s := q.shelf(m.service)
	s.fetching = false
	if m.err != nil {
		q.m.log.Warn("queue jobs could not be read from the store", "service", m.service, "error", m.err)
	}
	for _, row := range m.rows {
		s.afterAt, s.afterJob = row.EnqueuedAt, row.JobID
		task, at, err := flow.ParseJobID(row.JobID)
		if key := (jobKey{task, at}); err == nil && q.refs[key] == nil {
			q.put(s, key, m.service, row.EnqueuedAt)
		}
	}
	if m.err == nil && len(m.rows) < fetchRows {
		s.spilled, s.behind, s.afterAt, s.afterJob = s.behind, false, 0, ""
	}
	for _, p := range slices.Clone(q.waiting) {
		if slices.Contains(p.Services, m.service) {
			q.grant(c, p)
			q.finish(p, m.err == nil && q.fetchFor(p.Services))
		}
	}
}

// close answers all polls: the member goes.
func (q *queue) close(actor.Context) {
	q.closed = true
	for _, p := range slices.Clone(q.waiting) {
		q.finish(p, false)
	}
}
