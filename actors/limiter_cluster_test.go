package actors_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/testing/model"
	"github.com/troupe-engine/troupe/persistence"
)

// keyedPair returns two members that share the tasks, and the gauge of their jobs.
func keyedPair(t *testing.T) (c *circuit, g *gauge, a, b *harness) {
	c, g = newCircuit(nil), newGauge()
	a, b = c.join(t, gauged(g)), c.join(t, gauged(g))
	c.give(a, persistence.AllShards()[:512]...)
	c.give(b, persistence.AllShards()[512:]...)
	return c, g, a, b
}

// beginAny starts a task at its owner.
func (c *circuit) beginAny(t *testing.T, version, params string) string {
	t.Helper()
	for {
		for _, th := range c.members {
			n := newTaskOf(version, params)
			id, _, err := th.StartTask(t.Context(), n)
			if err == nil {
				return id
			}
			require.Equal(t, flow.Moved, flow.ErrorKindOf(err))
		}
	}
}

func TestALimitSpansMembers(t *testing.T) {
	c, g, a, _ := keyedPair(t)
	version := a.publish(t, byCustomer)
	var ids []string
	for i := range 80 {
		ids = append(ids, c.beginAny(t, version, fmt.Sprintf(`{"c":"c%d"}`, i%4)))
	}
	for _, id := range ids {
		require.Equal(t, flow.TaskCompleted, c.ended(t, id).State.Status)
	}
	g.atMost(t, 2)
	require.Empty(t, openKeys(t, c.store))
}

func TestALimitHoldsWhileKeysAndTasksMove(t *testing.T) {
	c, g, a, b := keyedPair(t)
	version := a.publish(t, byCustomer)
	var ids []string
	for i := range 120 {
		ids = append(ids, c.beginAny(t, version, fmt.Sprintf(`{"c":"c%d"}`, i%3)))
		if i%20 == 19 {
			half := persistence.AllShards()[i%512 : i%512+256]
			for _, shard := range half {
				to := a
				if c.at(shard) == a {
					to = b
				}
				from := c.at(shard)
				require.NoError(t, from.Lose(t.Context(), []int{shard}))
				c.give(to, shard)
			}
		}
	}
	for _, id := range ids {
		require.Equal(t, flow.TaskCompleted, c.ended(t, id).State.Status)
	}
	g.atMost(t, 2)
}

func TestTheNextOwnerGrantsPermitsOfADeadMembersKeys(t *testing.T) {
	c, g, a, b := keyedPair(t)
	g.free = make(chan struct{})
	version := a.publish(t, "start: a\nnodes: {a: {func: f, concurrency: {name: crm, limit: 1}}}\n")
	owner, other := a, b
	if c.at(persistence.ShardOf("jobs:crm")) == b {
		owner, other = b, a
	}
	var ids []string
	for len(ids) < 3 { // tasks of the surviving member that wait for a key of the dying one
		id, _, err := other.StartTask(t.Context(), newTaskOf(version, `{}`))
		if err == nil {
			ids = append(ids, id)
		}
	}
	<-g.begun
	c.die(t, owner)
	shards := persistence.AllShards()[:512]
	if owner == b {
		shards = persistence.AllShards()[512:]
	}
	other.Gone(owner.Incarnation(), false)
	c.give(other, shards...)
	close(g.free)
	for _, id := range ids {
		require.Equal(t, flow.TaskCompleted, c.ended(t, id).State.Status)
	}
	require.Equal(t, 1, g.mosts()["null"])
}

// lossy is a store that does not answer the first decisions.
type lossy struct {
	persistence.Store
	mu   sync.Mutex
	left int
}

func (s *lossy) Rule(ctx context.Context, incarnation string, q persistence.PermitQuestion) (persistence.Ruling, error) {
	r, err := s.Store.Rule(ctx, incarnation, q)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.left--; s.left >= 0 {
		return persistence.Ruling{}, context.DeadlineExceeded
	}
	return r, err
}

func TestAPermitIsDeliveredEvenIfTheAnswerOfTheStoreIsLost(t *testing.T) {
	g := newGauge()
	cfg := gauged(g)
	cfg.Store = &lossy{Store: model.New(model.Options{}), left: 2}
	th := start(t, cfg)
	version := th.publish(t, byCustomer)
	require.Equal(t, flow.TaskCompleted, th.run(t, version, `{"c":"x"}`).State.Status)
}

func TestPermitsSurviveTheDeathOfTheMember(t *testing.T) {
	g := newGauge()
	g.free = make(chan struct{})
	cfg := gauged(g)
	cfg.Store = newLeaping()
	first := start(t, cfg)
	version := first.publish(t, byCustomer)
	var ids []string
	for range 5 {
		ids = append(ids, first.begin(t, version, `{"c":"c"}`))
	}
	<-g.begun
	<-g.begun
	first.Kill()
	g2 := newGauge()
	cfg2 := gauged(g2)
	cfg2.Store = cfg.Store
	second := start(t, cfg2)
	for _, id := range ids {
		require.Equal(t, flow.TaskCompleted, second.ended(t, id).State.Status)
	}
	require.Equal(t, 2, g2.mosts()[`"c"`])
	require.Len(t, g2.order, 5)
}

