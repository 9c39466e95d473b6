package conversation

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/troupe-engine/troupe/job"
)

// Wait is an event outside the function for which the function waits. The engine records the end of
// the wait as a step.
type Wait struct {
	Step                   // Tries and Error describe the step that is tried again
	Key      string        // key of a signal or a decision
	For      time.Duration // duration or time limit of the wait; 0 means none
	Question *Question     // question of a decision; nil means none
	Job      *CalledJob    // job of a call; nil for other waits
	branch   *Branch
	answered chan *Step
}

// CalledJob is the job that a call waits for.
type CalledJob struct {
	Service string
	Flow    string // name of a flow to run instead, with an engine as the service; "" means none
	Over    string // transport of the job
	Input   json.RawMessage
	Retries int
	Pause   time.Duration // as in Options
	Timeout time.Duration // time limit of each attempt; 0 means unlimited
}

// Call gives a job to the workers of a service and waits for its result, or returns the recorded
// result.
func (b *Branch) Call(service string, input json.RawMessage, o Options) (json.RawMessage, error) {
	return b.awaitJob(cmp.Or(o.Name, service), o, &CalledJob{Service: service, Over: cmp.Or(o.Over, "push"),
		Input: input, Retries: o.Retries, Pause: o.Pause, Timeout: o.Timeout})
}

// RunFlow runs another flow as a task of its own and waits for its result, or returns the recorded
// result.
func (b *Branch) RunFlow(flow string, input json.RawMessage, o Options) (json.RawMessage, error) {
	return b.awaitJob(cmp.Or(o.Name, flow), o, &CalledJob{Service: "child_task", Flow: flow, Over: "external", Input: input})
}

// awaitJob waits for a job, or returns its recorded result.
func (b *Branch) awaitJob(name string, o Options, j *CalledJob) (json.RawMessage, error) {
	checkName(name)
	s, recorded := b.takeStep(&Step{Name: b.path + name, Use: b.useOf(name), Kind: Call, Hash: o.Hash})
	if !recorded {
		s = b.awaitStep(&Wait{Step: *s, For: o.Within, Job: j})
	}
	return s.Output, s.stepError()
}

// ToMillis converts a time to milliseconds, rounded up.
func ToMillis(d time.Duration) int64 { return int64(math.Ceil(d.Seconds() * 1000)) }

// Await waits for an event outside the function, or returns the recorded end of the wait. Meanwhile
// the function may be given up.
func (b *Branch) Await(kind Kind, name, key string, o Options) (json.RawMessage, error) {
	checkName(name)
	s, recorded := b.takeStep(&Step{Name: b.path + name, Use: b.useOf(name), Kind: kind})
	if !recorded {
		s = b.awaitStep(&Wait{Step: *s, Key: key, For: o.Within, Question: o.Question})
	}
	return s.Output, s.stepError()
}

// awaitStep gives the wait to the conversation and returns its recorded end.
func (b *Branch) awaitStep(w *Wait) *Step {
	w.branch, w.answered = b, make(chan *Step, 1)
	c := b.c
	c.mu.Lock()
	c.waits, c.unsent = append(c.waits, w), append(c.unsent, w)
	c.blockBranch(b)
	if c.running > 0 && c.sending == nil {
		c.sending = time.AfterFunc(sendDelay, c.sendWaits)
	}
	c.mu.Unlock()
	select {
	case s := <-w.answered:
		return s
	case <-b.ctx.Done():
		b.endGoroutine()
		return nil
	}
}

// sendDelay is the delay before the first waits begin apart from the other branches. A function
// that only waits by then is given up with all its waits.
const sendDelay = 5 * time.Millisecond

// sendWaits begins the waits of a function whose other branches run.
func (c *Conversation) sendWaits() {
	c.mu.Lock()
	c.sending = nil
	if c.gaveUp || c.stopped != nil || len(c.unsent) == 0 || c.running == 0 {
		c.mu.Unlock()
		return
	}
	batch := &resultBatch{stored: make(chan struct{})}
	if c.storing {
		if c.gathering == nil {
			c.gathering = batch
		}
		c.mu.Unlock()
		return
	}
	c.storing = true
	c.mu.Unlock()
	c.storeBatch(batch)
}

