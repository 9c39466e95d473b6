package actors_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/actors"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/testing/faulty"
	"github.com/troupe-engine/troupe/internal/testing/model"
	"github.com/troupe-engine/troupe/persistence"
)

func TestAnOutageOfTheStoreIsLoggedWhenItBeginsAndWhenItIsOver(t *testing.T) {
	for call, what := range map[string]string{
		"Rule":       "deciding about a concurrency key failed",
		"Commit":     "writing a batch failed",
		"Unfinished": "reading unfinished tasks failed",
	} {
		t.Run(what, func(t *testing.T) {
			var failures atomic.Int64
			fails := func(name string) bool { return name == call && failures.Add(1) <= 4 }
			store := faulty.Wrap(model.New(model.Options{}), faulty.Hooks{
				Call: func(_ context.Context, name string) error {
					if fails(name) {
						return faulty.ErrFailed
					}
					return nil
				},
				Commit: func(string, []persistence.Commit) faulty.Fault {
					if fails("Commit") {
						return faulty.Fail()
					}
					return faulty.Fault{}
				},
			})
			said, g := &lines{}, newGauge()
			cfg := gauged(g)
			cfg.Store, cfg.Logger, cfg.Host.Clock = store, slog.New(slog.NewTextHandler(said, nil)), quick{time.Now()}
			th := start(t, cfg)
			th.ended(t, th.insist(t, engine.NewTask{VersionID: th.publish(t, ofOneKey), Key: "k"}))
			over := fmt.Sprintf("store works again\" after=%q failures=4", what)
			require.Eventually(t, func() bool { return strings.Contains(said.String(), over) }, patience, time.Millisecond)
			require.Equal(t, 1, strings.Count(said.String(), what+", retrying"))
			require.Equal(t, 1, strings.Count(said.String(), over))
		})
	}
}

func TestATaskThatTheStoreDoesNotReturnIsAnOutage(t *testing.T) {
	var failures atomic.Int64
	said := &lines{}
	th := start(t, actors.Config{
		IdleAfter: 30 * time.Millisecond, Logger: slog.New(slog.NewTextHandler(said, nil)),
		Store: faulty.Wrap(newLeaping(), faulty.Hooks{Call: func(_ context.Context, name string) error {
			if name == "Load" && failures.Add(-1) >= 0 {
				return faulty.ErrFailed
			}
			return nil
		}}),
	})
	id := th.begin(t, th.publish(t, untilApproved), `{}`)
	th.eventuallyEmpty(t)
	failures.Store(3)
	require.NoError(t, th.Do(t.Context(), id, flow.Signal{Key: "ok", Value: json.RawMessage(`true`)}, ""))
	require.Equal(t, 1, strings.Count(said.String(), "loading tasks failed, retrying"))
	require.Equal(t, 1, strings.Count(said.String(), `store works again" after="loading tasks failed" failures=3`))
	require.NotContains(t, said.String(), "loading a task failed")
}
