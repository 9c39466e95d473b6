package actors_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/actors"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/testing/model"
	"github.com/troupe-engine/troupe/persistence"
)

// circuit is a set of members on one store that reach each other. The test determines the owners.
type circuit struct {
	store persistence.Store

	mu      sync.Mutex
	members map[string]*harness // live members, by incarnation
	owner   [persistence.Shards]*harness
	lines   map[*harness]*line
	unseen  string // an incarnation that the others do not know yet
}

func newCircuit(store persistence.Store) *circuit {
	if store == nil {
		store = model.New(model.Options{})
	}
	return &circuit{store: store, members: map[string]*harness{}, lines: map[*harness]*line{}}
}

// newPair returns two members, of which the first owns everything, and a ledger of their jobs.
func newPair(t *testing.T, store persistence.Store) (c *circuit, l *ledger, a, b *harness) {
	t.Helper()
	c, l = newCircuit(store), newLedger()
	a = c.join(t, withFunc(l.carrier("a")))
	c.give(a, persistence.AllShards()...)
	return c, l, a, c.join(t, withFunc(l.carrier("b")))
}

// join adds a member that owns nothing yet.
func (c *circuit) join(t *testing.T, cfg actors.Config) *harness {
	t.Helper()
	l := &line{circuit: c}
	cfg.Store, cfg.Others = c.store, l
	th := start(t, cfg)
	c.mu.Lock()
	defer c.mu.Unlock()
	l.self = th.Incarnation()
	c.members[l.self], c.lines[th] = th, l
	return th
}

// move makes a member the owner of shards, which another one may own until then.
func (c *circuit) move(t *testing.T, to *harness, shards ...int) {
	t.Helper()
	if from := c.at(shards[0]); from != nil {
		require.NoError(t, from.Lose(t.Context(), shards))
	}
	c.give(to, shards...)
}

// give makes a member the owner of shards without an owner.
func (c *circuit) give(to *harness, shards ...int) {
	c.mu.Lock()
	for _, shard := range shards {
		c.owner[shard] = to
	}
	c.mu.Unlock()
	to.Gain(shards)
}

func (c *circuit) at(shard int) *harness {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.owner[shard]
}

// die ends a member as a crash would, and fences it in the store.
func (c *circuit) die(t *testing.T, th *harness) {
	t.Helper()
	th.Kill()
	c.mu.Lock()
	delete(c.members, th.Incarnation())
	c.mu.Unlock()
	require.NoError(t, c.store.Leave(t.Context(), th.Incarnation()))
}

// hide hides a live member from the others; "" hides none.
func (c *circuit) hide(incarnation string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unseen = incarnation
}

// leave removes a member that has left by itself.
func (c *circuit) leave(th *harness) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.members, th.Incarnation())
}

// line is a member's connection to the others. Everything passes it in encoded form.
type line struct {
	circuit *circuit
	self    string
	hold    func(engine.Order)      // called before an order is delivered
	after   func(engine.Order)      // called before its answer is returned
	cut     func(engine.Order) bool // reports whether the order is lost
	late    func() string           // returns the assumed owner of all tasks; "" for the real one
	drop    func() bool             // reports whether errands are lost without an error
	mute    bool                    // jobs are not announced
	largest atomic.Int64            // largest bytes of jobs in one answer
}

func (l *line) Do(ctx context.Context, orders engine.Orders) engine.Outcomes {
	outcomes := make(engine.Outcomes, len(orders))
	var bytes int64
	for i, o := range orders {
		if l.hold != nil {
			l.hold(o)
		}
		if l.cut != nil && l.cut(o) {
			<-ctx.Done()
			outcomes[i].Err = flow.Errorf(flow.Moved, "it cannot be reached")
			continue
		}
		if outcomes[i] = l.deliver(ctx, o); outcomes[i].Job != nil {
			bytes += int64(len(outcomes[i].Job.Job.Input) + len(outcomes[i].Job.Job.Params))
		}
		if l.after != nil {
			l.after(o)
		}
	}
	l.largest.Store(max(l.largest.Load(), bytes))
	return outcomes
}

// deliver sends an order to the owner of the task, and retries until one accepts it.
func (l *line) deliver(ctx context.Context, o engine.Order) engine.Outcome {
	out := engine.Outcome{Err: flow.Errorf(flow.Busy, "nobody has the task")}
	for ctx.Err() == nil {
		if th := l.circuit.at(persistence.ShardOf(o.Task)); th != nil {
			out = travel(ctx, th, o)
		}
		_, claim := o.Command.(flow.Claim)
		if kind := flow.ErrorKindOf(out.Err); kind != flow.Moved && (kind != flow.Busy || claim) {
			break
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Millisecond): // before the retry
		}
	}
	return out
}

