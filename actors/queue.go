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
// references; the jobs themselves are in their tasks. What does not fit in memory stays in the
// store, from where a page at a time is fetched before a service runs out.
type queue struct {
	m               *Member
	mu              sync.Mutex              // of all below: tasks hand new jobs to those who wait
	ready           map[string][]*readyList // by service, those that nobody has jobs of left out
	listCount       int                     // how many there are
	refs            map[jobKey]*queuedJob
	openClaims      map[jobKey]*queuedJob // that have not been answered, with what was offered anew meanwhile
	waiting         *list.List            // of *poller: polls that have no answer yet, first one first
	waiters         map[string]*list.List // the same by service
	servicesKnown   bool                  // ready has every service that the store may have jobs of
	readingServices bool
	servicesAsked   bool // the store was asked for them, also if it failed
	closed          bool

	firstReads int // lists that are being read from the store for the first time

	rescannedAt   int64            // when the store was asked last, for jobs of other members' tasks
	rescanAt      int64            // when it is asked again
	rescanPages   int64            // that were read for that
	deferredUntil map[jobKey]int64 // jobs that are not claimed here until a time
	wanted        []engine.Offer   // jobs that the others have yet to be told of
}

type (
	stopPoll      struct{ poller *poller } // its time is up
	answerEarly   struct{ poller *poller } // it has had jobs for a while
	leavePoll     struct{ poller *poller } // its caller has gone
	claimAnswered struct {
		poller *poller
		ref    *queuedJob
		claim  flow.Claim
		at     int64
		engine.Outcome
	}
	offerAgain struct{ ref *queuedJob } // its task may have started again
	pageRead   struct {
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
	return &queue{m: m, ready: map[string][]*readyList{}, refs: map[jobKey]*queuedJob{}, openClaims: map[jobKey]*queuedJob{}, waiting: list.New(), waiters: map[string]*list.List{}, deferredUntil: map[jobKey]int64{}}
}

// offerJob gives a job to one who waits for it, or puts it where pollers who may have it look. A
// kind that has read it from the store meanwhile may be the only one that knows it.
func (q *queue) offerJob(_ actor.Context, r *queuedJob) {
	if q.isUnderClaim(r) {
		return
	}
	if known := q.refs[r.key]; known != nil {
		known.flow = r.flow
		r = known
	}
	lists := q.readyListsFor(r)
	delete(q.deferredUntil, r.key)
	if p := q.findWaiter(r); p != nil {
		q.claimJob(p, r)
		return
	}
	q.addWanted(r)
	full := q.m.queued.Load() >= int64(q.m.cfg.MaxReady)
	for _, s := range lists {
		if full {
			s.spillFrom(r.at)
		} else {
			q.addReady(s, r)
		}
	}
}

// isUnderClaim reports whether a job is being claimed. That may be what brought its task into
// memory, which then offers it; or the claim was refused and then the job returned by whoever held
// it, so the offer is kept until the answer is there.
func (q *queue) isUnderClaim(r *queuedJob) bool {
	_, busy := q.openClaims[r.key]
	if busy {
		q.openClaims[r.key] = r
	}
	return busy
}

func (q *queue) addReady(s *readyList, r *queuedJob) {
	if q.refs[r.key] == nil {
		q.refs[r.key] = r
		q.m.queued.Add(1)
	}
	s.insertJob(r)
}

func (q *queue) withdrawJob(key jobKey) {
	if r := q.refs[key]; r != nil {
		q.removeReady(r)
	}
}

// removeReady takes a job off its lists.
func (q *queue) removeReady(r *queuedJob) {
	if r.gone {
		return
	}
	r.gone = true
	delete(q.refs, r.key)
	q.m.queued.Add(-1)
	for _, s := range r.lists {
		s.noteRemoved()
	}
	r.lists = nil
}

func (q *queue) startPoll(c actor.Context, p *poller) {
	if q.closed {
		p.reply(nil)
		return
	}
	q.addWaiter(p)
	q.servePoller(c, p)
}

// servePoller gives a poller what is there for it, and looks where more may be.
func (q *queue) servePoller(_ actor.Context, p *poller) {
	q.startFirstReads(p)
	q.grantJobs(p)
	q.answerIfReady(p, q.fetchFor(p))
}

// grantJobs claims jobs for a poller, the oldest of its services first.
func (q *queue) grantJobs(p *poller) {
	if q.closed || !p.hasRoom() || q.awaitsFirstRead(p) {
		return
	}
	for lists := q.readyFor(p); len(lists) > 0 && p.hasRoom(); lists.restoreOrder() {
		r := lists[0].firstJob()
		if !p.hasRoomFor(r) {
			return
		}
		q.claimJob(p, r)
	}
}

// claimJob asks the task for the job. Its answer comes after the commit.
func (q *queue) claimJob(p *poller, r *queuedJob) {
	q.withdrawJob(r.key)
	claim, answered := q.newClaim(p, r)
	q.sendClaim(r, claim, answered)
}

// newClaim is the claim on a job for a poller, and who hears what becomes of it.
func (q *queue) newClaim(p *poller, r *queuedJob) (claim flow.Claim, answered func(engine.Outcome)) {
	p.reserveJob(r)
	m, now := q.m, q.m.nowMillis()
	claim = flow.Claim{Address: r.key.at, Worker: p.Worker, Token: uuid.NewString(), Since: max(now, m.workerJoinedAt(p.Worker)), Until: now + m.cfg.Visibility.Milliseconds()}
	q.deferClaim(r.key, claim.Until)
	q.openClaims[r.key] = nil
	return claim, func(o engine.Outcome) { m.sendMessage(m.sessions, claimAnswered{p, r, claim, now, o}) }
}

// claimForWaiter claims a job for one who waits when it has just come to be, by a decision that is
// not stored yet: so its beginning and the claim are one row. nil = nobody waits. The rider, if
// there is one, has come with what is decided about.
func (q *queue) claimForWaiter(job *flow.Job, rider *poller) *taskCommand {
	q.mu.Lock()
	defer q.mu.Unlock()
	r := queuedJobOf(job)
	p := q.findOrderPoll(rider, r)
	if p == nil {
		p = q.findWaiter(r)
	}
	if p == nil || q.isUnderClaim(r) {
		return nil
	}
	claim, answered := q.newClaim(p, r)
	now := q.m.nowMillis()
	return &taskCommand{task: job.Task, command: claim, unlisted: p.Unlisted, reply: func(a commandAnswer) { answered(outcomeOf(claim, a, now)) }}
}

// handleClaimAnswer gives a claimed job to its poller, or back when that was answered meanwhile.
// Those that somebody else has, or nobody wants any more, are replaced by others as soon as it is
// known how many.
func (q *queue) handleClaimAnswer(c actor.Context, a claimAnswered) {
	p := a.poller
	p.claiming--
	offered := q.openClaims[a.ref.key]
	delete(q.openClaims, a.ref.key)
	switch {
	case a.Err != nil:
		p.unreserveJob(a.ref)
		q.handleRefusal(c, a, offered)
	case p.element == nil:
		q.giveBack(c, engine.Jobs{*a.Job})
	default:
		q.m.metrics.observeDispatch(a.ref.service, a.at-a.ref.at)
		a.Job.ClaimedAt = a.at // its time counts from when it was asked for
		q.deferClaim(a.ref.key, a.Job.Until)
		q.addGranted(p, grantedJob{*a.Job, a.ref.turn})
	}
	switch {
	case p.element == nil:
	case p.claiming == 0 && p.refused:
		p.refused = false
		q.servePoller(c, p)
	case p.claiming == 0:
		q.answerIfReady(p, (p.noWait || len(p.granted) == 0) && q.fetchFor(p))
	}
}

// handleRefusal leaves a job alone for a while that was not to be had, unless it was offered anew
// meanwhile.
func (q *queue) handleRefusal(c actor.Context, a claimAnswered, offered *queuedJob) {
	now, settled := q.m.nowMillis(), isDelivered(a.Err) || errors.Is(a.Err, errOwnerUnreachable) // else it is offered again in any case
	switch {
	case settled && offered != nil && q.m.owned.ownsTask(a.ref.key.task):
		q.offerJob(c, offered)
	case settled && offered != nil:
		delete(q.deferredUntil, a.ref.key)
		q.markStoredJob(offered)
	case errors.Is(a.Err, errOwnerUnreachable): // nobody was asked, and is until that is over
		delete(q.deferredUntil, a.ref.key)
	case isDelivered(a.Err):
		q.deferClaim(a.ref.key, max(a.Held, now+claimDeferral))
	default: // its actor crashed or is leaving, or nobody knows who has it; the job is still there
		q.deferClaim(a.ref.key, now+claimDeferral)
		q.returnClaim(a)
		q.offerLater(a.ref)
	}
}

// answerEarlyAfter is how long a poll that has got a job waits for the answers to its other claims.
const answerEarlyAfter = time.Second

// addGranted gives a poller a job. From the first one on it does not wait long for more.
func (q *queue) addGranted(p *poller, job grantedJob) {
	p.granted = append(p.granted, job)
	if len(p.granted) == 1 && p.claiming > 0 && !p.withOrders {
		m := q.m
		p.stop = m.cfg.Host.Clock.AfterFunc(answerEarlyAfter, func() { m.sendMessage(m.sessions, answerEarly{p}) })
	}
}

// answerEarly answers a poll with what it has got.
func (q *queue) answerEarly(p *poller) {
	if p.element != nil && (len(p.granted) > 0 || p.withOrders) {
		q.answerPoll(p)
	}
}

// toClaimed is a job as its poller gets it.
func toClaimed(job *flow.Job, token string, at int64) engine.Claimed {
	return engine.Claimed{Job: engine.JobOf(job), Token: token, ClaimedAt: at, Until: job.Until}
}

// offerLater offers a job again in a while, which is the longer the more often its task could not
// say whose it is.
func (q *queue) offerLater(r *queuedJob) {
	r.refused++
	m := q.m
	m.cfg.Host.Clock.AfterFunc(backOff(r.refused), func() { m.sendMessage(m.sessions, offerAgain{r}) })
}

// reofferJob offers a job once more. Of one that was read from the store the flow is not known:
// those who want jobs of one flow find it there.
func (q *queue) reofferJob(c actor.Context, r *queuedJob) {
	if r.flow == "" {
		for _, s := range q.ready[r.service] {
			if s.flow != "" {
				s.spillFrom(r.at)
			}
		}
	}
	q.offerJob(c, &queuedJob{key: r.key, service: r.service, flow: r.flow, labels: r.labels, at: r.at, turn: r.turn, size: r.size, refused: r.refused})
}

// answerIfReady answers a poll that has what it can get for now.
func (q *queue) answerIfReady(p *poller, fetching bool) {
	if p.element != nil && (q.closed && p.claiming == 0 || p.isAnswerable(fetching)) {
		q.answerPoll(p)
	}
}

// answerPoll tells a poller what it has got, the longest waiting first: its claims may have been
// stored in another order.
func (q *queue) answerPoll(p *poller) {
	q.removeWaiter(p)
	slices.SortStableFunc(p.granted, func(a, b grantedJob) int {
		return cmp.Or(cmp.Compare(a.Job.EnqueuedAt, b.Job.EnqueuedAt), cmp.Compare(a.turn, b.turn))
	})
	p.reply(p.grantedJobs())
}

// expirePoll ends a poll whose time is up.
func (q *queue) expirePoll(p *poller) {
	p.timedOut = true
	q.answerIfReady(p, false)
}

// abandonPoll ends a poll whose caller has gone.
func (q *queue) abandonPoll(c actor.Context, p *poller) {
	p.timedOut = true
	q.removeWaiter(p)
	q.giveBack(c, p.grantedJobs())
	p.granted = nil
}

// giveBack returns what was claimed for a caller who has gone, or is answered.
func (q *queue) giveBack(c actor.Context, jobs engine.Jobs) {
	for _, got := range jobs {
		c.Send(q.m.tasks, &taskCommand{task: got.Job.Task, command: flow.GiveBack{Address: got.Job.Address, Token: got.Token}})
		delete(q.deferredUntil, jobKey{got.Job.Task, got.Job.Address})
	}
}

// close answers all polls: the member goes.
func (q *queue) close(actor.Context) {
	q.closed = true
	for el := q.waiting.Front(); el != nil; {
		p := el.Value.(*poller)
		el = el.Next()
		q.answerIfReady(p, false)
	}
}