// giveUp returns the waits of a function that only waits, or nil if another branch runs.
func (c *Conversation) giveUp() []*Wait {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running > 0 || c.storing || c.stopped != nil || !c.live[c.main] || len(c.waits) == 0 {
		return nil
	}
	if len(c.unsent) > maxBatch {
		c.storing = true
		go c.storeBatch(&resultBatch{stored: make(chan struct{})})
		return nil
	}
	c.gaveUp, c.unsent = true, nil
	return slices.Clone(c.waits)
}

// endWait continues after a wait that has ended while the function is with its carrier.
func (c *Conversation) endWait(s Step) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.IndexFunc(c.waits, s.isEndOf)
	if c.gaveUp || c.stopped != nil || i < 0 {
		return
	}
	s.index = c.stored
	c.stored++
	c.answerWait(c.waits[i], &s)
}

// answerWait sets the end of a wait. The caller holds the mutex.
func (c *Conversation) answerWait(w *Wait, s *Step) {
	c.forgetWaits(func(other *Wait) bool { return other == w })
	w.branch.last = s.index
	c.unblockBranch(w.branch)
	w.answered <- s
}

// pauseTries waits before the next try of a step. It returns false if the function must stop.
func (b *Branch) pauseTries(ctx context.Context, s *Step, pause time.Duration) bool {
	if s.Kind == Undo && b.c.pause != nil {
		b.c.pause(pause)
		return ctx.Err() == nil
	}
	if pause <= b.c.warm || s.Kind == Undo {
		return sleepFor(ctx, pause)
	}
	w := &Wait{Step: *s, For: pause}
	w.Kind = Retry
	b.awaitStep(w)
	return true
}

// skipRetries takes the recorded pauses between the tries of a step from the history.
func (b *Branch) skipRetries(s *Step) {
	for b.at < len(b.history) {
		was := b.history[b.at]
		if was.Kind != Retry || was.Name != s.Name || was.Use != s.Use {
			return
		}
		s.Tries = was.Tries
		b.at++
	}
}

// CanResume reports whether a given-up function fits a later history: only its waits may have ended
// since.
func (c *Conversation) CanResume(history []Step) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	ended := len(c.endedWaits(history))
	return c.gaveUp && ended > 0 && c.stored+ended == len(history) && c.ctx.Err() == nil
}

// waitEnd identifies a wait and the step that ends it.
type waitEnd struct {
	name       string
	use, tries int
	kind       Kind
}

func (s *Step) waitEnd() waitEnd {
	end := waitEnd{name: s.Name, use: s.Use, kind: s.Kind}
	if s.Kind == Retry {
		end.tries = s.Tries
	}
	return end
}

func (s *Step) isEndOf(w *Wait) bool { return s.waitEnd() == w.waitEnd() }

// endedWaits returns the waits that have ended in a history, by the index of their end. The caller
// holds the mutex.
func (c *Conversation) endedWaits(history []Step) map[int]*Wait {
	open, ended := map[waitEnd]*Wait{}, map[int]*Wait{}
	for _, w := range c.waits {
		open[w.waitEnd()] = w
	}
	for i := range history {
		if w := open[history[i].waitEnd()]; w != nil {
			ended[i] = w
		}
	}
	return ended
}

// Resume continues a given-up function after its waits, in another delivery of its job. The
// function must fit the history. Resume returns as Run does.
func (c *Conversation) Resume(ctx context.Context, j job.Job, history []Step, host Host) Outcome {
	c.mu.Lock()
	c.job, c.host, c.gaveUp, c.stored = j, host, false, len(history)
	ended := c.endedWaits(history)
	for _, i := range slices.Sorted(maps.Keys(ended)) {
		history[i].index = i
		c.answerWait(ended[i], &history[i])
	}
	c.mu.Unlock()
	host.Listen(c.endWait)
	return c.awaitOutcome(ctx)
}

// Drop ends a given-up function. Its deferred calls run.
func (c *Conversation) Drop() { c.end(ErrOver) }
