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

	"github.com/troupe-engine/troupe/internal/errands"
)

// refusedWithin returns the time limit for refusing a task while the store is known to be
// unavailable: reads wait 1 s, then an answer is due. Outside the long form other tests use the
// processors, so the limit is higher.
func refusedWithin() time.Duration {
	if strict() {
		return 1500 * time.Millisecond
	}
	return 4 * time.Second
}

// refusesSoon waits until a member is not ready, and returns an error unless it then refuses a task
// soon.
func (c *testCluster) refusesSoon(ctx context.Context, m *member) error {
	away := func(context.Context) error {
		if m.ready() == nil {
			return errors.New("it is ready")
		}
		return nil
	}
	if err := c.await(ctx, m.name+" knows that the store is silent", away); err != nil {
		return err
	}
	begun := time.Now()
	client := errands.NewClient(m.site().base())
	defer client.HTTP.CloseIdleConnections()
	status, answer, err := client.Send(ctx, errands.Request{Method: "POST", Path: "/v1/tasks", Body: map[string]any{"flow": "choice", "params": map[string]any{"n": 1}}})
	took := time.Since(begun)
	var dial *net.OpError
	switch {
	// it has exited, and listens only after the store answers
	case errors.As(err, &dial) && dial.Op == "dial":
	case err != nil:
		return fmt.Errorf("a task is to be refused by %s while the store is silent: %w", m.name, err)
	case status != http.StatusServiceUnavailable && status != http.StatusTooManyRequests:
		return fmt.Errorf("a task is to be refused by %s while the store is silent: %d %.300s", m.name, status, answer)
	}
	c.log.write("%s has refused a task after %v", m.name, took)
	if took > refusedWithin() {
		return fmt.Errorf("%s has refused a task after %v, while the store was silent", m.name, took)
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
	require.NoError(t, c.await(t.Context(), "all tasks go beyond the backup", func(ctx context.Context) error { return c.haveGrown(ctx, before) }))
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
	c.figure(map[string]any{"figure": "a backup is restored under running members", "noticed_ms": noticed.Milliseconds(), "tasks_lost": len(lost)})
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
	if !strings.Contains(string(text), "troupe_store_rewinds_total{confirmed=\"lost\"} 1\n") {
		return fmt.Errorf("%s has not noticed: %d", m.name, resp.StatusCode)
	}
	return nil
}