// tally is a store that counts decisions by key.
type tally struct {
	*leaping
	mu    sync.Mutex
	ruled map[string]int
}

func newTally() *tally { return &tally{leaping: newLeaping(), ruled: map[string]int{}} }

func (s *tally) Rule(ctx context.Context, incarnation string, q persistence.PermitQuestion) (persistence.Ruling, error) {
	r, err := s.Store.Rule(ctx, incarnation, q)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ruled[q.Key]++
	return r, err
}

func (s *tally) of(key string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ruled[key]
}

func keysNamed(keys ...string) engine.Keys { return engine.Keys{Names: keys} }

// probe makes a member decide about another key several times, one after another, so that endless
// decisions become visible.
func (s *tally) probe(t *testing.T, th *harness, times int) {
	t.Helper()
	for range times {
		before := s.of("probe")
		th.Stirred(keysNamed("probe"))
		require.Eventually(t, func() bool { return s.of("probe") > before }, patience, time.Millisecond)
	}
}

// keyHeld returns a member that has granted the key jobs:crm to many units of a task of another
// member, which it cannot reach.
func keyHeld(t *testing.T, units int) (store *tally, owner *harness) {
	store = newTally()
	c, g := newCircuit(store), newGauge()
	a, b := c.join(t, gauged(g)), c.join(t, gauged(g))
	owner, other := a, b
	c.lines[owner].cut = func(o engine.Order) bool { _, ok := o.Command.(flow.Granted); return ok }
	key := persistence.ShardOf("jobs:crm")
	c.give(owner, key)
	c.give(other, slices.DeleteFunc(persistence.AllShards(), func(s int) bool { return s == key })...)
	items := strings.Repeat("1,", units-1) + "1"
	version := a.publish(t, "start: a\nnodes: {a: {kind: foreach, parallel_mode: concurrent, "+
		"func: f, prep: {input_key: $params.list}, concurrency: {name: crm, limit: 500}}}\n")
	id := c.beginAny(t, version, `{"list":[`+items+`]}`)
	require.NotEqual(t, key, persistence.ShardOf(id))
	require.Eventually(t, func() bool {
		rows, err := store.PermitsOf(t.Context(), id)
		require.NoError(t, err)
		given := 0
		for _, row := range rows {
			if row.State == persistence.PermitGiven {
				given++
			}
		}
		return given == units
	}, patience, 5*time.Millisecond)
	return store, owner
}

func TestPermitsForAnUnreachableMemberAreResentAtALimitedRate(t *testing.T) {
	const units = 300
	store, owner := keyHeld(t, units)
	store.probe(t, owner, 1)
	before := store.of("jobs:crm")
	store.leap(persistence.PermitToldMS * time.Millisecond)
	owner.Stirred(keysNamed("jobs:crm"))
	store.probe(t, owner, 100)
	require.LessOrEqual(t, store.of("jobs:crm")-before, 10, "that the same ones have not answered is no reason to decide again at once")
	require.LessOrEqual(t, owner.PendingOrders(), units, "what is on its way is not sent once more")
}

// busy is a store in which some keys change again right after each decision.
type busy struct {
	*tally
	again func(key string)
	most  int
	full  sync.Once
	done  chan struct{}
}

func (s *busy) Rule(ctx context.Context, incarnation string, q persistence.PermitQuestion) (persistence.Ruling, error) {
	s.again(q.Key) // during the decision, like holders that release it
	r, err := s.tally.Rule(ctx, incarnation, q)
	if s.of(q.Key) == s.most {
		s.full.Do(func() { close(s.done) })
	}
	return r, err
}

func TestBusyKeysDoNotDelayOtherKeys(t *testing.T) {
	store := &busy{tally: newTally(), most: 100, done: make(chan struct{}), again: func(string) {}}
	cfg := gauged(newGauge())
	cfg.Store = store
	th := start(t, cfg)
	var keys []string
	for i := range 40 {
		keys = append(keys, fmt.Sprintf("c%02d", i))
	}
	var once sync.Once
	store.again = func(key string) {
		once.Do(func() { th.Stirred(keysNamed(keys...)) })
		select {
		case <-store.done:
		default:
			th.Stirred(keysNamed(key))
		}
	}
	th.Stirred(keysNamed(keys[0]))
	<-store.done
	behind := slices.DeleteFunc(slices.Clone(keys), func(key string) bool { return store.of(key) >= 100/4 })
	require.LessOrEqual(t, len(behind), 3,
		"each comes once in a round of 40, but for those that a ruler has taken which the "+
			"machine holds up: %v", behind)
}
