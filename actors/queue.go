package actors

import (
	"cmp"
	"container/list"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/google/uuid"

	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// queue is the part of sessions where jobs wait for pollers and pollers for jobs. It holds
// references; the jobs themselves are in their tasks. What does not fit in memory stays in the store,
// from where a page at a time is fetched before a service runs out.
type queue struct {
	m        *Member
	mu       sync.Mutex              // of all below: tasks hand new jobs to those who wait
	ready    map[string][]*readyList // by service, those that nobody has jobs of left out
	lists    int                     // how many there are
	refs     map[jobKey]*ref
	claims   map[jobKey]*ref       // that have not been answered, with what was offered anew meanwhile
	waiting  *list.List            // of *poller: polls that have no answer yet, first one first
	waiters  map[string]*list.List // the same by service
	learned  bool                  // ready has every service that the store may have jobs of
	learning bool
	surveyed bool // the store was asked for them, also if it failed
	closed   bool

	firstReads int // lists that are being read from the store for the first time

	lookedAt int64            // when the store was asked last, for jobs of other members' tasks
	lookAt   int64            // when it is asked again
	pages    int64            // that were read for that
	tried    map[jobKey]int64 // jobs that are not claimed here until a time
	wanted   []engine.Offer   // jobs that the others have yet to be told of
}

type (
	stopPoll      struct{ poller *poller } // its time is up
	enough        struct{ poller *poller } // it has had jobs for a while
	leavePoll     struct{ poller *poller } // its caller has gone
	claimAnswered struct {
		poller *poller
		ref    *ref
		claim  flow.Claim
		at     int64
		engine.Outcome
	}
	offerAgain struct{ ref *ref } // its task may have started again
	refilled   struct {
		list *readyList
		rows []persistence.QueueRow
		err  error
	}
	// servicesRead names the services that the store has jobs of.
	servicesRead struct {
		services []string
		err      error
	}
)

func newQueue(m *Member) *queue {
	return &queue{m: m, ready: map[string][]*readyList{}, refs: map[jobKey]*ref{}, claims: map[jobKey]*ref{}, waiting: list.New(), waiters: map[string]*list.List{}, tried: map[jobKey]int64{}}
}

// offer gives a job to one who waits for it, or puts it where pollers who may have it look. A kind that has read it
// from the store meanwhile may be the only one that knows it.
func (q *queue) offer(_ actor.Context, r *ref) {
	if q.underClaim(r) {
		return
	}
	if known := q.refs[r.key]; known != nil {
		known.flow = r.flow
		r = known
	}
	lists := q.readyListsFor(r)
	delete(q.tried, r.key)
	if p := q.waiter(r); p != nil {
		q.claim(p, r)
		return
	}
	q.want(r)
	full := q.m.queued.Load() >= int64(q.m.cfg.MaxReady)
	for _, s := range lists {
		if full {
			s.spill(r.at)
		} else {
			q.put(s, r)
		}
	}
}

// underClaim says whether a job is being claimed. That may be what brought its task into memory, which then offers it; or the claim was
// refused and then the job returned by whoever held it, so the offer is kept until the answer is there.
func (q *queue) underClaim(r *ref) bool {
	_, busy := q.claims[r.key]
	if busy {
		q.claims[r.key] = r
	}
	return busy
}

func (q *queue) put(s *readyList, r *ref) {
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

// drop takes a job off its lists.
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
	q.await(p)
	q.serve(c, p)
}

// serve gives a poller what is there for it, and looks where more may be.
func (q *queue) serve(_ actor.Context, p *poller) {
	q.readFirst(p)
	q.grant(p)
	q.finish(p, q.fetchFor(p))
}

// grant claims jobs for a poller, the oldest of its services first.
func (q *queue) grant(p *poller) {
	if q.closed || !p.room() || q.awaitsFirst(p) {
		return
	}
	for lists := q.readyFor(p); len(lists) > 0 && p.room(); lists.next() {
		r := lists[0].first()
		if !p.fits(r) {
			return
		}
		q.claim(p, r)
	}
}

// claim asks the task for the job. Its answer comes after the commit.
func (q *queue) claim(p *poller, r *ref) {
	q.withdraw(r.key)
	claim, answered := q.promise(p, r)
	q.ask(r, claim, answered)
}

// promise is the claim on a job for a poller, and who hears what becomes of it.
func (q *queue) promise(p *poller, r *ref) (claim flow.Claim, answered func(engine.Outcome)) {
	p.take(r)
	m, now := q.m, q.m.now()
	claim = flow.Claim{Address: r.key.at, Worker: p.Worker, Token: uuid.NewString(), Since: max(now, m.joined(p.Worker)), Until: now + m.cfg.Visibility.Milliseconds()}
	q.shun(r.key, claim.Until)
	q.claims[r.key] = nil
	return claim, func(o engine.Outcome) { m.tell(m.sessions, claimAnswered{p, r, claim, now, o}) }
}

// handOut claims a job for one who waits when it has just come to be, by a decision that is not stored yet: so its beginning and the claim
// are one row. nil = nobody waits. The rider, if there is one, has come with what is decided about.
func (q *queue) handOut(job *flow.Job, rider *poller) *command {
	q.mu.Lock()
	defer q.mu.Unlock()
	r := refOf(job)
	p := q.taker(rider, r)
	if p == nil {
		p = q.waiter(r)
	}
	if p == nil || q.underClaim(r) {
		return nil
	}
	claim, answered := q.promise(p, r)
	now := q.m.now()
	return &command{task: job.Task, cmd: claim, unlisted: p.Unlisted, reply: func(a answer) { answered(outcomeOf(claim, a, now)) }}
}

// answered gives a claimed job to its poller, or back when that was answered meanwhile. Those that somebody else has, or nobody wants
// any more, are replaced by others as soon as it is known how many.
func (q *queue) answered(c actor.Context, a claimAnswered) {
	p := a.poller
	p.claiming--
	offered := q.claims[a.ref.key]
	delete(q.claims, a.ref.key)
	switch {
	case a.Err != nil:
		p.lack(a.ref)
		q.refused(c, a, offered)
	case p.place == nil:
		q.giveBack(c, engine.Jobs{*a.Job})
	default:
		q.m.metrics.dispatched(a.ref.service, a.at-a.ref.at)
		a.Job.ClaimedAt = a.at // its time counts from when it was asked for
		q.shun(a.ref.key, a.Job.Until)
		q.got(p, granted{*a.Job, a.ref.turn})
	}
	switch {
	case p.place == nil:
	case p.claiming == 0 && p.refused:
		p.refused = false
		q.serve(c, p)
	case p.claiming == 0:
		q.finish(p, (p.hasty || len(p.got) == 0) && q.fetchFor(p))
	}
}

// refused leaves a job alone for a while that was not to be had, unless it was offered anew meanwhile.
func (q *queue) refused(c actor.Context, a claimAnswered, offered *ref) {
	now, settled := q.m.now(), taken(a.Err) || errors.Is(a.Err, errAway) // else it is offered again in any case
	switch {
	case settled && offered != nil && q.m.owned.owns(a.ref.key.task):
		q.offer(c, offered)
	case settled && offered != nil:
		delete(q.tried, a.ref.key)
		q.leaveInStore(offered)
	case errors.Is(a.Err, errAway): // nobody was asked, and is until that is over
		delete(q.tried, a.ref.key)
	case taken(a.Err):
		q.shun(a.ref.key, max(a.Held, now+triedFor))
	default: // its actor crashed or is leaving, or nobody knows who has it; the job is still there
		q.shun(a.ref.key, now+triedFor)
		q.release(a)
		q.later(a.ref)
	}
}

// soonAfter is how long a poll that has got a job waits for the answers to its other claims.
const soonAfter = time.Second

// got gives a poller a job. From the first one on it does not wait long for more.
func (q *queue) got(p *poller, job granted) {
	p.got = append(p.got, job)
	if len(p.got) == 1 && p.claiming > 0 && !p.rides {
		m := q.m
		p.stop = m.cfg.Host.Clock.AfterFunc(soonAfter, func() { m.tell(m.sessions, enough{p}) })
	}
}

// enough answers a poll with what it has got.
func (q *queue) enough(p *poller) {
	if p.place != nil && (len(p.got) > 0 || p.rides) {
		q.answer(p)
	}
}

// claimed is a job as its poller gets it.
func claimed(job *flow.Job, token string, at int64) engine.Claimed {
	return engine.Claimed{Job: engine.JobOf(job), Token: token, ClaimedAt: at, Until: job.Until}
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
				s.spill(r.at)
			}
		}
	}
	q.offer(c, &ref{key: r.key, service: r.service, flow: r.flow, labels: r.labels, at: r.at, turn: r.turn, size: r.size, refused: r.refused})
}

