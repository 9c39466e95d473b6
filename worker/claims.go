package worker

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/troupe-engine/troupe/api/wire"
)

const (
	// defaultLease is that of an engine which does not say.
	defaultLease = 60 * time.Second
	// longestClaim is what is made of longer ones: a Duration does not hold all that a flow may
	// say.
	longestClaim = 100 * 365 * 24 * time.Hour
	minBeat      = 20 * time.Millisecond
	// claimGroup is how many claims one request is about.
	claimGroup = 500
)

var (
	errCanceled = errors.New("worker: nobody waits for this job any longer")
	errLeaving  = errors.New("worker: it ends before this job has begun")
)

// claimedJob is a pulled job in this worker's hands.
type claimedJob struct {
	pulledJob
	ctx          context.Context // of the handler
	cancel       context.CancelCauseFunc
	every        time.Duration // between heartbeats
	noteAt       time.Time     // zero = the engine knows that the job is running
	beatAt       time.Time
	logAt        time.Time // when to look for what the handler has printed
	begun        bool      // its handler was called
	progressText string    // what that says of how far it is; "" = nothing yet

	printed printedLog
}

func (c *claimedJob) nextDue() time.Time {
	due := c.beatAt
	if c.logAt.Before(due) {
		due = c.logAt
	}
	if !c.noteAt.IsZero() && c.noteAt.Before(due) {
		due = c.noteAt
	}
	return due
}

// logEvery is how often what a handler has printed is sent.
const logEvery = 500 * time.Millisecond

// jobNotice is something to be told of a job that goes on: its state, or what was printed.
type jobNotice struct {
	*claimedJob
	log bool
}

// dueNotices are what is due of a claim.
func (c *claimedJob) dueNotices(now time.Time) (all []jobNotice) {
	if !c.noteAt.IsZero() && !c.noteAt.After(now) {
		c.noteAt = time.Time{}
		all = append(all, jobNotice{claimedJob: c})
	}
	if !c.logAt.After(now) {
		c.logAt = now.Add(logEvery)
		if c.printed.hasUnsent() {
			all = append(all, jobNotice{claimedJob: c, log: true})
		}
	}
	return all
}

// claimKeeper keeps hold of pulled jobs: it prolongs their claims and hears which of them are
// canceled.
type claimKeeper struct {
	worker *Worker
	mu     sync.Mutex
	held   map[string]*claimedJob
	added  chan struct{}
	notes  chan jobNotice // to be told of jobs
	outage bool           // the last beat had no answer, which was said
}

// maxNotes is how many notes may wait to be sent. Further ones are dropped.
const maxNotes = 1000

func newClaimKeeper(w *Worker) *claimKeeper {
	return &claimKeeper{worker: w, held: map[string]*claimedJob{}, added: make(chan struct{}, 1), notes: make(chan jobNotice, maxNotes)}
}

func (k *claimKeeper) addJob(ctx context.Context, q pulledJob) *claimedJob {
	// As often as the worker's own signs of life, to hear soon of what is canceled.
	now, every := time.Now(), max(min(q.lease/3, k.worker.cfg.Heartbeat), minBeat)
	c := &claimedJob{pulledJob: q, every: every, noteAt: now.Add(k.worker.cfg.NoteAfter), beatAt: now.Add(every), logAt: now.Add(logEvery)}
	c.ctx, c.cancel = context.WithCancelCause(ctx)
	k.mu.Lock()
	old := k.held[q.ID]
	k.held[q.ID] = c
	k.mu.Unlock()
	if old != nil { // its claim is lost, else the job would not have come again
		old.cancel(errCanceled)
	}
	select {
	case k.added <- struct{}{}:
	default: // it is about to look anyway
	}
	return c
}

func (k *claimKeeper) removeJob(c *claimedJob) {
	c.cancel(nil)
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.held[c.ID] == c { // it may have been delivered again meanwhile
		delete(k.held, c.ID)
	}
}

// startJob is asked before a job's handler is called: not for a job that is canceled or given back.
func (k *claimKeeper) startJob(c *claimedJob) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	c.begun = c.ctx.Err() == nil
	return c.begun
}

