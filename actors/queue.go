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

	"github.com/troupe-engine/troupe/actors/background"
	"github.com/troupe-engine/troupe/actors/forward"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// queue is the part of sessions that matches poller jobs with polls. It holds only references to
// jobs of tasks. Jobs beyond the limit stay in the store, and are read by pages before a service
// runs out of jobs.
type queue struct {
	m *Member
	// guards all fields below, because task actors also add jobs
	mu        sync.Mutex
	ready     map[string][]*readyList // ready lists by service; services without jobs are omitted
	listCount int                     // total number of ready lists
	refs      map[engine.JobKey]*queuedJob
	// open claims, each with the new offer of its job that came meanwhile
	openClaims      map[engine.JobKey]*queuedJob
	waiting         *list.List            // open polls of type *poller, oldest first
	waiters         map[string]*list.List // open polls by service
	servicesKnown   bool                  // ready contains every service that has jobs in the store
	readingServices bool
	servicesAsked   bool // the first read of the services has succeeded or failed
	closed          bool

	firstReads int // number of lists whose first read from the store is in progress

	rescannedAt   int64                   // time of the last search for jobs of other members
	rescanAt      int64                   // time of the next search
	rescanPages   int64                   // pages that the last search has read
	deferredUntil map[engine.JobKey]int64 // earliest time of the next claim, by job
	wanted        []engine.Offer          // jobs to announce to the other members
}

type (
	stopPoll      struct{ poller *poller } // the time of a poll has passed
	answerEarly   struct{ poller *poller } // a poll has had a job for answerEarlyAfter
	leavePoll     struct{ poller *poller } // the caller of a poll has gone
	claimAnswered struct {
		poller *poller
		ref    *queuedJob
		claim  flow.Claim
		at     int64
		engine.Outcome
	}
	offerAgain struct{ ref *queuedJob } // the pause after a failed claim is over
	pageRead   struct {
		list *readyList
		rows []persistence.QueueRow
		err  error
	}
	// servicesRead lists the services of jobs in the store.
	servicesRead struct {
		services []string
		err      error
	}
)

func newQueue(m *Member) *queue {
	return &queue{m: m, ready: map[string][]*readyList{}, refs: map[engine.JobKey]*queuedJob{},
		openClaims: map[engine.JobKey]*queuedJob{}, waiting: list.New(), waiters: map[string]*list.List{},
		deferredUntil: map[engine.JobKey]int64{}}
}

// offerJob gives a job to a waiting poll, or adds it to the lists of matching pollers. A job that
// was read from the store may be missing in other lists, so it is added there.
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
	full := q.m.counts.queued.Load() >= int64(q.m.cfg.MaxReady)
	for _, s := range lists {
		if full {
			s.spillFrom(r.at)
		} else {
			q.addReady(s, r)
		}
	}
}

// isUnderClaim reports whether a claim of a job is pending, and keeps the offer until the claim is
// answered. The offer may be newer than the claim, for example if the job was returned after a
// refusal.
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
		q.m.counts.queued.Add(1)
	}
	s.insertJob(r)
}

func (q *queue) withdrawJob(key engine.JobKey) {
	if r := q.refs[key]; r != nil {
		q.removeReady(r)
	}
}

// removeReady removes a job from its lists.
func (q *queue) removeReady(r *queuedJob) {
	if r.gone {
		return
	}
	r.gone = true
	delete(q.refs, r.key)
	q.m.counts.queued.Add(-1)
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

// servePoller gives a poller the available jobs, and starts reads for more.
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

// claimJob sends a claim to the task. The answer comes after the commit.
func (q *queue) claimJob(p *poller, r *queuedJob) {
	q.withdrawJob(r.key)
	claim, answered := q.newClaim(p, r)
	q.sendClaim(r, claim, answered)
}

// newClaim creates a claim of a job for a poller, and the function that receives its answer.
func (q *queue) newClaim(p *poller, r *queuedJob) (claim flow.Claim, answered func(engine.Outcome)) {
	p.reserveJob(r)
	m, now := q.m, q.m.nowMillis()
	claim = flow.Claim{Address: r.key.At, Worker: p.Worker, Token: uuid.NewString(),
		Since: max(now, m.carryPart().workerJoinedAt(p.Worker)), Until: now + m.cfg.Visibility.Milliseconds()}
	q.deferClaim(r.key, claim.Until)
	q.openClaims[r.key] = nil
	return claim, func(o engine.Outcome) { m.sendMessage(m.sessions, claimAnswered{p, r, claim, now, o}) }
}

// claimForWaiter creates a claim for a job that a decision has just started, so that the start and
// the claim are one row. It returns nil if no poll waits for the job. rider is the poll that came
// with the order being decided; nil if none.
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
	return &taskCommand{task: job.Task, command: claim, unlisted: p.Unlisted,
		reply: func(a commandAnswer) { answered(outcomeOf(claim, a, now)) }}
}

// handleClaimAnswer gives a claimed job to its poller, or returns it to the task if the poll was
// answered meanwhile. After all answers, it claims other jobs in place of refused ones.
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
		q.m.metrics.ObserveDispatch(a.ref.service, a.at-a.ref.at)
		a.Job.ClaimedAt = a.at // the visibility time counts from the request
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

