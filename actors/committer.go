package actors

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/troupe-engine/troupe/persistence"
)

// committer has one queue of commits and, while there is something in it, up to so many goroutines
// that write, its lanes, each a batch at a time. While batches are being written the next one
// gathers; the first lane that the store has answered takes all that waits, if it is worth it. It
// is no actor: a mailbox between the tasks and the queue would only be a second queue.
type committer struct {
	m               *Member
	mu              sync.Mutex
	waiting         []*pendingCommit
	awaitingObjects map[*pendingCommit]bool // what they refer to is being written
	tasks           map[string]bool         // of which a commit is being written: never two of one at a time
	maxLanes        int
	runningLanes    int
	inFlight        int // commits that are being written, and not for long

	calls map[*commitCall]bool // to the store, that have not been answered
}

// commitCall is one that writes a batch.
type commitCall struct {
	startedAt time.Time
	cancel    context.CancelFunc
}

// maxBatch is how many tasks one batch holds at most, maxBatchBytes how much of theirs: a batch
// that has more gets no further one. A store has a limit for one statement, takes its time, and has
// copies of all that is in it.
const (
	maxBatch      = 500
	maxBatchBytes = 4 << 20
)

type (
	// pendingCommit is a commit on its way; reply gets written.
	pendingCommit struct {
		commit     persistence.Commit
		newObjects []persistence.Object // that are to be written first
		reply      *actor.PID
		gen        int
	}
	commitResult struct {
		gen int
		err error // nil, unkept, ErrStale, ErrUnknown, ErrExists, ErrNoVersion, ErrRefused
	}
)

func newCommitter(m *Member) *committer {
	return &committer{m: m, awaitingObjects: map[*pendingCommit]bool{}, tasks: map[string]bool{}, calls: map[*commitCall]bool{}, maxLanes: m.store.Lanes()}
}

func (c *committer) enqueueCommit(w *pendingCommit) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.m.uncommitted.Add(1)
	c.m.snapshots.addSnapshot(&w.commit)
	if len(w.newObjects) > 0 {
		c.awaitingObjects[w] = true
		c.m.runBackground(func() { c.writeObjects(w) })
		return
	}
	c.waiting = append(c.waiting, w)
	c.startLane()
}

// writeObjects has the objects written that a commit refers to. Where that is not possible the
// commit is not written either.
func (c *committer) writeObjects(w *pendingCommit) {
	err := c.m.cfg.Payloads.WriteMade(c.m.ctx, w.newObjects)
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.awaitingObjects, w)
	if err == nil {
		c.waiting = append(c.waiting, w)
		c.startLane()
		return
	}
	c.m.uncommitted.Add(-1)
	c.m.snapshots.releaseBatch([]*pendingCommit{w})
	if c.m.ctx.Err() == nil {
		c.m.sendMessage(w.reply, commitResult{w.gen, objectWriteError{toBusyError(err)}})
	}
}

func (c *committer) startLane() {
	if c.runningLanes < c.maxLanes && c.isBatchDue() {
		c.runningLanes++
		c.m.runBackground(c.runLane)
	}
}

// isBatchDue is true when as many commits wait as are being written: what a batch costs is shared
// by all that is in it, so fewer wait for the lane that is about to be answered.
func (c *committer) isBatchDue() bool { return len(c.waiting) > 0 && len(c.waiting) >= c.inFlight }

// runLane writes batches until nothing waits. Before each it lets those run who are about to add to
// it: that costs an idle member nothing and makes the batches of a busy one several times larger.
func (c *committer) runLane() {
	for {
		runtime.Gosched()
		batch := c.takeBatch()
		if len(batch) == 0 {
			return
		}
		c.writeCounted(batch)
	}
}

// maxLaneWait is how long others wait for a batch that is larger than theirs.
const maxLaneWait = 100 * time.Millisecond

func (c *committer) writeCounted(batch []*pendingCommit) {
	n := len(batch)
	land := func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.inFlight -= n
		n = 0
	}
	defer land()
	defer c.m.cfg.Host.Clock.AfterFunc(maxLaneWait, func() {
		land()
		c.mu.Lock()
		defer c.mu.Unlock()
		c.startLane()
	})()
	c.writeBatch(batch)
}

// takeBatch forms the next batch. A second commit of a task waits for the first one; there is one
// only when the task's actor crashed and a new one was quick.
func (c *committer) takeBatch() []*pendingCommit {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.isBatchDue() {
		c.runningLanes--
		return nil
	}
	batch := make([]*pendingCommit, 0, min(len(c.waiting), maxBatch))
	left := c.waiting[:0:0]
	size := 0
	for i, w := range c.waiting {
		if len(batch) == maxBatch || size >= maxBatchBytes {
			left = append(left, c.waiting[i:]...)
			break
		}
		if c.tasks[w.commit.Task] {
			left = append(left, w)
			continue
		}
		c.tasks[w.commit.Task] = true
		batch = append(batch, w)
		size += len(w.commit.Events) + w.commit.Snapshot.Len()
	}
	if c.waiting = left; len(batch) == 0 {
		c.runningLanes-- // what is left waits for a lane that goes on
	}
	c.inFlight += len(batch)
	return batch
}

