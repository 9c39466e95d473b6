package spans_test

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/actors"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/member/spans"
	"github.com/troupe-engine/troupe/persistence"
	"github.com/troupe-engine/troupe/persistence/sqlite"
)

// sieve passes on some rows of a task.
type sieve struct {
	to    *spans.Teller
	lets  func(actors.StoredRow) bool
	ended chan struct{}
}

func (s *sieve) Stored(row actors.StoredRow) {
	if s.lets(row) {
		s.to.Stored(row)
	}
	if row.Ended {
		close(s.ended)
	}
}

type list []spans.Span

func (l *list) Tell(_ context.Context, more []spans.Span) error {
	*l = append(*l, more...)
	return nil
}

func fine(context.Context, flow.Job) flow.Report { return flow.Report{} }

type carry func(context.Context, flow.Job) flow.Report

func (f carry) Carry(ctx context.Context, j flow.Job) flow.Report { return f(ctx, j) }

// toldOf runs a task of two nodes and returns the names of its spans if its teller gets only some
// rows.
func toldOf(t *testing.T, lets func(actors.StoredRow) bool) (names []string) {
	t.Helper()
	store, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "troupe.db"), sqlite.Options{})
	require.NoError(t, err)
	defer store.Close()
	require.NoError(t, store.CreateFlow(t.Context(), persistence.Flow{ID: "f", Slug: "two", Name: "two"}))
	require.NoError(t, store.CreateVersion(t.Context(), persistence.Version{ID: "v", FlowID: "f", Number: 7, Status: "published",
		Definition: []byte(
			`{"start":"a","nodes":{"a":{"exec_type":"local_func","func":"x"},"b":{"exec_type":"local_func","func":"x"}},"edges":[{"from":"a","action":"default","to":"b"}]}`)}))
	var all list
	s := &sieve{to: spans.Start(spans.Options{Store: store, Sink: &all,
		Logger: slog.New(slog.DiscardHandler)}), lets: lets, ended: make(chan struct{})}
	m, err := actors.Start(t.Context(), actors.Config{Store: store, Lease: time.Hour, Tracing: actors.Tracing{Teller: s},
		Carriers: map[flow.ExecType]actors.Carrier{flow.ExecFunc: carry(fine)}})
	require.NoError(t, err)
	started, err := m.StartTask(t.Context(), engine.NewTask{VersionID: "v"})
	require.NoError(t, err)
	<-s.ended
	s.to.Close(t.Context())
	m.Kill()
	for _, span := range all {
		require.Equal(t, []any{started.Task, "two", 7}, []any{span.Task, span.Flow, span.Version})
		names = append(names, span.Name)
	}
	slices.Sort(names)
	return names
}

func TestMissingRowsAreReadFromTheStore(t *testing.T) {
	all := []string{"attempt a", "attempt b", "start two", "step a", "step b", "task two"}
	require.Equal(t, all, toldOf(t, func(actors.StoredRow) bool { return true }))
	require.Equal(t, all, toldOf(t, func(row actors.StoredRow) bool { return row.Seq == 1 || row.Ended }))
}

func TestOnlyTheStartIsExportedAgainAfterATakeover(t *testing.T) {
	require.Equal(t, []string{"attempt b", "start two", "step b", "task two"},
		toldOf(t, func(row actors.StoredRow) bool { return row.Ended }))
}

// stuck blocks until its context ends.
type stuck struct{}

func (stuck) Tell(ctx context.Context, _ []spans.Span) error {
	<-ctx.Done()
	return ctx.Err()
}

func TestClosingATellerDoesNotWaitForAnUnresponsiveSink(t *testing.T) {
	store, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "troupe.db"), sqlite.Options{})
	require.NoError(t, err)
	defer store.Close()
	teller := spans.Start(spans.Options{Store: store, Sink: stuck{}, Logger: slog.New(slog.DiscardHandler)})
	for n := range 5000 {
		teller.Stored(actors.StoredRow{Task: fmt.Sprint(n), Plan: &flow.Plan{FlowSlug: "f"}, Seq: 1,
			Events: flow.AppendEvents(nil, []flow.Event{{Type: flow.TaskCreated, At: 1}})})
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	begun := time.Now()
	teller.Close(ctx)
	require.Less(t, time.Since(begun), 8*time.Second, "which is less than it waits for one batch")
}

// away is a store that does not answer before the context ends.
type away struct{ persistence.Store }

func (away) Version(ctx context.Context, _ string) (*persistence.Version, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (away) Rows(ctx context.Context, _ string, _ int64, _ persistence.Part) ([]persistence.Row, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestClosingATellerDoesNotWaitForAnUnresponsiveStore(t *testing.T) {
	var all list
	teller := spans.Start(spans.Options{Store: away{}, Sink: &all, Logger: slog.New(slog.DiscardHandler)})
	for n := range 100 {
		teller.Stored(actors.StoredRow{Task: fmt.Sprint(n), Version: fmt.Sprint(n), Plan: &flow.Plan{FlowSlug: "f"}, Seq: 9})
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	begun := time.Now()
	teller.Close(ctx)
	require.Less(t, time.Since(begun), 8*time.Second, "which is less than it waits for one of them")
	require.Empty(t, all)
}