// travel makes a member carry out an order, with order and answer in encoded form.
func travel(ctx context.Context, th *harness, o engine.Order) engine.Outcome {
	sent, err := engine.Marshal(&engine.Orders{o})
	if err != nil {
		return engine.Outcome{Err: err}
	}
	orders, _ := engine.Unmarshal(sent)
	outcomes, err := th.DoAll(ctx, *orders.(*engine.Orders))
	if err != nil {
		return engine.Outcome{Err: err}
	}
	answered, err := engine.Marshal(&outcomes)
	if err != nil {
		return engine.Outcome{Err: err}
	}
	got, _ := engine.Unmarshal(answered)
	return (*got.(*engine.Outcomes))[0]
}

func (l *line) Owner(task string) string {
	if l.late != nil {
		if owner := l.late(); owner != "" {
			return owner
		}
	}
	if th := l.circuit.at(persistence.ShardOf(task)); th != nil {
		return th.Incarnation()
	}
	return ""
}

func (l *line) Carry(ctx context.Context, carrier string, errands engine.Errands) error {
	l.circuit.mu.Lock()
	th := l.circuit.members[carrier]
	l.circuit.mu.Unlock()
	if th == nil {
		return errors.New("it has gone")
	}
	if l.drop != nil && l.drop() {
		return nil
	}
	sent, err := engine.Marshal(&errands)
	if err != nil {
		return err
	}
	got, _ := engine.Unmarshal(sent)
	return th.Carry(ctx, *got.(*engine.Errands))
}

func (l *line) Credits(c *engine.Credits) {
	l.circuit.mu.Lock()
	defer l.circuit.mu.Unlock()
	for incarnation, th := range l.circuit.members {
		if incarnation != l.self {
			go th.Credited(c) // it may be overtaken
		}
	}
}

func (l *line) Alive() (all []string) {
	l.circuit.mu.Lock()
	defer l.circuit.mu.Unlock()
	for incarnation := range l.circuit.members {
		if incarnation != l.self && incarnation != l.circuit.unseen {
			all = append(all, incarnation)
		}
	}
	return all
}

func (l *line) Stir(keys engine.Keys) {
	for _, key := range keys.Names {
		if th := l.circuit.at(persistence.ShardOf(key)); th != nil && !l.mute {
			th.Stirred(engine.Keys{Names: []string{key}, Anew: keys.Anew})
		}
	}
}

func (l *line) Wanted(jobs []engine.Offer) {
	if l.mute {
		return
	}
	l.circuit.mu.Lock()
	defer l.circuit.mu.Unlock()
	for incarnation, th := range l.circuit.members {
		if incarnation != l.self {
			th.Offered(jobs)
		}
	}
}

// shardOf returns a task's shard, as a list.
func shardOf(task string) []int { return []int{persistence.ShardOf(task)} }

// neighbor returns the id of a nonexistent task in the same shard.
func neighbor(task string) string {
	for i := 0; ; i++ {
		if id := fmt.Sprint("no-task-", i); persistence.ShardOf(id) == persistence.ShardOf(task) {
			return id
		}
	}
}

// ledger counts how often jobs were carried out, and holds them until they are freed.
type ledger struct {
	mu    sync.Mutex
	times map[string]int
	begun chan string // ids of jobs
	free  chan struct{}
}

func newLedger() *ledger {
	return &ledger{times: map[string]int{}, begun: make(chan string, 10_000), free: make(chan struct{})}
}

// freed frees all jobs at once.
func (l *ledger) freed() *ledger {
	close(l.free)
	return l
}

// carrier returns the function of one member.
func (l *ledger) carrier(name string) carry {
	return func(ctx context.Context, j flow.Job) flow.Report {
		l.mu.Lock()
		l.times[j.ID()]++
		l.mu.Unlock()
		l.begun <- j.ID()
		select {
		case <-l.free:
		case <-ctx.Done():
			return flow.Report{Error: "called off"}
		}
		return flow.Report{Worker: name, Output: json.RawMessage(`1`)}
	}
}

func (l *ledger) repeated() (ids []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, n := range l.times {
		if n > 1 {
			ids = append(ids, id)
		}
	}
	return ids
}

// ended waits for a task's end at its current owner.
func (c *circuit) ended(t *testing.T, task string) *persistence.View {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		th := c.at(persistence.ShardOf(task))
		_, err := th.Await(ctx, task)
		if err == nil {
			view, err := th.reader.View(ctx, task)
			require.NoError(t, err)
			return view
		}
		require.Equal(t, flow.Moved, flow.ErrorKindOf(err), "%v", err)
	}
}