// isWritingFor reports whether a commit of a task of some shards is on its way.
func (c *committer) isWritingFor(shards persistence.ShardSet) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for task := range c.tasks {
		if shards.Has(task) {
			return true
		}
	}
	for w := range c.awaitingObjects {
		if shards.Has(w.commit.Task) {
			return true
		}
	}
	return slices.ContainsFunc(c.waiting, func(w *pendingCommit) bool { return shards.Has(w.commit.Task) })
}

func (c *committer) finishBatch(batch []*pendingCommit) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, w := range batch {
		delete(c.tasks, w.commit.Task)
	}
	c.m.uncommitted.Add(-int64(len(batch)))
	c.m.snapshots.releaseBatch(batch)
}

// writeBatch sends a batch until the store has answered each of its commits.
func (c *committer) writeBatch(batch []*pendingCommit) {
	commits := make([]persistence.Commit, len(batch))
	for i, w := range batch {
		commits[i] = w.commit
	}
	health := c.m.watchdog
	var number int64
	written := false
	health.updateHealth(func(h *storeHealth, now time.Time) { number = h.startBatch(now) })
	defer health.checkHealthIn(slowBatch)()
	defer func() { health.updateHealth(func(h *storeHealth, _ time.Time) { h.endBatch(number, written) }) }()
	for try := 1; ; try++ {
		started := c.m.cfg.Host.Clock.Now()
		errs, err := c.commitOnce(commits)
		switch {
		case err == nil:
			written = true
			c.m.outages.recordSuccess(notWritten, batch[0].commit.Task)
			c.m.metrics.observeCommit(len(batch), c.m.cfg.Host.Clock.Now().Sub(started))
			c.answerBatch(batch, errs)
			return
		case errors.Is(err, persistence.ErrRefused):
			written = true
			c.m.outages.recordSuccess(notWritten, batch[0].commit.Task)
			c.splitBatch(batch, err)
			return
		case errors.Is(err, persistence.ErrFenced) || c.m.ctx.Err() != nil:
			return // nothing of this member is written any more, so nobody gets an answer
		}
		health.updateHealth(func(h *storeHealth, _ time.Time) { h.failBatch(err) })
		c.m.outages.recordFailure(notWritten, batch[0].commit.Task, err)
		if !c.m.sleepFor(storePause(try)) {
			return
		}
	}
}

// commitOnce sends a batch once.
func (c *committer) commitOnce(batch []persistence.Commit) ([]error, error) {
	ctx, cancel := c.m.storeCall()
	defer cancel()
	ask := &commitCall{c.m.cfg.Host.Clock.Now(), cancel}
	c.mu.Lock()
	c.calls[ask] = true
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.calls, ask)
	}()
	return c.m.store.Commit(ctx, c.m.incarnation, batch)
}

// cancelCallsBefore ends calls that began before a time, to be sent again: their connections may be
// dead without a word, while the store answers on others.
func (c *committer) cancelCallsBefore(before time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for ask := range c.calls {
		if ask.startedAt.Before(before) {
			ask.cancel()
		}
	}
}

// storeCallTimeout bounds one call to the store. A connection that is gone without a word would
// hold whoever waits for its answer for ever; after this time it counts as broken.
const storeCallTimeout = 30 * time.Second

func (m *Member) storeCall() (context.Context, func()) { return m.timeoutContext(storeCallTimeout) }

// timeoutContext is a context that ends with the member, or when its time is over.
func (m *Member) timeoutContext(d time.Duration) (context.Context, func()) {
	ctx, cancel := context.WithCancel(m.ctx)
	stop := m.cfg.Host.Clock.AfterFunc(d, cancel)
	return ctx, func() {
		stop()
		cancel()
	}
}

// splitBatch finds the commit that the store refuses: the others are not to suffer from it.
func (c *committer) splitBatch(batch []*pendingCommit, err error) {
	if len(batch) == 1 {
		c.answerBatch(batch, []error{err})
		return
	}
	c.writeBatch(batch[:len(batch)/2])
	c.writeBatch(batch[len(batch)/2:])
}

func (c *committer) answerBatch(batch []*pendingCommit, errs []error) {
	c.finishBatch(batch)
	for i, w := range batch {
		c.m.sendMessage(w.reply, commitResult{w.gen, errs[i]})
	}
}

// sleepFor waits, false when the member goes.
func (m *Member) sleepFor(d time.Duration) bool {
	ctx, cancel := context.WithCancel(m.ctx)
	defer cancel()
	done := make(chan struct{})
	stop := m.cfg.Host.Clock.AfterFunc(d, func() { close(done) })
	defer stop()
	m.parkUntil(func() bool { return isClosed(done) || ctx.Err() != nil })
	select {
	case <-done:
	case <-ctx.Done():
	}
	return m.ctx.Err() == nil
}
