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
	// defaultLease is the lease from an engine that does not send one.
	defaultLease = 60 * time.Second
	// longestClaim replaces longer claims, because a flow may set one that does not fit into a
	// Duration.
	longestClaim = 100 * 365 * 24 * time.Hour
	minBeat      = 20 * time.Millisecond
	// claimGroup is the number of claims in one request.
	claimGroup = 500
)

var (
	errCanceled = errors.New("worker: nobody waits for this job any longer")
	errLeaving  = errors.New("worker: it ends before this job has begun")
)

// claimedJob is a pulled job that this worker holds.
type claimedJob struct {
	pulledJob
	ctx          context.Context // context of the handler
	cancel       context.CancelCauseFunc
	every        time.Duration // interval of heartbeats
	noteAt       time.Time     // zero = the engine knows that the job is running
	beatAt       time.Time
	logAt        time.Time // time of the next check for output of the handler
	begun        bool      // its handler was called
	progressText string    // progress text of the handler; "" = none yet

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

// logEvery is the interval at which a handler's output is sent.
const logEvery = 500 * time.Millisecond

// jobNotice is a notice about a running job: its state, or its output.
type jobNotice struct {
	*claimedJob
	log bool
}

// dueNotices returns the notices of a claim that are due.
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

// claimKeeper renews the claims of pulled jobs and learns which of them are canceled.
type claimKeeper struct {
	worker *Worker
	mu     sync.Mutex
	held   map[string]*claimedJob
	added  chan struct{}
	notes  chan jobNotice // notices to send
	outage bool           // the last heartbeat got no answer, which was logged
}

// maxNotes is the maximum number of waiting notices. Further ones are dropped.
const maxNotes = 1000

func newClaimKeeper(w *Worker) *claimKeeper {
	return &claimKeeper{worker: w, held: map[string]*claimedJob{}, added: make(chan struct{}, 1), notes: make(chan jobNotice, maxNotes)}
}

func (k *claimKeeper) addJob(ctx context.Context, q pulledJob) *claimedJob {
	// As often as the worker's own heartbeats, to learn soon of canceled jobs.
	now, every := time.Now(), max(min(q.lease/3, k.worker.cfg.Heartbeat), minBeat)
	c := &claimedJob{pulledJob: q, every: every, noteAt: now.Add(k.worker.cfg.NoteAfter), beatAt: now.Add(every), logAt: now.Add(logEvery)}
	c.ctx, c.cancel = context.WithCancelCause(ctx)
	k.mu.Lock()
	old := k.held[q.ID]
	k.held[q.ID] = c
	k.mu.Unlock()
	if old != nil { // its claim is lost, otherwise the job would not have been delivered again
		old.cancel(errCanceled)
	}
	select {
	case k.added <- struct{}{}:
	default: // it is about to check anyway
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

// startJob is called before a job's handler and reports whether to call it: not for a job that is
// canceled or returned.
func (k *claimKeeper) startJob(c *claimedJob) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	c.begun = c.ctx.Err() == nil
	return c.begun
}

// runHeartbeats renews claims until ctx ends. Notices are sent by another goroutine, so they cannot
// delay renewals.
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

// enqueueNotice queues a notice, unless the queue is full.
func (k *claimKeeper) enqueueNotice(w jobNotice) {
	select {
	case k.notes <- w:
	default:
	}
}

// setProgress stores the progress text of a job's handler and sends it.
func (k *claimKeeper) setProgress(c *claimedJob, text string) {
	k.mu.Lock()
	// the notice that it is running is not needed any more
	c.progressText, c.noteAt = text, time.Time{}
	k.mu.Unlock()
	k.enqueueNotice(jobNotice{claimedJob: c})
}

// collectDue returns what is due and the time of the next check. Claims that are nearly due are
// included.
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

// sendNote sends the state of a job: that it is running, or its progress text. A failure is
// ignored, because the note only informs viewers.
func (k *claimKeeper) sendNote(ctx context.Context, c *claimedJob) {
	if c.ctx.Err() != nil { // it has ended meanwhile
		return
	}
	k.mu.Lock()
	text := cmp.Or(c.progressText, "running")
	k.mu.Unlock()
	k.sendToEngine(ctx, toHeldClaims([]*claimedJob{c}, text))
}

// maxParts is the number of parts of a job's output to send before other jobs get their turn.
const maxParts = 8

// sendPrinted sends a handler's output. Output that the engine did not get is sent again with the
// next part.
func (k *claimKeeper) sendPrinted(ctx context.Context, c *claimedJob) {
	for range maxParts {
		claims := toHeldClaims([]*claimedJob{c}, "")
		claims[0].PrintedLines = c.printed.nextPart()
		sent := len(claims[0].Lines)
		if sent == 0 || c.ctx.Err() != nil || !k.sendToEngine(ctx, claims) {
			return
		}
		c.printed.confirmPart(sent)
	}
}

func (k *claimKeeper) sendToEngine(ctx context.Context, claims []wire.HeldJob) bool {
	_, err := k.worker.sendHeartbeat(ctx, claims, requestTime)
	if err != nil && ctx.Err() == nil {
		k.worker.cfg.Logger.Debug("reporting a status text failed", "job", claims[0].Job, "error", err)
	}
	return err == nil
}

// renewClaims renews claims. The next heartbeat makes up for a lost one: a claim outlives at least
// two lost heartbeats, even if these wait for their timeout.
func (k *claimKeeper) renewClaims(ctx context.Context, list []*claimedJob) {
	shortest := slices.MinFunc(list, func(a, b *claimedJob) int { return cmp.Compare(a.lease, b.lease) })
	answer, err := k.worker.sendHeartbeat(ctx, toHeldClaims(list, ""), max(shortest.lease/3, minBeat))
	if err != nil {
		if ctx.Err() == nil && !k.outage {
			k.worker.cfg.Logger.Warn("extending claims failed, retrying", "jobs", len(list), "error", err)
			k.outage = true
		}
		return
	}
	k.outage = false
	for _, c := range list { // the worker may have received one of these jobs again meanwhile
		if slices.Contains(answer.Canceled, c.ID) {
			c.cancel(errCanceled)
		}
	}
}

// toHeldClaims returns claims for a request, with a note about their jobs; "" = none.
func toHeldClaims(list []*claimedJob, note string) []wire.HeldJob {
	claims := make([]wire.HeldJob, len(list))
	for i, c := range list {
		claims[i] = wire.HeldJob{Job: c.ID, Token: c.token, StatusText: note}
	}
	return claims
}
