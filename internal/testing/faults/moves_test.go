package faults

import (
	"context"
	"encoding/json"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/internal/testing/errands"
)

// Limits of the measurements, checked only if TROUPE_FAULTS is set. In the suite other tests use
// the processors, so the values are only printed.
const (
	// median time until the last task of a killed member continues
	movesAgain      = 3 * time.Second
	movesAgainWorst = 5 * time.Second
	// longest pause of a task while members leave and return
	unnoticed = time.Second
)

// manyTickers is enough tickers for each member to own some.
const manyTickers = 30

func TestTasksOfAKilledMemberContinueSoon(t *testing.T) {
	c := newTestCluster(t, theMembers)
	c.open(t.Context())
	tickers := c.startTickers(t.Context(), manyTickers)
	var killed []time.Time
	for i := range kills(t) {
		victim := c.members[i%len(c.members)]
		require.NoError(t, c.await(t.Context(), "every member owns tasks",
			func(ctx context.Context) error { return c.spread(ctx, tickers) }))
		killed = append(killed, time.Now())
		c.log.write("%s is killed", victim.name)
		victim.kill()
		before, err := c.lengths(t.Context(), tickers)
		require.NoError(t, err)
		require.NoError(t, c.await(t.Context(), "all tasks move again",
			func(ctx context.Context) error { return c.haveGrown(ctx, before) }))
		require.NoError(t, victim.start())
		require.NoError(t, c.settle(t.Context()))
	}
	c.stopTickers(t.Context(), tickers)
	c.leave()
	b := c.readBeats(t.Context(), tickers)
	var took []time.Duration
	for _, at := range killed {
		took = append(took, b.since(at))
	}
	slices.Sort(took)
	c.figure(map[string]any{"figure": "from SIGKILL until the last task moves again", "kills": len(took),
		"p50_ms": took[len(took)/2].Milliseconds(), "worst_ms": took[len(took)-1].Milliseconds()})
	if strict() {
		require.Less(t, took[len(took)/2], movesAgain)
		require.Less(t, took[len(took)-1], movesAgainWorst)
	}
}

func TestClientsSeeNoErrorsWhileMembersLeaveAndReturn(t *testing.T) {
	c := newTestCluster(t, theMembers)
	c.visibility = patience / 3 // no worker times out on a slow machine
	c.open(t.Context())
	tickers := c.startTickers(t.Context(), manyTickers)
	require.NoError(t, c.await(t.Context(), "every member owns tasks", func(ctx context.Context) error { return c.spread(ctx, tickers) }))
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	callers := c.call(ctx, 8, tickers)
	tasks := errands.Draw(1, 100)
	begun := time.Now()
	e := c.storm(tasks, []fault{{kind: kindOf("all are restarted in turn"), after: time.Second}})
	over := time.Now()
	stop()
	callers.running.Wait()
	c.stopTickers(t.Context(), tickers)
	c.leave()
	pauses := c.readBeats(t.Context(), tickers).longest(begun, over)
	for _, p := range pauses {
		c.log.write("%s", p)
	}
	pause := pauses[0].length()
	c.figure(map[string]any{"figure": "all members leave and come back, one after the other", "longest_pause_ms": pause.Milliseconds(),
		"calls": callers.calls, "turned_away": callers.turned, "errors": len(callers.errors)})
	for _, line := range callers.errors {
		c.log.write("a caller saw: %s", line)
	}
	require.Empty(t, callers.errors, "errors that callers saw")
	require.Len(t, e.byTask, len(tasks))
	diary, err := errands.ReadDiary(c.path("diary"))
	require.NoError(t, err)
	for job, began := range diary {
		require.Len(t, began, 1, "workers that began job %s", job)
	}
	if strict() {
		require.Less(t, pause, unnoticed)
	}
}

// strict reports whether the limits are checked.
func strict() bool { return os.Getenv("TROUPE_FAULTS") != "" }

// kills returns how often a member is killed.
func kills(t *testing.T) int {
	n, _ := number(t, "TROUPE_FAULTS")
	return int(max(2, min(n, 20)))
}

// figures are the measurements as JSON lines, printed at the end of all tests.
var figures []string

// figure adds a measurement.
func (c *testCluster) figure(f map[string]any) {
	f["hosts"], f["members"] = c.kind(), len(c.members)
	line, err := json.Marshal(f)
	require.NoError(c.t, err)
	c.log.write("%s", line)
	c.t.Logf("%s", line)
	figures = append(figures, string(line))
}
