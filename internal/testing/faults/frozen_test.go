package faults

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/internal/testing/errands"
)

// A member is frozen while batches are in flight. Its host's network delivers them after it was
// fenced. They start new tasks, to which no other member has written, so only the fence can stop
// them.
func TestWritesOfAFencedFrozenMemberAreRefused(t *testing.T) {
	c := newTestCluster(t, theMembers)
	c.open(t.Context())
	c.callWitness(t.Context())
	victim, version := c.members[0], c.version(t.Context(), "canceled")
	b := c.beginTasks(t.Context(), victim, version)
	require.NoError(t, c.await(t.Context(), "the member has written rows",
		func(ctx context.Context) error { return c.some(c.witnessed(ctx, victim)) }))
	b.end()
	require.NoError(t, c.await(t.Context(), "nobody writes any more", c.atRest))

	require.NoError(t, c.cut(0, store))
	b = c.beginTasks(t.Context(), victim, version)
	require.NoError(t, c.await(t.Context(), "who asks the member is not answered", b.stuck))
	process := victim.take() // it is not restarted
	require.NoError(t, process.Freeze())
	c.log.write("%s is frozen", victim.name)
	b.end()
	require.NoError(t, c.await(t.Context(), "the member is fenced",
		func(ctx context.Context) error { return c.some(c.fenced(ctx, victim)) }))
	before, err := c.witnessed(t.Context(), victim)
	require.NoError(t, err)
	require.NoError(t, c.heal(0, store))
	require.NoError(t, c.await(t.Context(), "late batches arrive", func(ctx context.Context) error { return c.some(c.late(ctx, victim)) }))
	batches, err := c.late(t.Context(), victim)
	require.NoError(t, err)
	require.NoError(t, process.Thaw())
	c.log.write("%s goes on", victim.name)
	var exit *exec.ExitError
	require.ErrorAs(t, process.Wait(patience), &exit, "who was fenced ends")
	after, err := c.witnessed(t.Context(), victim)
	require.NoError(t, err)
	require.Equal(t, before, after, "rows of the member")
	c.figure(map[string]any{"figure": "a frozen member that was fenced goes on", "late_batches": batches, "late_rows": after - before})

	require.NoError(t, victim.start())
	require.NoError(t, c.settle(t.Context()))
	c.leave()
}

// beginners start tasks at one member all the time and do not retry.
type beginners struct {
	end   func()
	since []atomic.Int64 // time of each pending request
}

func (c *testCluster) beginTasks(ctx context.Context, at *member, version string) *beginners {
	ctx, cancel := context.WithCancel(ctx)
	b := &beginners{since: make([]atomic.Int64, 8)}
	client := errands.NewClient(at.site().base())
	var running sync.WaitGroup
	for k := range b.since {
		b.since[k].Store(time.Now().UnixNano())
		running.Go(func() {
			for ctx.Err() == nil {
				b.since[k].Store(time.Now().UnixNano())
				// the result does not matter
				_, _, _ = client.Send(ctx, errands.Request{Method: "POST", Path: "/tasks",
					Body: map[string]any{"flow_version_id": version}})
			}
		})
	}
	b.end = func() {
		cancel()
		running.Wait()
		client.HTTP.CloseIdleConnections()
	}
	c.t.Cleanup(b.end)
	return b
}

// version returns the id of a flow's version. Starting a task by version id needs no read.
func (c *testCluster) version(ctx context.Context, slug string) (id string) {
	require.NoError(c.t, c.query(ctx, "SELECT v.id FROM troupe.flow_versions v JOIN "+
		"troupe.flows f ON f.id = v.flow_id WHERE f.slug = $1", slug, []any{&id}, func() {}))
	return id
}

// atRest returns an error unless all tasks wait and their members have nothing to write.
func (c *testCluster) atRest(ctx context.Context) (err error) {
	var n int
	if err = c.query(ctx, "SELECT count(*) FROM troupe.tasks WHERE settled_at IS NULL AND id <> $1",
		"", []any{&n}, func() {}); err == nil && n > 0 {
		err = fmt.Errorf("%d tasks move", n)
	}
	return err
}

// stuck returns an error unless no request was answered for a while.
func (b *beginners) stuck(context.Context) error {
	for k := range b.since {
		if since := time.Since(time.Unix(0, b.since[k].Load())); since < 200*time.Millisecond {
			return fmt.Errorf("one has waited for %v", since)
		}
	}
	return nil
}

// callWitness makes the store record the writers of journal rows.
func (c *testCluster) callWitness(ctx context.Context) {
	require.NoError(c.t, c.order(ctx, `
		CREATE TABLE witness (member text);
		CREATE FUNCTION bear_witness() RETURNS trigger LANGUAGE plpgsql AS
			'BEGIN INSERT INTO witness VALUES (current_setting(''application_name'')); RETURN NULL; END';
		CREATE TRIGGER witness AFTER INSERT ON troupe.task_events FOR EACH ROW EXECUTE FUNCTION bear_witness()`))
}

// witnessed returns how many journal rows a member has written since then.
func (c *testCluster) witnessed(ctx context.Context, m *member) (n int, err error) {
	return c.count(ctx, "SELECT count(*) FROM witness WHERE member = $1", m)
}

// fenced returns how many incarnations of a member were fenced.
func (c *testCluster) fenced(ctx context.Context, m *member) (n int, err error) {
	return c.count(ctx, "SELECT count(*) FROM troupe.members WHERE name = $1 AND fenced_at > 0", m)
}

// late returns how many batches the store has executed after a member was fenced. A frozen member
// sends nothing more, so the last statement of each of its connections remains visible.
func (c *testCluster) late(ctx context.Context, m *member) (n int, err error) {
	return c.count(ctx, `SELECT count(*) FROM pg_stat_activity a JOIN troupe.members m ON m.name = a.application_name
		WHERE m.name = $1 AND m.fenced_at > 0 AND a.query LIKE 'WITH fence%task_events%' AND a.state = 'idle'
			AND a.query_start > to_timestamp(m.fenced_at / 1000.0)`, m)
}

func (c *testCluster) count(ctx context.Context, statement string, m *member) (n int, err error) {
	err = c.query(ctx, statement, m.name, []any{&n}, func() {})
	return n, err
}

// some returns an error while n is 0.
func (c *testCluster) some(n int, err error) error {
	if err == nil && n == 0 {
		return errors.New("there are none")
	}
	return err
}
