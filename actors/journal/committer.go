// Package journal writes and reads the tasks of a member in batches: a Committer writes the rows of
// journals, a Loader reads tasks. Both are structures with locks. The actors of tasks call them
// and get the answers as messages.
package journal

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/troupe-engine/troupe/actors/background"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// Committer writes commits in groups. Up to maxLanes goroutines (lanes) each write one batch at a
// time, while the next batch gathers. A lane that gets its answer takes all waiting commits, if
// there are enough. It is a structure with a lock, because the mailbox of an actor would be a
// second queue.
type Committer struct {
	cfg CommitterConfig
	// Snapshots counts the snapshots on their way to the store.
	Snapshots *SnapshotBudget

	mu              sync.Mutex
	waiting         []*Pending
	awaitingObjects map[*Pending]bool // commits whose objects are being written
	// tasks with a commit being written; a task has at most one
	tasks        map[string]bool
	maxLanes     int
	runningLanes int
	inFlight     int // commits being written, except those of slow batches

	calls map[*commitCall]bool // open calls to the store
}

// commitCall is a store call that writes a batch.
type commitCall struct {
	startedAt time.Time
	cancel    context.CancelFunc
}

// MaxBatch is the maximum number of tasks in one batch. maxBatchBytes is the size at which a batch
// gets no further commit. Larger statements take too long and cost memory, because the store holds
// copies of them.
const (
	MaxBatch      = 500
	maxBatchBytes = 4 << 20
)

type (
	// Pending is a commit that is not answered yet. Its actor gets a Written.
	Pending struct {
		Commit     persistence.Commit
		NewObjects []persistence.Object // objects to write before the commit
		Reply      *actor.PID
		Gen        int
	}
	// Written is the answer to a commit.
	Written struct {
		Gen int
		// nil, ObjectWriteError, ErrStale, ErrUnknown, ErrExists, ErrNoVersion or ErrRefused
		Err error
	}
)

// CommitterConfig configures a committer.
type CommitterConfig struct {
	Store       CommitStore
	Incarnation string
	Work        *background.Work
	Health      StoreHealth
	Outages     Outages
	// WriteObjects writes the objects that a commit refers to.
	WriteObjects func(ctx context.Context, objects []persistence.Object) error
	// Observe counts a batch that was written.
	Observe func(tasks int, took time.Duration)
	Send    func(to *actor.PID, message any)
	// Uncommitted counts the commits that are not answered yet.
	Uncommitted *atomic.Int64
}

// CommitStore is the part of the store that a committer needs.
type CommitStore interface {
	Commit(ctx context.Context, incarnation string, batch []persistence.Commit) ([]error, error)
	Lanes() int
}

// StoreHealth receives the progress of batches and decides from it whether the store is available.
type StoreHealth interface {
	StartBatch() (number int64)
	FailBatch(err error)
	EndBatch(number int64, written bool)
	CheckSlowBatch() (stop func() bool)
}

// Outages receives the results of store calls, to log when they start to fail and when they
// succeed again.
type Outages interface {
	RecordFailure(what, thing string, err error) (times int)
	RecordSuccess(what, thing string)
	RecordCall(what, thing string, err error)
}

// NewCommitter creates the committer of a member.
func NewCommitter(cfg CommitterConfig) *Committer {
	return &Committer{cfg: cfg, Snapshots: &SnapshotBudget{send: cfg.Send}, awaitingObjects: map[*Pending]bool{}, tasks: map[string]bool{},
		calls: map[*commitCall]bool{}, maxLanes: cfg.Store.Lanes()}
}

// notWritten is the log message about an outage.
const notWritten = "writing a batch failed"

// ObjectWriteError is the error when a row is not stored because its objects could not be written.
type ObjectWriteError struct{ Err error }

// Error returns the text of the cause.
func (u ObjectWriteError) Error() string { return u.Err.Error() }

// Unwrap returns the cause.
func (u ObjectWriteError) Unwrap() error { return u.Err }

// Enqueue writes a commit. Its actor gets the answer as a Written.
func (c *Committer) Enqueue(w *Pending) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cfg.Uncommitted.Add(1)
	c.Snapshots.addSnapshot(&w.Commit)
	if len(w.NewObjects) > 0 {
		c.awaitingObjects[w] = true
		c.cfg.Work.Run(func() { c.writeObjects(w) })
		return
	}
	c.waiting = append(c.waiting, w)
	c.startLane()
}

// writeObjects writes the objects that a commit refers to. If that fails, the commit is not written
// either.
func (c *Committer) writeObjects(w *Pending) {
	err := c.cfg.WriteObjects(c.cfg.Work.Context(), w.NewObjects)
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.awaitingObjects, w)
	if err == nil {
		c.waiting = append(c.waiting, w)
		c.startLane()
		return
	}
	c.cfg.Uncommitted.Add(-1)
	c.Snapshots.releaseBatch([]*Pending{w})
	if !c.cfg.Work.HasEnded() {
		c.cfg.Send(w.Reply, Written{w.Gen, ObjectWriteError{flow.Errorf(flow.Busy, "%v", err)}})
	}
}

func (c *Committer) startLane() {
	if c.runningLanes < c.maxLanes && c.isBatchDue() {
		c.runningLanes++
		c.cfg.Work.Run(c.runLane)
	}
}

// isBatchDue reports whether at least as many commits wait as are being written. Fewer commits wait
// for the next free lane, because larger batches cost less for each commit.
func (c *Committer) isBatchDue() bool { return len(c.waiting) > 0 && len(c.waiting) >= c.inFlight }