// finish answers a poll that has what it can get for now.
func (q *queue) finish(p *poller, fetching bool) {
	if p.place != nil && (q.closed && p.claiming == 0 || p.content(fetching)) {
		q.answer(p)
	}
}

// answer tells a poller what it has got, the longest waiting first: its claims may have been stored in another order.
func (q *queue) answer(p *poller) {
	q.dismiss(p)
	slices.SortStableFunc(p.got, func(a, b granted) int {
		return cmp.Or(cmp.Compare(a.Job.EnqueuedAt, b.Job.EnqueuedAt), cmp.Compare(a.turn, b.turn))
	})
	p.reply(p.jobs())
}

// stop ends a poll whose time is up.
func (q *queue) stop(p *poller) {
	p.over = true
	q.finish(p, false)
}

// leave ends a poll whose caller has gone.
func (q *queue) leave(c actor.Context, p *poller) {
	p.over = true
	q.dismiss(p)
	q.giveBack(c, p.jobs())
	p.got = nil
}

// giveBack returns what was claimed for a caller who has gone, or is answered.
func (q *queue) giveBack(c actor.Context, jobs engine.Jobs) {
	for _, got := range jobs {
		c.Send(q.m.tasks, &command{task: got.Job.Task, cmd: flow.GiveBack{Address: got.Job.Address, Token: got.Token}})
		delete(q.tried, jobKey{got.Job.Task, got.Job.Address})
	}
}

// close answers all polls: the member goes.
func (q *queue) close(actor.Context) {
	q.closed = true
	for el := q.waiting.Front(); el != nil; {
		p := el.Value.(*poller)
		el = el.Next()
		q.finish(p, false)
	}
}
