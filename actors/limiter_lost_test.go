package actors_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/actors"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// mum is a store whose decisions are not answered for a while. Its sweep finds no keys, so lost
// notices stay unnoticed.
type mum struct {
	*tally
	silent atomic.Bool
	// receives a decision that is answered when answer is closed; nil if all are answered at once
	asked  chan struct{}
	answer chan struct{}
}

func (s *mum) Rule(ctx context.Context, incarnation string, q persistence.PermitQuestion) (persistence.Ruling, error) {
	r, err := s.tally.Rule(ctx, incarnation, q)
	if s.asked != nil {
		s.asked <- struct{}{}
		<-s.answer
	}
	if s.silent.Load() {
		return persistence.Ruling{}, err
	}
	return r, err
}

func (s *mum) OpenKeys(context.Context, persistence.ShardSet, string, int) ([]string, error) {
	return nil, nil
}

// state returns the state of a task's only permit; -1 if it has none.
func (s *mum) state(t *testing.T, task string) persistence.PermitState {
	rows, err := s.PermitsOf(t.Context(), task)
	require.NoError(t, err)
	if len(rows) == 0 {
		return -1
	}
	return rows[0].State
}

const ofOneKey = "start: a\nnodes: {a: {func: f, concurrency: {name: crm, limit: 1}}}\n"

func TestAReloadedTaskGetsThePermitWhoseNoticeWasLost(t *testing.T) {
	store := &mum{tally: newTally()}
	c, g := newCircuit(store), newGauge()
	var crash atomic.Bool
	cfg := gauged(g)
	cfg.Host.Clock = lazy{}
	cfg.Host.Probe = func(kind string, message any) {
		if kind == "task" && fmt.Sprintf("%T", message) == "*actors.taskCommand" && crash.Swap(false) {
			panic("a planted crash")
		}
	}
	keys, tasks := c.join(t, cfg), c.join(t, cfg)
	shard := persistence.ShardOf("jobs:crm")
	c.give(keys, shard)
	c.give(tasks, slices.DeleteFunc(persistence.AllShards(), func(s int) bool { return s == shard })...)
	store.silent.Store(true)
	id := c.beginAny(t, keys.publish(t, ofOneKey), `{}`)
	require.NotEqual(t, shard, persistence.ShardOf(id))
	require.Eventually(t, func() bool { return store.state(t, id) == persistence.PermitGiven }, patience, time.Millisecond)
	store.probe(t, keys, 1) // the silent decision has been processed
	store.silent.Store(false)
	crash.Store(true)
	note := flow.Signal{Key: "k", Value: json.RawMessage(`1`)}
	require.Equal(t, flow.Busy, flow.ErrorKindOf(tasks.Do(t.Context(), id, note, "")))
	require.Equal(t, flow.TaskCompleted, c.ended(t, id).State.Status)
}

func TestAStoppingMemberDeliversItsGrantedPermits(t *testing.T) {
	store := &mum{tally: newTally(), asked: make(chan struct{}, 100), answer: make(chan struct{})}
	c, g := newCircuit(store), newGauge()
	cfg := gauged(g)
	cfg.Host.Clock = lazy{}
	goes, stays := c.join(t, cfg), c.join(t, cfg)
	c.give(goes, persistence.AllShards()...)
	id := c.beginAny(t, goes.publish(t, ofOneKey), `{}`)
	<-store.asked
	require.Equal(t, persistence.PermitGiven, store.state(t, id))
	stopped := make(chan error, 1)
	go func() { stopped <- goes.Stop(context.WithoutCancel(t.Context())) }()
	require.Eventually(t, func() bool { return goes.Stats().Actors["task"] == 0 }, patience, time.Millisecond)
	c.leave(goes)
	c.give(stays, persistence.AllShards()...)
	close(store.answer)
	require.NoError(t, <-stopped)
	require.Equal(t, flow.TaskCompleted, c.ended(t, id).State.Status)
}

func TestAWakingTaskRequestsNoDecisionAboutItsKeys(t *testing.T) {
	const units, wakes = 300, 10
	store := newTally()
	th := start(t, actors.Config{Store: store, IdleAfter: 30 * time.Millisecond, Host: actors.Host{Clock: lazy{}}})
	items := make([]string, units)
	for i := range items {
		items[i] = fmt.Sprint(i)
	}
	version := th.publish(t, "start: a\nnodes: {a: {kind: foreach, parallel_mode: concurrent, "+
		"exec_type: queue, service: nobody, prep: {input_key: $params.list}, concurrency: {key: "+
		"$item, limit: 1}}}\n")
	params := `{"list":[` + strings.Join(items, ",") + `]}`
	first := th.begin(t, version, params)
	require.Eventually(t, func() bool { return store.held(t, first) == units }, patience, 5*time.Millisecond)
	second := th.begin(t, version, params)
	rests := func() bool { return th.Stats().Actors["task"] == 0 }
	require.Eventually(t, func() bool { return rests() && store.all() >= 2*units }, patience, 5*time.Millisecond)
	before := store.all()
	for i := range wakes {
		require.NoError(t, th.Do(t.Context(), second, flow.Signal{Key: "k", Value: json.RawMessage(fmt.Sprint(i))}, ""))
		require.Eventually(t, rests, patience, 5*time.Millisecond)
	}
	require.LessOrEqual(t, store.all()-before, 50)
	require.NoError(t, th.Cancel(t.Context(), first, flow.Cancel{}))
	require.Eventually(t, func() bool { return store.held(t, second) == units }, patience, 5*time.Millisecond)
}

// held counts the permits that a task has.
func (s *tally) held(t *testing.T, task string) (n int) {
	rows, err := s.PermitsOf(t.Context(), task)
	require.NoError(t, err)
	for _, row := range rows {
		if row.State == persistence.PermitHeld {
			n++
		}
	}
	return n
}

// all counts the decisions about all keys.
func (s *tally) all() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, ruled := range s.ruled {
		n += ruled
	}
	return n
}
