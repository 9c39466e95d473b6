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

// committer has one queue of commits and, while there is something in it, up to so many goroutines that write, its lanes,
// each a batch at a time. While batches are being written the next one gathers; the first lane that
// the store has answered takes all that waits, if it is worth it. It is no actor: a mailbox between the tasks and
// the queue would only be a second queue.
type committer struct {
	m       *Member
	mu      sync.Mutex
	waiting []*writing
	early   map[*writing]bool // what they refer to is being written
	tasks   map[string]bool   // of which a commit is being written: never two of one at a time
	most    int
	running int
	flying  int // commits that are being written, and not for long

	calls map[*call]bool // to the store, that have not been answered
}

// call is one that writes a batch.
type call struct {
	begun time.Time
	end   context.CancelFunc
}

// maxBatch is how many tasks one batch holds at most, maxBatchBytes how much of theirs: a batch that has
// more gets no further one. A store has a limit for one statement, takes its time, and has copies of all that is in it.
const (
	maxBatch      = 500
	maxBatchBytes = 4 << 20
)

type (
	// writing is a commit on its way; reply gets written.
	writing struct {
		commit persistence.Commit
		made   []persistence.Object // that are to be written first
		reply  *actor.PID
		gen    int
	}
	written struct {
		gen int
		err error // nil, unkept, ErrStale, ErrUnknown, ErrExists, ErrNoVersion, ErrRefused
	}
)

func newCommitter(m *Member) *committer {
	return &committer{m: m, early: map[*writing]bool{}, tasks: map[string]bool{}, calls: map[*call]bool{}, most: m.store.Lanes()}
}

func (c *committer) add(w *writing) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.m.uncommitted.Add(1)
	c.m.snapshots.take(&w.commit)
	if len(w.made) > 0 {
		c.early[w] = true
		c.m.background(func() { c.prepare(w) })
		return
	}
	c.waiting = append(c.waiting, w)
	c.begin()
}

// prepare has the objects written that a commit refers to. Where that is not possible the commit is not written either.
func (c *committer) prepare(w *writing) {
	err := c.m.cfg.Payloads.WriteMade(c.m.ctx, w.made)
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.early, w)
	if err == nil {
		c.waiting = append(c.waiting, w)
		c.begin()
		return
	}
	c.m.uncommitted.Add(-1)
	c.m.snapshots.gone([]*writing{w})
	if c.m.ctx.Err() == nil {
		c.m.tell(w.reply, written{w.gen, unkept{notKept(err)}})
	}
}

func (c *committer) begin() {
	if c.running < c.most && c.worth() {
		c.running++
		c.m.background(c.run)
	}
}

// worth is true when as many commits wait as are being written: what a batch costs is shared by all that is in
// it, so fewer wait for the lane that is about to be answered.
func (c *committer) worth() bool { return len(c.waiting) > 0 && len(c.waiting) >= c.flying }

// run writes batches until nothing waits. Before each it lets those run who are about to add to it:
// that costs an idle member nothing and makes the batches of a busy one several times larger.
func (c *committer) run() {
	for {
		runtime.Gosched()
		batch := c.take()
		if len(batch) == 0 {
			return
		}
		c.fly(batch)
	}
}

// patience is how long others wait for a batch that is larger than theirs.
const patience = 100 * time.Millisecond

func (c *committer) fly(batch []*writing) {
	n := len(batch)
	land := func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.flying -= n
		n = 0
	}
	defer land()
	defer c.m.cfg.Host.Clock.AfterFunc(patience, func() {
		land()
		c.mu.Lock()
		defer c.mu.Unlock()
		c.begin()
	})()
	c.write(batch)
}

// take forms the next batch. A second commit of a task waits for the first one; there is one only when
// the task's actor crashed and a new one was quick.
func (c *committer) take() []*writing {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.worth() {
		c.running--
		return nil
	}
	batch := make([]*writing, 0, min(len(c.waiting), maxBatch))
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
		c.running-- // what is left waits for a lane that goes on
	}
	c.flying += len(batch)
	return batch
}