// runHeartbeats works until ctx ends. Notes are sent beside the heartbeats: claims must not run out
// because of them.
func (k *claimKeeper) runHeartbeats(ctx context.Context) {
	var noter sync.WaitGroup
	defer noter.Wait()
	noter.Go(func() { k.noteLoop(ctx) })
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-k.added:
		case <-timer.C:
		}
		words, beats, next := k.collectDue(time.Now())
		for _, w := range words {
			k.enqueueNotice(w)
		}
		for group := range slices.Chunk(beats, claimGroup) {
			k.renewClaims(ctx, group)
		}
		timer.Reset(time.Until(next))
	}
}

// enqueueNotice has something told of a job, unless too much is to be.
func (k *claimKeeper) enqueueNotice(w jobNotice) {
	select {
	case k.notes <- w:
	default:
	}
}

// setProgress has it told what a job's handler says of itself.
func (k *claimKeeper) setProgress(c *claimedJob, text string) {
	k.mu.Lock()
	c.progressText, c.noteAt = text, time.Time{} // it need not be said that it is running
	k.mu.Unlock()
	k.enqueueNotice(jobNotice{claimedJob: c})
}

// collectDue finds what is due and when to look again. Who is nearly due is taken along.
func (k *claimKeeper) collectDue(now time.Time) (words []jobNotice, beats []*claimedJob, next time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	next = now.Add(time.Hour)
	for _, c := range k.held {
		words = append(words, c.dueNotices(now)...)
		if !c.beatAt.After(now.Add(c.every / 4)) {
			beats = append(beats, c)
			c.beatAt = now.Add(c.every)
		}
		if c.nextDue().Before(next) {
			next = c.nextDue()
		}
	}
	return words, beats, next
}

func (k *claimKeeper) noteLoop(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case w := <-k.notes:
			if w.log {
				k.sendPrinted(ctx, w.claimedJob)
			} else {
				k.sendNote(ctx, w.claimedJob)
			}
		}
	}
}

// sendNote tells that a job is running, or what its handler says. It is for whoever watches, so a
// failure does no harm.
func (k *claimKeeper) sendNote(ctx context.Context, c *claimedJob) {
	if c.ctx.Err() != nil { // it has ended meanwhile
		return
	}
	k.mu.Lock()
	text := cmp.Or(c.progressText, "running")
	k.mu.Unlock()
	k.sendToEngine(ctx, toHeldClaims([]*claimedJob{c}, text))
}

// maxParts is how much of what a job has printed is sent before others have their turn.
const maxParts = 8

// sendPrinted sends what a handler has printed. What the engine does not get is sent again with
// what comes next.
func (k *claimKeeper) sendPrinted(ctx context.Context, c *claimedJob) {
	for range maxParts {
		claims := toHeldClaims([]*claimedJob{c}, "")
		claims[0].Said = c.printed.nextPart()
		sent := len(claims[0].Lines)
		if sent == 0 || c.ctx.Err() != nil || !k.sendToEngine(ctx, claims) {
			return
		}
		c.printed.confirmPart(sent)
	}
}

func (k *claimKeeper) sendToEngine(ctx context.Context, claims []wire.HeldClaim) bool {
	_, err := k.worker.sendHeartbeat(ctx, claims, requestTime)
	if err != nil && ctx.Err() == nil {
		k.worker.cfg.Logger.Debug("the engine was not told how a job gets on", "job", claims[0].Job, "error", err)
	}
	return err == nil
}

// renewClaims prolongs claims. A lost beat is made up for by the next one: a claim outlives two at
// least, also when they get no answer.
func (k *claimKeeper) renewClaims(ctx context.Context, list []*claimedJob) {
	shortest := slices.MinFunc(list, func(a, b *claimedJob) int { return cmp.Compare(a.lease, b.lease) })
	answer, err := k.worker.sendHeartbeat(ctx, toHeldClaims(list, ""), max(shortest.lease/3, minBeat))
	if err != nil {
		if ctx.Err() == nil && !k.outage {
			k.worker.cfg.Logger.Warn("claims could not be prolonged; trying on", "jobs", len(list), "error", err)
			k.outage = true
		}
		return
	}
	k.outage = false
	for _, c := range list { // the worker may have got one of these jobs anew meanwhile
		if slices.Contains(answer.Canceled, c.ID) {
			c.cancel(errCanceled)
		}
	}
}

// toHeldClaims tells of claims, and what their jobs' states are called; "" = nothing.
func toHeldClaims(list []*claimedJob, note string) []wire.HeldClaim {
	claims := make([]wire.HeldClaim, len(list))
	for i, c := range list {
		claims[i] = wire.HeldClaim{Job: c.ID, Token: c.token, Note: note}
	}
	return claims
}
