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
	// longestClaim is what is made of longer ones: a Duration does not hold all that a flow may say.
	longestClaim = 100 * 365 * 24 * time.Hour
	minBeat      = 20 * time.Millisecond
	// claimGroup is how many claims one request is about.
	claimGroup = 500
)

var (
	errCanceled = errors.New("worker: nobody waits for this job any longer")
	errLeaving  = errors.New("worker: it ends before this job has begun")
)

// claim is a pulled job in this worker's hands.
type claim struct {
	pulled
	ctx    context.Context // of the handler
	cancel context.CancelCauseFunc
	every  time.Duration // between heartbeats
	noteAt time.Time     // zero = the engine knows that the job is running
	beatAt time.Time
	logAt  time.Time // when to look for what the handler has printed
	begun  bool      // its handler was called
	said   string    // what that says of how far it is; "" = nothing yet

	printed printed
}

func (c *claim) due() time.Time {
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

// word is something to be told of a job that goes on: its state, or what was printed.
type word struct {
	*claim
	log bool
}

// words are what is due of a claim.
func (c *claim) words(now time.Time) (all []word) {
	if !c.noteAt.IsZero() && !c.noteAt.After(now) {
		c.noteAt = time.Time{}
		all = append(all, word{claim: c})
	}
	if !c.logAt.After(now) {
		c.logAt = now.Add(logEvery)
		if c.printed.waits() {
			all = append(all, word{claim: c, log: true})
		}
	}
	return all
}

// claims keeps hold of pulled jobs: it prolongs their claims and hears which of them are canceled.
type claims struct {
	worker *Worker
	mu     sync.Mutex
	held   map[string]*claim
	added  chan struct{}
	notes  chan word // to be told of jobs
	outage bool      // the last beat had no answer, which was said
}

// maxNotes is how many notes may wait to be sent. Further ones are dropped.
const maxNotes = 1000

func newClaims(w *Worker) *claims {
	return &claims{worker: w, held: map[string]*claim{}, added: make(chan struct{}, 1), notes: make(chan word, maxNotes)}
}

func (k *claims) add(ctx context.Context, q pulled) *claim {
	// As often as the worker's own signs of life, to hear soon of what is canceled.
	now, every := time.Now(), max(min(q.lease/3, k.worker.cfg.Heartbeat), minBeat)
	c := &claim{pulled: q, every: every, noteAt: now.Add(k.worker.cfg.NoteAfter), beatAt: now.Add(every), logAt: now.Add(logEvery)}
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

func (k *claims) remove(c *claim) {
	c.cancel(nil)
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.held[c.ID] == c { // it may have been delivered again meanwhile
		delete(k.held, c.ID)
	}
}

// start is asked before a job's handler is called: not for a job that is canceled or given back.
func (k *claims) start(c *claim) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	c.begun = c.ctx.Err() == nil
	return c.begun
}

// keep works until ctx ends. Notes are sent beside the heartbeats: claims must not run out because of them.
func (k *claims) keep(ctx context.Context) {
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
		words, beats, next := k.look(time.Now())
		for _, w := range words {
			k.sayWord(w)
		}
		for group := range slices.Chunk(beats, claimGroup) {
			k.beat(ctx, group)
		}
		timer.Reset(time.Until(next))
	}
}

// sayWord has something told of a job, unless too much is to be.
func (k *claims) sayWord(w word) {
	select {
	case k.notes <- w:
	default:
	}
}

// tell has it told what a job's handler says of itself.
func (k *claims) tell(c *claim, text string) {
	k.mu.Lock()
	c.said, c.noteAt = text, time.Time{} // it need not be said that it is running
	k.mu.Unlock()
	k.sayWord(word{claim: c})
}

// look finds what is due and when to look again. Who is nearly due is taken along.
func (k *claims) look(now time.Time) (words []word, beats []*claim, next time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	next = now.Add(time.Hour)
	for _, c := range k.held {
		words = append(words, c.words(now)...)
		if !c.beatAt.After(now.Add(c.every / 4)) {
			beats = append(beats, c)
			c.beatAt = now.Add(c.every)
		}
		if c.due().Before(next) {
			next = c.due()
		}
	}
	return words, beats, next
}

func (k *claims) noteLoop(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case w := <-k.notes:
			if w.log {
				k.tellPrinted(ctx, w.claim)
			} else {
				k.note(ctx, w.claim)
			}
		}
	}
}

// note tells that a job is running, or what its handler says. It is for whoever watches, so a failure does no harm.
func (k *claims) note(ctx context.Context, c *claim) {
	if c.ctx.Err() != nil { // it has ended meanwhile
		return
	}
	k.mu.Lock()
	text := cmp.Or(c.said, "running")
	k.mu.Unlock()
	k.tellEngine(ctx, held([]*claim{c}, text))
}

// mostParts is how much of what a job has printed is sent before others have their turn.
const mostParts = 8

// tellPrinted sends what a handler has printed. What the engine does not get is sent again with what comes next.
func (k *claims) tellPrinted(ctx context.Context, c *claim) {
	for range mostParts {
		claims := held([]*claim{c}, "")
		claims[0].Said = c.printed.part()
		sent := len(claims[0].Lines)
		if sent == 0 || c.ctx.Err() != nil || !k.tellEngine(ctx, claims) {
			return
		}
		c.printed.arrived(sent)
	}
}

func (k *claims) tellEngine(ctx context.Context, claims []wire.HeldClaim) bool {
	_, err := k.worker.beat(ctx, claims, requestTime)
	if err != nil && ctx.Err() == nil {
		k.worker.cfg.Logger.Debug("the engine was not told how a job gets on", "job", claims[0].Job, "error", err)
	}
	return err == nil
}

// beat prolongs claims. A lost beat is made up for by the next one: a claim outlives two at least, also when they get no answer.
func (k *claims) beat(ctx context.Context, list []*claim) {
	shortest := slices.MinFunc(list, func(a, b *claim) int { return cmp.Compare(a.lease, b.lease) })
	answer, err := k.worker.beat(ctx, held(list, ""), max(shortest.lease/3, minBeat))
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

// held tells of claims, and what their jobs' states are called; "" = nothing.
func held(list []*claim, note string) []wire.HeldClaim {
	claims := make([]wire.HeldClaim, len(list))
	for i, c := range list {
		claims[i] = wire.HeldClaim{Job: c.ID, Token: c.token, Note: note}
	}
	return claims
}