// busyWith says whether a commit of a task of some shards is on its way.
func (c *committer) busyWith(shards persistence.ShardSet) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for task := range c.tasks {
		if shards.Has(task) {
			return true
		}
	}
	for w := range c.early {
		if shards.Has(w.commit.Task) {
			return true
		}
	}
	return slices.ContainsFunc(c.waiting, func(w *writing) bool { return shards.Has(w.commit.Task) })
}

func (c *committer) done(batch []*writing) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, w := range batch {
		delete(c.tasks, w.commit.Task)
	}
	c.m.uncommitted.Add(-int64(len(batch)))
	c.m.snapshots.gone(batch)
}

// write sends a batch until the store has answered each of its commits.
func (c *committer) write(batch []*writing) {
	commits := make([]persistence.Commit, len(batch))
	for i, w := range batch {
		commits[i] = w.commit
	}
	health := c.m.watchdog
	var number int64
	written := false
	health.note(func(h *storeHealth, now time.Time) { number = h.begin(now) })
	defer health.lookIn(slowBatch)()
	defer func() { health.note(func(h *storeHealth, _ time.Time) { h.end(number, written) }) }()
	for try := 1; ; try++ {
		started := c.m.cfg.Host.Clock.Now()
		errs, err := c.commit(commits)
		switch {
		case err == nil:
			written = true
			c.m.outages.works(notWritten, batch[0].commit.Task)
			c.m.metrics.committed(len(batch), c.m.cfg.Host.Clock.Now().Sub(started))
			c.answer(batch, errs)
			return
		case errors.Is(err, persistence.ErrRefused):
			written = true
			c.m.outages.works(notWritten, batch[0].commit.Task)
			c.split(batch, err)
			return
		case errors.Is(err, persistence.ErrFenced) || c.m.ctx.Err() != nil:
			return // nothing of this member is written any more, so nobody gets an answer
		}
		health.note(func(h *storeHealth, _ time.Time) { h.fail(err) })
		c.m.outages.fails(notWritten, batch[0].commit.Task, err)
		if !c.m.pause(storePause(try)) {
			return
		}
	}
}

// commit sends a batch once.
func (c *committer) commit(batch []persistence.Commit) ([]error, error) {
	ctx, cancel := c.m.storeCall()
	defer cancel()
	ask := &call{c.m.cfg.Host.Clock.Now(), cancel}
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

// drop ends calls that began before a time, to be sent again: their connections may be dead without a word, while the store answers on others.
func (c *committer) drop(before time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for ask := range c.calls {
		if ask.begun.Before(before) {
			ask.end()
		}
	}
}

// storeGrace bounds one call to the store. A connection that is gone without a word would hold whoever
// waits for its answer for ever; after this time it counts as broken.
const storeGrace = 30 * time.Second

func (m *Member) storeCall() (context.Context, func()) { return m.bounded(storeGrace) }

// bounded is a context that ends with the member, or when its time is over.
func (m *Member) bounded(d time.Duration) (context.Context, func()) {
	ctx, cancel := context.WithCancel(m.ctx)
	stop := m.cfg.Host.Clock.AfterFunc(d, cancel)
	return ctx, func() {
		stop()
		cancel()
	}
}

// split finds the commit that the store refuses: the others are not to suffer from it.
func (c *committer) split(batch []*writing, err error) {
	if len(batch) == 1 {
		c.answer(batch, []error{err})
		return
	}
	c.write(batch[:len(batch)/2])
	c.write(batch[len(batch)/2:])
}

func (c *committer) answer(batch []*writing, errs []error) {
	c.done(batch)
	for i, w := range batch {
		c.m.tell(w.reply, written{w.gen, errs[i]})
	}
}

// pause waits, false when the member goes.
func (m *Member) pause(d time.Duration) bool {
	ctx, cancel := context.WithCancel(m.ctx)
	defer cancel()
	done := make(chan struct{})
	stop := m.cfg.Host.Clock.AfterFunc(d, func() { close(done) })
	defer stop()
	m.park(func() bool { return closed(done) || ctx.Err() != nil })
	select {
	case <-done:
	case <-ctx.Done():
	}
	return m.ctx.Err() == nil
}