// handleRefusal postpones the next claim of a job that could not be claimed. It drops the delay if
// the job was offered again meanwhile.
func (q *queue) handleRefusal(c actor.Context, a claimAnswered, offered *queuedJob) {
	// settled is false if the outcome is unknown; the job is then offered again after a pause
	now, settled := q.m.nowMillis(), engine.IsDelivered(a.Err) || errors.Is(a.Err, forward.ErrOwnerUnreachable)
	switch {
	case settled && offered != nil && q.m.owned.OwnsTask(a.ref.key.Task):
		q.offerJob(c, offered)
	case settled && offered != nil:
		delete(q.deferredUntil, a.ref.key)
		q.markStoredJob(offered)
	// no claim was sent, and none is sent until the pause ends
	case errors.Is(a.Err, forward.ErrOwnerUnreachable):
		delete(q.deferredUntil, a.ref.key)
	case engine.IsDelivered(a.Err):
		q.deferClaim(a.ref.key, max(a.Held, now+claimDeferral))
	default: // the actor crashed or is moving, or the owner is unknown; the job still exists
		q.deferClaim(a.ref.key, now+claimDeferral)
		q.returnClaim(a)
		q.offerLater(a.ref)
	}
}

// answerEarlyAfter is how long a poll that has a job waits for the answers to its other claims.
const answerEarlyAfter = time.Second

// addGranted gives a job to a poll. After the first job, the poll waits for pending claims for
// answerEarlyAfter only.
func (q *queue) addGranted(p *poller, job grantedJob) {
	p.granted = append(p.granted, job)
	if len(p.granted) == 1 && p.claiming > 0 && !p.withOrders {
		m := q.m
		p.stop = m.work.After(answerEarlyAfter, func() { m.sendMessage(m.sessions, answerEarly{p}) })
	}
}

// answerEarly answers a poll with the jobs granted so far, while claims are pending.
func (q *queue) answerEarly(p *poller) {
	if p.element != nil && (len(p.granted) > 0 || p.withOrders) {
		q.answerPoll(p)
	}
}

// toClaimed converts a job to the form that its poller gets.
func toClaimed(job *flow.Job, token string, at int64) engine.Claimed {
	return engine.Claimed{Job: engine.JobOf(job), Token: token, ClaimedAt: at, Until: job.Until}
}

// offerLater offers a job again after a pause, which grows with the number of failed claims.
func (q *queue) offerLater(r *queuedJob) {
	r.refused++
	m := q.m
	m.work.After(background.BackOff(r.refused), func() { m.sendMessage(m.sessions, offerAgain{r}) })
}

// reofferJob offers a job again. The flow of a job from the store is unknown, so lists for one flow
// read it from the store again.
func (q *queue) reofferJob(c actor.Context, r *queuedJob) {
	if r.flow == "" {
		for _, s := range q.ready[r.service] {
			if s.flow != "" {
				s.spillFrom(r.at)
			}
		}
	}
	q.offerJob(c, &queuedJob{key: r.key, service: r.service, flow: r.flow, labels: r.labels,
		at: r.at, turn: r.turn, size: r.size, refused: r.refused})
}

// answerIfReady answers a poll that cannot get more jobs now.
func (q *queue) answerIfReady(p *poller, fetching bool) {
	if p.element != nil && (q.closed && p.claiming == 0 || p.isAnswerable(fetching)) {
		q.answerPoll(p)
	}
}

// answerPoll answers a poll with its jobs, the oldest first. The order of the claims may differ.
func (q *queue) answerPoll(p *poller) {
	q.removeWaiter(p)
	slices.SortStableFunc(p.granted, func(a, b grantedJob) int {
		return cmp.Or(cmp.Compare(a.Job.EnqueuedAt, b.Job.EnqueuedAt), cmp.Compare(a.turn, b.turn))
	})
	p.reply(p.grantedJobs())
}

// expirePoll ends a poll whose time has passed.
func (q *queue) expirePoll(p *poller) {
	p.timedOut = true
	q.answerIfReady(p, false)
}

// abandonPoll ends a poll whose caller has gone, and gives its jobs back.
func (q *queue) abandonPoll(c actor.Context, p *poller) {
	p.timedOut = true
	q.removeWaiter(p)
	q.giveBack(c, p.grantedJobs())
	p.granted = nil
}

// giveBack returns claimed jobs to their tasks.
func (q *queue) giveBack(c actor.Context, jobs engine.Jobs) {
	for _, got := range jobs {
		c.Send(q.m.tasks, &taskCommand{task: got.Job.Task, command: flow.GiveBack{Address: got.Job.Address, Token: got.Token}})
		delete(q.deferredUntil, engine.JobKey{Task: got.Job.Task, At: got.Job.Address})
	}
}

// close answers all polls because the member stops.
func (q *queue) close(actor.Context) {
	q.closed = true
	for el := q.waiting.Front(); el != nil; {
		p := el.Value.(*poller)
		el = el.Next()
		q.answerIfReady(p, false)
	}
}
