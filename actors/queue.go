package actors

import (
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
	ready   map[string][]*shelf // by service
	shelves int                 // how many there are
	refs    map[jobKey]*ref
	waiting []*poller // long polls without a job yet, first one first
	closed  bool
}

// poller is one poll that is being answered.
type poller struct {
	Poll
	kind
	reply    func([]Claimed)
	got      []Claimed
	claiming int
	hasty    bool // it takes what is there and does not wait for more
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
	offerAgain struct{ ref *ref } // its task may have started again
	refilled   struct {
		shelf *shelf
		rows  []persistence.QueueRow
		err   error
	}
)

func newQueue(m *Member) *queue {
	return &queue{m: m, ready: map[string][]*shelf{}, refs: map[jobKey]*ref{}}
}

// offer puts a job where pollers who may have it look, and serves one who waits for it. A kind that has read it
// from the store meanwhile may be the only one that knows it.
func (q *queue) offer(c actor.Context, r *ref) {
	if known := q.refs[r.key]; known != nil {
		known.flow = r.flow
		r = known
	}
	shelves := q.shelvesFor(r)
	if q.m.queued.Load() >= int64(q.m.cfg.MaxReady) && q.waiter(r) == nil {
		for _, s := range shelves {
			s.spill()
		}
		return
	}
	for _, s := range shelves {
		q.put(s, r)
	}
	if p := q.waiter(r); p != nil {
		q.grant(c, p)
	}
}

func (q *queue) put(s *shelf, r *ref) {
	if q.refs[r.key] == nil {
		q.refs[r.key] = r
		q.m.queued.Add(1)
	}
	s.put(r)
}

func (q *queue) withdraw(key jobKey) {
	if r := q.refs[key]; r != nil {
		q.drop(r)
	}
}

// drop takes a job off its shelves.
func (q *queue) drop(r *ref) {
	if r.gone {
		return
	}
	r.gone = true
	delete(q.refs, r.key)
	q.m.queued.Add(-1)
	for _, s := range r.on {
		s.dropped()
	}
	r.on = nil
}

func (q *queue) poll(c actor.Context, p *poller) {
	if q.closed {
		p.reply(nil)
		return
	}
	p.hasty = p.Wait <= 0
	q.grant(c, p)
	if fetching := q.fetchFor(p); p.hasty && p.claiming == 0 && !fetching {
		p.reply(nil)
		return
	}
	q.waiting = append(q.waiting, p)
}

// room says whether a poller takes more jobs.
func (p *poller) room() bool { return !p.over && len(p.got)+p.claiming < max(p.Max, 1) }

// grant claims jobs for a poller, the oldest of its services first.
func (q *queue) grant(c actor.Context, p *poller) {
	for !q.closed && p.room() {
		var oldest *ref
		for _, service := range p.Services {
			if r := q.shelf(service, p.kind).first(); r != nil && (oldest == nil || r.before(oldest)) {
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
		p.got = append(p.got, Claimed{Job: *a.answer.job, Token: a.claim.Token, ClaimedAt: a.at, Until: a.answer.job.Until})
	} else if flow.KindOf(a.answer.err) == flow.Busy {
		q.later(a.ref) // its actor crashed or is leaving; the job is still there
	}
	if p.left {
		q.giveBack(c, p)
		return
	}
	if len(p.got) == 0 {
		q.grant(c, p)
	}
	q.finish(p, len(p.got) == 0 && p.claiming == 0 && q.fetchFor(p))
}

// later offers a job again in a while, which is the longer the more often its task could not say whose it is.
func (q *queue) later(r *ref) {
	r.refused++
	m := q.m
	m.cfg.Host.Clock.AfterFunc(backOff(r.refused), func() { m.tell(m.sessions, offerAgain{r}) })
}

// again offers a job once more. Of one that was read from the store the flow is not known: those who want
// jobs of one flow find it there.
func (q *queue) again(c actor.Context, r *ref) {
	if r.flow == "" {
		for _, s := range q.ready[r.service] {
			if s.flow != "" {
				s.spill()
			}
		}
	}
	q.offer(c, &ref{key: r.key, service: r.service, flow: r.flow, labels: r.labels, at: r.at, turn: r.turn, size: r.size, refused: r.refused})
}

// finish answers a poll that has jobs, or whose time is up, once no claim is under way.
func (q *queue) finish(p *poller, fetching bool) {
	if p.claiming > 0 || fetching || len(p.got) == 0 && !p.over && !p.hasty && !q.closed {
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

// waiter is the first poller that waits for a job like this one.
func (q *queue) waiter(r *ref) *poller {
	for _, p := range q.waiting {
		if !p.hasty && p.room() && slices.Contains(p.Services, r.service) && p.kind.takes(r) {
			return p
		}
	}
	return nil
}

// fetchFor asks the store for jobs that a poller may have, where there are few in memory.
func (q *queue) fetchFor(p *poller) (fetching bool) {
	for _, service := range p.Services {
		s := q.shelf(service, p.kind)
		if s.spilled && !s.fetching && !q.closed && (s.first() == nil || len(s.refs) < fetchRows) {
			q.fetch(s)
		}
		fetching = fetching || s.fetching
	}
	return fetching
}

func (q *queue) fetch(s *shelf) {
	s.fetching = true
	m, at, turn := q.m, s.afterAt, s.afterTurn
	filter := persistence.QueueFilter{Service: s.service, FlowID: s.flow, Labels: s.labels}
	m.background(func() {
		ctx, cancel := m.storeCall()
		defer cancel()
		rows, err := m.store.QueueFor(ctx, filter, at, turn, fetchRows)
		m.tell(m.sessions, refilled{s, rows, err})
	})
}

func (q *queue) refilled(c actor.Context, m refilled) {
	s := m.shelf
	s.fetching = false
	if m.err != nil && q.m.ctx.Err() == nil {
		q.m.log.Warn("queue jobs could not be read from the store", "service", s.service, "error", m.err)
	}
	for _, row := range m.rows {
		s.afterAt, s.afterTurn = row.EnqueuedAt, row.Turn
		task, at, err := flow.ParseJobID(row.JobID)
		if err != nil {
			continue
		}
		r := q.refs[jobKey{task, at}]
		if r == nil {
			r = &ref{key: jobKey{task, at}, service: s.service, flow: s.flow, labels: row.Labels, at: row.EnqueuedAt, turn: row.Turn, size: row.Size}
		}
		q.put(s, r)
	}
	if m.err == nil && len(m.rows) < fetchRows {
		s.spilled, s.behind, s.afterAt, s.afterTurn = s.behind, false, 0, ""
	}
	for _, p := range slices.Clone(q.waiting) {
		if p.looksAt(s) {
			q.grant(c, p)
			q.finish(p, m.err == nil && q.fetchFor(p))
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
