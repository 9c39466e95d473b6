package client_test

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/api/client"
	"github.com/troupe-engine/troupe/api/wire"
)

// weakLine returns an address in front of a server. Its connections break off after a number of
// bytes, later each time.
func weakLine(t *testing.T, base string) (address string, connections *atomic.Int64) {
	t.Helper()
	to, err := url.Parse(base)
	require.NoError(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	connections = &atomic.Int64{}
	var lines sync.WaitGroup
	lines.Go(func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			lines.Go(func() { carry(near, to.Host, 150+331*connections.Add(1)) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		lines.Wait()
	})
	return "http://" + l.Addr().String(), connections
}

func carry(near net.Conn, to string, bytes int64) {
	defer near.Close()
	far, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer far.Close()
	var up sync.WaitGroup
	up.Go(func() {
		_, _ = io.Copy(far, near)
		_ = far.Close() // the client has gone
	})
	_, _ = io.CopyN(near, far, bytes)
	_ = near.Close()
	up.Wait()
}

func eventIDs(t *testing.T, c *client.Client, task string) (ids []string) {
	t.Helper()
	for e, err := range client.All(func(cursor string) (*wire.Page[wire.Event], error) { return c.Events(t.Context(), task, cursor, 0) }) {
		require.NoError(t, err)
		ids = append(ids, e.ID)
	}
	return ids
}

func TestManyAreWatchedWithoutAGapAndNothingTwice(t *testing.T) {
	s := startServer(t, nil)
	c := connect(t, s.base)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	_, err := c.Publish(ctx, "slow", []byte(slow))
	require.NoError(t, err)
	after, ids, ends := map[string]string{"nope": ""}, map[string][]string{}, map[string]string{}
	for range 3 {
		started, err := c.Start(ctx, wire.StartRequest{Flow: "slow"})
		require.NoError(t, err)
		after[started.ID] = ""
	}
	address, connections := weakLine(t, s.base)
	refusals := 0
	for told, err := range connect(t, address).WatchAll(ctx, after) {
		switch {
		case err != nil:
			require.Equal(t, []string{"nope", "not_found"}, []string{told.Task, client.KindOf(err)})
			refusals++
		case told.End != nil:
			ends[told.Task] = told.End.State
		default:
			ids[told.Task] = append(ids[told.Task], told.Event.ID)
			if len(ids[told.Task]) == 20 {
				_, err := c.Signal(ctx, told.Task, "stop", json.RawMessage("true"))
				require.NoError(t, err)
			}
		}
	}
	require.Equal(t, 1, refusals)
	require.Greater(t, connections.Load(), int64(3))
	delete(after, "nope")
	for task := range after {
		require.Equal(t, "completed", ends[task])
		require.Equal(t, eventIDs(t, c, task), ids[task])
	}
	for task := range after {
		after[task] = ids[task][len(ids[task])-2]
	}
	rest := 0
	for told, err := range c.WatchAll(ctx, after) {
		require.NoError(t, err)
		if told.Event != nil {
			rest++
			require.Equal(t, ids[told.Task][len(ids[told.Task])-1], told.Event.ID)
		}
	}
	require.Equal(t, 3, rest)
}

func TestWatchAllEndsWhenTheCallerStops(t *testing.T) {
	s := startServer(t, nil)
	c := connect(t, s.base)
	_, err := c.Publish(t.Context(), "waits", []byte(waits))
	require.NoError(t, err)
	started, err := c.Start(t.Context(), wire.StartRequest{Flow: "waits"})
	require.NoError(t, err)
	for told, err := range c.WatchAll(t.Context(), map[string]string{started.ID: ""}) {
		require.NoError(t, err)
		require.Equal(t, "task_created", told.Event.Type)
		break
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var last error
	for _, err := range c.WatchAll(ctx, map[string]string{started.ID: ""}) {
		last = err
		cancel()
	}
	require.ErrorIs(t, last, context.Canceled)
	for _, err := range connect(t, s.base,
		func(o *client.Options) { o.Token = "x" }).WatchAll(t.Context(), map[string]string{started.ID: ""}) {
		require.Equal(t, "denied", client.KindOf(err))
	}
}
