package actors_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/actors"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/testing/model"
	"github.com/troupe-engine/troupe/persistence"
)

// tardy is a store whose first answer about external work is late.
type tardy struct {
	persistence.Store
	asked       atomic.Bool
	read, heard chan struct{}
}

func (s *tardy) NextExternals(ctx context.Context, shards persistence.ShardSet, limit int) ([]persistence.ExternalRow, error) {
	rows, err := s.Store.NextExternals(ctx, shards, limit)
	if !s.asked.Swap(true) {
		close(s.read)
		<-s.heard
	}
	return rows, err
}

// knows waits until the actor of a task has processed the start of its external work.
func (th *harness) knows(t *testing.T, task string) {
	t.Helper()
	for row, err := range th.Watch(t.Context(), task, 0) {
		require.NoError(t, err)
		events, err := flow.DecodeEvents(row.Events)
		require.NoError(t, err)
		for _, e := range events {
			if e.Type == flow.AttemptDeferred {
				require.NoError(t, th.Do(t.Context(), task,
					flow.Signal{Key: "k", Value: json.RawMessage(`1`)}, "r"), "it comes to this behind that")
				return
			}
		}
	}
}

func TestExternalWorkStartedDuringAReadIsPolledNext(t *testing.T) {
	s := &tardy{Store: model.New(model.Options{}), read: make(chan struct{}), heard: make(chan struct{})}
	cfg := withFunc(func(context.Context, flow.Job) flow.Report {
		return flow.Report{Deferred: []flow.External{{Service: "s", ID: "x"}}}
	})
	cfg.Store, cfg.Trackers, cfg.Host.Clock = s, map[string]actors.Tracker{"s": over(`1`)}, lazy{}
	th := start(t, cfg)
	<-s.read
	id := th.begin(t, th.publish(t, oneJob), `{}`)
	th.knows(t, id)
	close(s.heard)
	require.Equal(t, flow.TaskCompleted, th.ended(t, id).State.Status)
}

// held is a tracker that does not answer before it is released.
type held struct {
	over
	asked, free chan struct{}
}

func (h held) Poll(ctx context.Context, x flow.External) (flow.ExternalStatus, error) {
	if string(x.Data) == "1" {
		h.asked <- struct{}{}
		<-h.free
	}
	return h.over.Poll(ctx, x)
}

func TestExternalWorkIsPolledAfterQueuedRowsHaveMovedAway(t *testing.T) {
	const many = 60 // more than are polled at once
	h := held{over(`1`), make(chan struct{}, 2*many), make(chan struct{})}
	cfg := withFunc(func(_ context.Context, j flow.Job) flow.Report {
		jobs := []flow.External{{Service: "s", ID: "x"}}
		if string(j.Params) == `{"n":1}` {
			jobs = make([]flow.External, many)
			for i := range jobs {
				jobs[i] = flow.External{Service: "s", ID: fmt.Sprint(i), Data: json.RawMessage(`1`)}
			}
		}
		return flow.Report{Deferred: jobs}
	})
	cfg.Trackers, cfg.Host.Clock = map[string]actors.Tracker{"s": h}, lazy{}
	c := newCircuit(nil)
	a, b := c.join(t, cfg), c.join(t, cfg)
	c.give(a, persistence.AllShards()...)
	version := a.publish(t, `{"start":"a","nodes":{"a":{"exec_type":"local_func","func":"f"}}}`)
	first := a.begin(t, version, `{"n":1}`)
	for range 50 {
		<-h.asked
	}
	second := a.begin(t, version, `{}`)
	for persistence.ShardOf(second) == persistence.ShardOf(first) {
		second = a.begin(t, version, `{}`)
	}
	a.knows(t, second)
	c.move(t, b, shardOf(first)...)
	close(h.free)
	require.Equal(t, flow.TaskCompleted, c.ended(t, second).State.Status)
}
