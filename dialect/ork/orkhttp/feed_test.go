package orkhttp

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/actors"
	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/testing/model"
	"github.com/troupe-engine/troupe/persistence"
)

// stutter is a reader of a store that does not answer for a while.
type stutter struct {
	api.Reader
	broken atomic.Int64 // remaining failures
}

func (s *stutter) Plan(ctx context.Context, version string) (*flow.Plan, error) {
	if s.broken.Add(-1) >= 0 {
		return nil, errors.New("the store does not answer")
	}
	return s.Reader.Plan(ctx, version)
}

// feedOf returns the feed of a member with one waiting run.
func feedOf(t *testing.T) (f *transitionFeed, reader *stutter, row *persistence.TaskRow) {
	store := model.New(model.Options{})
	member, err := actors.Start(t.Context(), actors.Config{Store: store, Lease: time.Hour, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, member.Stop(context.Background())) })
	require.NoError(t, store.CreateFlow(t.Context(), persistence.Flow{ID: "f"}))
	require.NoError(t, store.CreateVersion(t.Context(), persistence.Version{ID: "v", FlowID: "f", Status: "published",
		Definition: json.RawMessage(`{"profile":"ork","nodes":{"a":{"route":"direct"}}}`)}))
	started, err := member.StartTask(t.Context(), engine.NewTask{VersionID: "v"})
	require.NoError(t, err)
	row, err = store.Task(t.Context(), started.Task)
	require.NoError(t, err)
	reader = &stutter{Reader: persistence.NewReader(store, flow.Limits{})}
	d := &dialect{Member: api.Member{Engine: member, Store: store, Reader: reader}}
	return &transitionFeed{d: d, listeners: map[*feedListener]bool{}, runs: map[string]*runTransitions{}}, reader, row
}

func TestAWatchThatHasEndedLeavesNoRunToTheNextOne(t *testing.T) {
	f, _, row := feedOf(t)
	ended, end := context.WithCancel(t.Context())
	end()
	f.followRun(ended, row, 0)
	require.Empty(t, f.runs)
}

func TestARunIsFollowedAfterAnOutageOfTheStore(t *testing.T) {
	f, reader, row := feedOf(t)
	reader.broken.Store(1)
	l := &feedListener{make(chan json.RawMessage, feedBuffer), func() {}}
	f.listeners[l] = true
	f.followRun(t.Context(), row, 0)
	select {
	case m := <-l.messages:
		require.Contains(t, string(m), publicRunID(row.ID))
	case <-time.After(20 * time.Second):
		require.Fail(t, "nothing is told")
	}
}
