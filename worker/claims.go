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
	// defaultLease is the lease if the engine does not send one.
	defaultLease = 60 * time.Second
	// longestClaim is the upper limit of a claim. A flow may set a duration that does not fit into
	// a time.Duration.
	longestClaim = 100 * 365 * 24 * time.Hour
	minBeat      = 20 * time.Millisecond
	// claimGroup is the maximum number of claims in one request.
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
	noteAt       time.Time     // time of the next note; zero if the engine knows that the job runs
	beatAt       time.Time
	logAt        time.Time // time of the next check for output of the handler
	begun        bool      // the handler was called
	progressText string    // progress text of the handler; "" if there is none yet

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

// logEvery is the interval at which output of handlers is sent.
const logEvery = 500 * time.Millisecond

// jobNotice is a notice about a running job: the state of the job, or its output.
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

// claimKeeper renews the claims of pulled jobs. The answers name the canceled jobs.
type claimKeeper struct {
	worker *Worker
	mu     sync.Mutex
	held   map[string]*claimedJob
	added  chan struct{}
	notes  chan jobNotice // notices to send
	outage bool           // the last heartbeat got no answer, and this was logged
}

// maxNotes is the maximum number of queued notices. Further notices are dropped.
const maxNotes = 1000

func newClaimKeeper(w *Worker) *claimKeeper {
	return &claimKeeper{worker: w, held: map[string]*claimedJob{}, added: make(chan struct{}, 1), notes: make(chan jobNotice, maxNotes)}
}

func (k *claimKeeper) addJob(ctx context.Context, q pulledJob) *claimedJob {
	// The interval is at most that of the worker's own heartbeats, so that canceled jobs are
	// noticed soon.
	now, every := time.Now(), max(min(q.lease/3, k.worker.cfg.Heartbeat), minBeat)
	c := &claimedJob{pulledJob: q, every: every, noteAt: now.Add(k.worker.cfg.NoteAfter), beatAt: now.Add(every), logAt: now.Add(logEvery)}
	c.ctx, c.cancel = context.WithCancelCause(ctx)
	k.mu.Lock()
	old := k.held[q.ID]
	k.held[q.ID] = c
	k.mu.Unlock()
	if old != nil { // the old claim is lost, since the job was delivered again
		old.cancel(errCanceled)
	}
	select {
	case k.added <- struct{}{}:
	default: // the keeper is about to check anyway
	}
	return c
}

func (k *claimKeeper) removeJob(c *claimedJob) {
	c.cancel(nil)
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.held[c.ID] == c { // the job may have been delivered again meanwhile
		delete(k.held, c.ID)
	}
}

// startJob marks a job as begun before its handler is called. It returns false if the job was
// canceled or returned, so the handler must not be called.
func (k *claimKeeper) startJob(c *claimedJob) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	c.begun = c.ctx.Err() == nil
	return c.begun
}

// runHeartbeats renews claims until ctx ends. Another goroutine sends the notices, so that they
// cannot delay renewals.
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
	// the notice that the job runs is not needed any more
	c.progressText, c.noteAt = text, time.Time{}
	k.mu.Unlock()
	k.enqueueNotice(jobNotice{claimedJob: c})
}

// collectDue returns the notices and claims that are due, and the time of the next check. Claims
// that are nearly due are included.
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

// sendNote sends the progress text of a job, or that the job is running. A failure is ignored,
// because the note is only for display.
func (k *claimKeeper) sendNote(ctx context.Context, c *claimedJob) {
	if c.ctx.Err() != nil { // the job has ended meanwhile
		return
	}
	k.mu.Lock()
	text := cmp.Or(c.progressText, "running")
	k.mu.Unlock()
	k.sendToEngine(ctx, toHeldClaims([]*claimedJob{c}, text))
}

// maxParts is the maximum number of parts of a job's output that are sent in a row, before output
// of other jobs.
const maxParts = 8

// sendPrinted sends output of a handler. Output that the engine did not receive is sent again with
// the next part.
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

// renewClaims renews claims. A lost heartbeat is made up for by the next one: a claim outlives at
// least two lost heartbeats, even if both run into their timeout.
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

// toHeldClaims returns claims for a request. note describes the state of the jobs; "" means none.
func toHeldClaims(list []*claimedJob, note string) []wire.HeldJob {
	claims := make([]wire.HeldJob, len(list))
	for i, c := range list {
		claims[i] = wire.HeldJob{Job: c.ID, Token: c.token, StatusText: note}
	}
	return claims
}