// runLane writes batches until no commit waits. Before each batch it yields to goroutines that may
// add commits. This costs an idle member nothing and makes the batches of a busy member several
// times larger.
func (c *Committer) runLane() {
	for {
		runtime.Gosched()
		batch := c.takeBatch()
		if len(batch) == 0 {
			return
		}
		c.writeCounted(batch)
	}
}

// maxLaneWait is the time after which a batch in progress no longer delays other commits.
const maxLaneWait = 100 * time.Millisecond

func (c *Committer) writeCounted(batch []*Pending) {
	n := len(batch)
	land := func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.inFlight -= n
		n = 0
	}
	defer land()
	defer c.cfg.Work.After(maxLaneWait, func() {
		land()
		c.mu.Lock()
		defer c.mu.Unlock()
		c.startLane()
	})()
	c.writeBatch(batch)
}

// takeBatch forms the next batch. A second commit of a task waits for the first one, which happens
// only after a crash of the task's actor.
func (c *Committer) takeBatch() []*Pending {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.isBatchDue() {
		c.runningLanes--
		return nil
	}
	batch := make([]*Pending, 0, min(len(c.waiting), MaxBatch))
	left := c.waiting[:0:0]
	size := 0
	for i, w := range c.waiting {
		if len(batch) == MaxBatch || size >= maxBatchBytes {
			left = append(left, c.waiting[i:]...)
			break
		}
		if c.tasks[w.Commit.Task] {
			left = append(left, w)
			continue
		}
		c.tasks[w.Commit.Task] = true
		batch = append(batch, w)
		size += len(w.Commit.Events) + w.Commit.Snapshot.Len()
	}
	if c.waiting = left; len(batch) == 0 {
		c.runningLanes-- // the remaining commits wait for another lane
	}
	c.inFlight += len(batch)
	return batch
}

// IsWritingFor reports whether a commit of a task in the given shards is pending.
func (c *Committer) IsWritingFor(shards persistence.ShardSet) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for task := range c.tasks {
		if shards.Has(task) {
			return true
		}
	}
	for w := range c.awaitingObjects {
		if shards.Has(w.Commit.Task) {
			return true
		}
	}
	return slices.ContainsFunc(c.waiting, func(w *Pending) bool { return shards.Has(w.Commit.Task) })
}

func (c *Committer) finishBatch(batch []*Pending) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, w := range batch {
		delete(c.tasks, w.Commit.Task)
	}
	c.cfg.Uncommitted.Add(-int64(len(batch)))
	c.Snapshots.releaseBatch(batch)
}

// writeBatch writes a batch, with retries, until the store has answered each of its commits.
func (c *Committer) writeBatch(batch []*Pending) {
	commits := make([]persistence.Commit, len(batch))
	for i, w := range batch {
		commits[i] = w.Commit
	}
	health := c.cfg.Health
	number, written := health.StartBatch(), false
	defer health.CheckSlowBatch()()
	defer func() { health.EndBatch(number, written) }()
	for try := 1; ; try++ {
		started := c.cfg.Work.Clock.Now()
		errs, err := c.commitOnce(commits)
		switch {
		case err == nil:
			written = true
			c.cfg.Outages.RecordSuccess(notWritten, batch[0].Commit.Task)
			c.cfg.Observe(len(batch), c.cfg.Work.Clock.Now().Sub(started))
			c.answerBatch(batch, errs)
			return
		case errors.Is(err, persistence.ErrRefused):
			written = true
			c.cfg.Outages.RecordSuccess(notWritten, batch[0].Commit.Task)
			c.splitBatch(batch, err)
			return
		case errors.Is(err, persistence.ErrFenced) || c.cfg.Work.HasEnded():
			return // this member can no longer write, so no task gets an answer
		}
		health.FailBatch(err)
		c.cfg.Outages.RecordFailure(notWritten, batch[0].Commit.Task, err)
		if !c.cfg.Work.Sleep(background.StorePause(try)) {
			return
		}
	}
}

// commitOnce sends a batch to the store once.
func (c *Committer) commitOnce(batch []persistence.Commit) ([]error, error) {
	ctx, cancel := c.cfg.Work.StoreCall()
	defer cancel()
	ask := &commitCall{c.cfg.Work.Clock.Now(), cancel}
	c.mu.Lock()
	c.calls[ask] = true
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.calls, ask)
	}()
	return c.cfg.Store.Commit(ctx, c.cfg.Incarnation, batch)
}

// CancelCallsBefore cancels calls that started before the given time, so that they are retried.
// Their connections may be silently dead while the store answers on other connections.
func (c *Committer) CancelCallsBefore(before time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for ask := range c.calls {
		if ask.startedAt.Before(before) {
			ask.cancel()
		}
	}
}

// splitBatch halves a refused batch to find the commit that the store refuses, so that the other
// commits are still written.
func (c *Committer) splitBatch(batch []*Pending, err error) {
	if len(batch) == 1 {
		c.answerBatch(batch, []error{err})
		return
	}
	c.writeBatch(batch[:len(batch)/2])
	c.writeBatch(batch[len(batch)/2:])
}

func (c *Committer) answerBatch(batch []*Pending, errs []error) {
	c.finishBatch(batch)
	for i, w := range batch {
		c.cfg.Send(w.Reply, Written{w.Gen, errs[i]})
	}
}
