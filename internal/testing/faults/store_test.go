package faults

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/internal/testing/errands"
)

// refusedWithin returns the time limit for refusing a task while the store is known to be
// unavailable, since that needs no read. Outside the long form other tests use the processors, so
// the limit is higher.
func refusedWithin() time.Duration {
	if strict() {
		return time.Second
	}
	return 4 * time.Second
}

// refusesSoon waits until a member knows that its store is away, and returns how long it takes to
// refuse a task then. An error says that it does not, or not soon.
func (c *testCluster) refusesSoon(ctx context.Context, m *member) (took time.Duration, err error) {
	client := errands.NewClient(m.site().base())
	defer client.HTTP.CloseIdleConnections()
	knows := func(ctx context.Context) error { return checkRefusal(ctx, client, "no-such-flow") }
	if err := c.await(ctx, m.name+" knows that the store is away", knows); err != nil {
		return 0, err
	}
	begun := time.Now()
	err = checkRefusal(ctx, client, "choice")
	took = time.Since(begun)
	switch {
	case err != nil:
		return took, fmt.Errorf("a task is to be refused by %s while the store is away: %w", m.name, err)
	case took > refusedWithin():
		return took, fmt.Errorf("%s has refused a task after %v, while the store was away", m.name, took)
	}
	c.log.write("%s has refused a task after %v", m.name, took)
	return took, nil
}

// checkRefusal returns an error unless a start is refused because the store is known to be away. A
// member that has ended, and does not listen before the store answers, refuses it, too.
func checkRefusal(ctx context.Context, client *errands.Client, flow string) error {
	status, answer, err := client.Send(ctx, errands.Request{Method: "POST", Path: "/v1/tasks",
		Body: map[string]any{"flow": flow, "params": map[string]any{"n": 1}}})
	var dial *net.OpError
	switch {
	case errors.As(err, &dial) && dial.Op == "dial":
		return nil
	case err != nil:
		return err
	case status != http.StatusServiceUnavailable || !strings.Contains(string(answer), "nothing was done"):
		return fmt.Errorf("%d %.300s", status, answer)
	}
	return nil
}

func TestMembersNoticeARestoredBackupAndTasksContinue(t *testing.T) {
	c := newTestCluster(t, theMembers)
	c.open(t.Context())
	tickers := c.startTickers(t.Context(), manyTickers)
	require.NoError(t, c.await(t.Context(), "every member owns tasks", func(ctx context.Context) error { return c.spread(ctx, tickers) }))
	backup, err := c.server.Backup(t.Context())
	require.NoError(t, err)
	before, err := c.lengths(t.Context(), tickers)
	require.NoError(t, err)
	require.NoError(t, c.await(t.Context(), "all tasks go beyond the backup",
		func(ctx context.Context) error { return c.haveGrown(ctx, before) }))
	var lost []string
	for i := range manyTickers {
		started, err := c.client.Start(t.Context(), fmt.Sprintf("lost-%d", i), "ticker", map[string]any{})
		require.NoError(t, err)
		lost = append(lost, started.ID)
	}
	require.NoError(t, c.server.Restore(t.Context(), backup))
	c.log.write("the backup is restored")
	begun := time.Now()
	for _, m := range c.members {
		require.NoError(t, c.await(t.Context(), m.name+" has noticed", func(context.Context) error { return m.hasNoticed() }))
	}
	noticed := time.Since(begun)
	require.NoError(t, c.settle(t.Context()))
	before, err = c.lengths(t.Context(), tickers)
	require.NoError(t, err)
	require.NoError(t, c.await(t.Context(), "all tasks move again", func(ctx context.Context) error { return c.haveGrown(ctx, before) }))
	for _, m := range c.members {
		client := errands.NewClient(m.site().base())
		for _, id := range lost {
			status, answer, err := client.Send(t.Context(), errands.Request{Method: "GET", Path: "/v1/tasks/" + id})
			require.NoError(t, err)
			require.Equal(t, http.StatusNotFound, status, "%s at %s: %s", id, m.name, answer)
		}
		client.HTTP.CloseIdleConnections()
	}
	_, _, err = (&errands.Errand{Key: "after", Flow: "choice", Params: map[string]any{"n": 1}}).Run(t.Context(), c.client)
	require.NoError(t, err)
	c.figure(map[string]any{"figure": "a backup is restored under running members",
		"noticed_ms": noticed.Milliseconds(), "tasks_lost": len(lost)})
	c.stopTickers(t.Context(), tickers)
	c.leave()
}

// hasNoticed returns an error unless the member's metrics count one store that went back and lost
// confirmed writes.
func (m *member) hasNoticed() error {
	resp, err := probing.Get(m.site().base() + "/metrics")
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if !strings.Contains(string(text), "troupe_store_failovers_total{confirmed_data=\"lost\"} 1\n") {
		return fmt.Errorf("%s has not noticed: %d", m.name, resp.StatusCode)
	}
	return nil
}

func TestAMemberThatKnowsThatPacketsToTheStoreVanishRefusesAtOnce(t *testing.T) {
	c := newTestCluster(t, theMembers)
	c.open(t.Context())
	tickers := c.startTickers(t.Context(), manyTickers)
	require.NoError(t, c.await(t.Context(), "every member owns tasks", func(ctx context.Context) error { return c.spread(ctx, tickers) }))
	require.NoError(t, each(len(c.members), func(i int) error { return c.cut(i, store) }))
	cut := time.Now()
	var slowest time.Duration
	for _, m := range c.members {
		took, err := c.refusesSoon(t.Context(), m)
		require.NoError(t, err)
		slowest = max(slowest, took)
	}
	known := time.Since(cut)
	require.NoError(t, each(len(c.members), func(i int) error { return c.heal(i, store) }))
	require.NoError(t, c.settle(t.Context()))
	before, err := c.lengths(t.Context(), tickers)
	require.NoError(t, err)
	require.NoError(t, c.await(t.Context(), "all tasks move again", func(ctx context.Context) error { return c.haveGrown(ctx, before) }))
	c.stopTickers(t.Context(), tickers)
	c.leave()
	c.figure(
		map[string]any{"figure": "packets to the store vanish: a member that knows refuses a task",
			"all_refused_after_ms": known.Milliseconds(), "refused_ms": slowest.Milliseconds()})
}
