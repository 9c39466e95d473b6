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

// committer writes commits in groups. It has one queue and, while the queue is not empty, up to
// maxLanes goroutines that each write one batch at a time (lanes). While batches are being written
// the next one gathers. The first lane that gets its answer from the store takes all waiting
// commits, if there are enough. It is not an actor: a mailbox between the tasks and the queue would
// only be a second queue.
type committer struct {
	m               *Member
	mu              sync.Mutex
	waiting         []*pendingCommit
	awaitingObjects map[*pendingCommit]bool // commits whose objects are being written
	// tasks with a commit being written: never two commits of one task at a time
	tasks        map[string]bool
	maxLanes     int
	runningLanes int
	inFlight     int // commits being written, without those of slow batches

	calls map[*commitCall]bool // store calls without an answer yet
}

// commitCall is a store call that writes a batch.
type commitCall struct {
	startedAt time.Time
	cancel    context.CancelFunc
}

// maxBatch is the most tasks in one batch. maxBatchBytes is the size at which a batch gets no
// further commit. A store has a limit for one statement, needs time for it, and holds copies of
// everything in it.
const (
	maxBatch      = 500
	maxBatchBytes = 4 << 20
)

type (
	// pendingCommit is a commit that is not answered yet; reply gets a commitResult.
	pendingCommit struct {
		commit     persistence.Commit
		newObjects []persistence.Object // to be written before the commit
		reply      *actor.PID
		gen        int
	}
	commitResult struct {
		gen int
		// nil, objectWriteError, ErrStale, ErrUnknown, ErrExists, ErrNoVersion, ErrRefused
		err error
	}
)

func newCommitter(m *Member) *committer {
	return &committer{m: m, awaitingObjects: map[*pendingCommit]bool{}, tasks: map[string]bool{},
		calls: map[*commitCall]bool{}, maxLanes: m.store.Lanes()}
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

// writeObjects writes the objects that a commit refers to. If that fails, the commit is not written
// either.
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

// isBatchDue reports whether at least as many commits wait as are being written. The cost of a
// batch is shared by all its commits, so fewer commits wait for the lane that gets its answer next.
func (c *committer) isBatchDue() bool { return len(c.waiting) > 0 && len(c.waiting) >= c.inFlight }

// runLane writes batches until no commit waits. Before each batch it yields to goroutines that are
// about to add commits: that costs an idle member nothing and makes the batches of a busy one
// several times larger.
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

// maxLaneWait is how long other commits wait for a batch that is larger than theirs.
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

// takeBatch forms the next batch. A second commit of a task waits for the first one; that happens
// only when the task's actor crashed and the new one is quick.
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
		c.runningLanes-- // the remaining commits wait for a lane that continues
	}
	c.inFlight += len(batch)
	return batch
}

// isWritingFor reports whether a commit of a task in the given shards is pending.
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

// writeBatch writes a batch, with retries, until the store has answered each of its commits.
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
			return // this member can no longer write anything, so no task gets an answer
		}
		health.updateHealth(func(h *storeHealth, _ time.Time) { h.failBatch(err) })
		c.m.outages.recordFailure(notWritten, batch[0].commit.Task, err)
		if !c.m.sleepFor(storePause(try)) {
			return
		}
	}
}

// commitOnce sends a batch to the store once.
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

// cancelCallsBefore cancels calls that started before the given time, so that they are retried.
// Their connections may be silently dead while the store answers on others.
func (c *committer) cancelCallsBefore(before time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for ask := range c.calls {
		if ask.startedAt.Before(before) {
			ask.cancel()
		}
	}
}

// storeCallTimeout bounds one call to the store. A silently dead connection would block its caller
// forever; after this time it counts as broken.
const storeCallTimeout = 30 * time.Second

func (m *Member) storeCall() (context.Context, func()) { return m.timeoutContext(storeCallTimeout) }

// timeoutContext returns a context that ends with the member, or after d.
func (m *Member) timeoutContext(d time.Duration) (context.Context, func()) {
	ctx, cancel := context.WithCancel(m.ctx)
	stop := m.cfg.Host.Clock.AfterFunc(d, cancel)
	return ctx, func() {
		stop()
		cancel()
	}
}

// splitBatch finds the commit that the store refuses, so that the others in the batch are still
// written.
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

// sleepFor waits for d. It returns false when the member stops.
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
