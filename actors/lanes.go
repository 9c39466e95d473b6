package actors

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/troupe-engine/troupe/persistence"
)

// lanes are the committer: one queue and, while there is something in it, up to so many goroutines that
// write, each a batch at a time. While batches are being written the next one gathers; the first lane that
// the store has answered takes all that waits, if it is worth it. It is no actor: a mailbox between the tasks and
// the queue would only be a second queue.
type lanes struct {
	m       *Member
	mu      sync.Mutex
	waiting []*writing
	early   map[*writing]bool // what they refer to is being written
	tasks   map[string]bool   // of which a commit is being written: never two of one at a time
	most    int
	running int
	flying  int // commits that are being written, and not for long

	failures atomic.Int64 // of batches, since the last one that was written
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

func newLanes(m *Member) *lanes {
	return &lanes{m: m, early: map[*writing]bool{}, tasks: map[string]bool{}, most: m.store.Lanes()}
}

func (l *lanes) add(w *writing) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.m.uncommitted.Add(1)
	l.m.snapshots.take(&w.commit)
	if len(w.made) > 0 {
		l.early[w] = true
		l.m.background(func() { l.prepare(w) })
		return
	}
	l.waiting = append(l.waiting, w)
	l.begin()
}

// prepare has the objects written that a commit refers to. Where that is not possible the commit is not written either.
func (l *lanes) prepare(w *writing) {
	err := l.m.cfg.Payloads.WriteMade(l.m.ctx, w.made)
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.early, w)
	if err == nil {
		l.waiting = append(l.waiting, w)
		l.begin()
		return
	}
	l.m.uncommitted.Add(-1)
	l.m.snapshots.gone([]*writing{w})
	if l.m.ctx.Err() == nil {
		l.m.tell(w.reply, written{w.gen, unkept{notKept(err)}})
	}
}

func (l *lanes) begin() {
	if l.running < l.most && l.worth() {
		l.running++
		l.m.background(l.run)
	}
}

// worth is true when as many commits wait as are being written: what a batch costs is shared by all that is in
// it, so fewer wait for the lane that is about to be answered.
func (l *lanes) worth() bool { return len(l.waiting) > 0 && len(l.waiting) >= l.flying }

// run writes batches until nothing waits. Before each it lets those run who are about to add to it:
// that costs an idle member nothing and makes the batches of a busy one several times larger.
func (l *lanes) run() {
	for {
		runtime.Gosched()
		batch := l.take()
		if len(batch) == 0 {
			return
		}
		l.fly(batch)
	}
}

// patience is how long others wait for a batch that is larger than theirs.
const patience = 100 * time.Millisecond

func (l *lanes) fly(batch []*writing) {
	n := len(batch)
	land := func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.flying -= n
		n = 0
	}
	defer land()
	defer l.m.cfg.Host.Clock.AfterFunc(patience, func() {
		land()
		l.mu.Lock()
		defer l.mu.Unlock()
		l.begin()
	})()
	l.write(batch)
}

// take forms the next batch. A second commit of a task waits for the first one; there is one only when
// the task's actor crashed and a new one was quick.
func (l *lanes) take() []*writing {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.worth() {
		l.running--
		return nil
	}
	batch := make([]*writing, 0, min(len(l.waiting), maxBatch))
	left := l.waiting[:0:0]
	size := 0
	for i, w := range l.waiting {
		if len(batch) == maxBatch || size >= maxBatchBytes {
			left = append(left, l.waiting[i:]...)
			break
		}
		if l.tasks[w.commit.Task] {
			left = append(left, w)
			continue
		}
		l.tasks[w.commit.Task] = true
		batch = append(batch, w)
		size += len(w.commit.Events) + w.commit.Snapshot.Len()
	}
	if l.waiting = left; len(batch) == 0 {
		l.running-- // what is left waits for a lane that goes on
	}
	l.flying += len(batch)
	return batch
}

// busyWith says whether a commit of a task of some shards is on its way.
func (l *lanes) busyWith(shards persistence.ShardSet) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for task := range l.tasks {
		if shards.Has(task) {
			return true
		}
	}
	for w := range l.early {
		if shards.Has(w.commit.Task) {
			return true
		}
	}
	return slices.ContainsFunc(l.waiting, func(w *writing) bool { return shards.Has(w.commit.Task) })
}

func (l *lanes) done(batch []*writing) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, w := range batch {
		delete(l.tasks, w.commit.Task)
	}
	l.m.uncommitted.Add(-int64(len(batch)))
	l.m.snapshots.gone(batch)
}

// write sends a batch until the store has answered each of its commits.
func (l *lanes) write(batch []*writing) {
	commits := make([]persistence.Commit, len(batch))
	for i, w := range batch {
		commits[i] = w.commit
	}
	for try := 1; ; try++ {
		started := l.m.cfg.Host.Clock.Now()
		errs, err := l.m.commit(commits)
		switch {
		case err == nil:
			l.failures.Store(0)
			l.m.outages.works(notWritten, batch[0].commit.Task)
			l.m.metrics.committed(len(batch), l.m.cfg.Host.Clock.Now().Sub(started))
			l.answer(batch, errs)
			return
		case errors.Is(err, persistence.ErrRefused):
			l.m.outages.works(notWritten, batch[0].commit.Task)
			l.split(batch, err)
			return
		case errors.Is(err, persistence.ErrFenced) || l.m.ctx.Err() != nil:
			return // nothing of this member is written any more, so nobody gets an answer
		}
		l.failures.Add(1)
		l.m.outages.fails(notWritten, batch[0].commit.Task, err)
		if !l.m.pause(storePause(try)) {
			return
		}
	}
}

func (m *Member) commit(batch []persistence.Commit) ([]error, error) {
	ctx, cancel := m.storeCall()
	defer cancel()
	return m.store.Commit(ctx, m.incarnation, batch)
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
func (l *lanes) split(batch []*writing, err error) {
	if len(batch) == 1 {
		l.answer(batch, []error{err})
		return
	}
	l.write(batch[:len(batch)/2])
	l.write(batch[len(batch)/2:])
}

func (l *lanes) answer(batch []*writing, errs []error) {
	l.done(batch)
	for i, w := range batch {
		l.m.tell(w.reply, written{w.gen, errs[i]})
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
