package faults

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// ticker is a task that moves all the time, so its journal shows interruptions.
const ticker = `
on_error: follow
start: wait
nodes:
  wait: {kind: timer, params: {delay_ms: 50}}
  work: {exec_type: local_func, func: upper, params: {text: tick}, post: {output_key: said}}
edges:
  - {from: wait, action: default, to: work}
  - {from: work, action: default, to: wait}
`

// startTickers starts n tickers.
func (c *testCluster) startTickers(ctx context.Context, n int) (tasks []string) {
	require.NoError(c.t, c.client.Publish(ctx, "ticker", []byte(ticker)))
	for i := range n {
		started, err := c.client.Start(ctx, fmt.Sprintf("ticker-%d", i), "ticker", map[string]any{})
		require.NoError(c.t, err)
		tasks = append(tasks, started.ID)
	}
	return tasks
}

// stopTickers cancels the tickers.
func (c *testCluster) stopTickers(ctx context.Context, tasks []string) {
	for _, task := range tasks {
		require.NoError(c.t, c.client.Do(ctx, task, "cancel", "stop-"+task, nil))
	}
}

// beats are the times at which tasks moved according to their journals, by task.
type beats map[string][]time.Time

// readBeats reads the journals of tasks.
func (c *testCluster) readBeats(ctx context.Context, tasks []string) beats {
	b := beats{}
	var task string
	var at int64
	require.NoError(c.t, c.query(ctx, "SELECT t.id, e.at FROM troupe.tasks t JOIN "+
		"troupe.task_events e ON e.task = troupe.journal_key(t.id) WHERE t.id = ANY($1) ORDER "+
		"BY t.id, e.seq", tasks, []any{&task, &at}, func() {
		b[task] = append(b[task], time.UnixMilli(at))
	}))
	return b
}

// since returns how long after a moment the last of the tasks moved again.
func (b beats) since(moment time.Time) (last time.Duration) {
	for _, times := range b {
		for _, at := range times {
			if at.After(moment) {
				last = max(last, at.Sub(moment))
				break
			}
		}
	}
	return last
}

// stall is a period in which a task did not move.
type stall struct {
	task     string
	from, to time.Time
}

func (p stall) length() time.Duration { return p.to.Sub(p.from) }

func (p stall) String() string {
	return fmt.Sprintf("task %s paused %d ms, from %s to %s", p.task, p.length().Milliseconds(), p.from.Format(clock), p.to.Format(clock))
}

// longest returns the longest pause of each task that overlaps a period, longest first.
func (b beats) longest(from, to time.Time) []stall {
	var pauses []stall
	for task, times := range b {
		most := stall{task: task}
		for i := 1; i < len(times); i++ {
			if p := (stall{task, times[i-1], times[i]}); p.to.After(from) && p.from.Before(to) && p.length() > most.length() {
				most = p
			}
		}
		pauses = append(pauses, most)
	}
	slices.SortFunc(pauses, func(a, b stall) int { return cmp.Compare(b.length(), a.length()) })
	return pauses
}

// lengths returns the numbers of journal rows of tasks.
func (c *testCluster) lengths(ctx context.Context, tasks []string) (map[string]int64, error) {
	lengths := map[string]int64{}
	var task string
	var length int64
	err := c.query(ctx, "SELECT t.id, max(e.seq) FROM troupe.tasks t JOIN troupe.task_events e "+
		"ON e.task = troupe.journal_key(t.id) WHERE t.id = ANY($1) GROUP BY t.id", tasks,
		[]any{&task, &length}, func() {
			lengths[task] = length
		})
	return lengths, err
}

// haveGrown returns an error unless all journals have grown by more rows than were in flight.
func (c *testCluster) haveGrown(ctx context.Context, before map[string]int64) error {
	now, err := c.lengths(ctx, slices.Collect(maps.Keys(before)))
	if err != nil {
		return err
	}
	for task, length := range before {
		if now[task] < length+5 {
			return fmt.Errorf("task %s has %d rows now, %d before", task, now[task], length)
		}
	}
	return nil
}

// order executes statements in the store, independently of the members.
func (c *testCluster) order(ctx context.Context, statements string) error {
	conn, err := pgx.Connect(ctx, c.server.DSN(database))
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, statements)
	return err
}

// query queries the store, independently of the members.
func (c *testCluster) query(ctx context.Context, statement string, argument any, row []any, each func()) error {
	conn, err := pgx.Connect(ctx, c.server.DSN(database))
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	rows, err := conn.Query(ctx, statement, argument)
	if err != nil {
		return err
	}
	_, err = pgx.ForEachRow(rows, row, func() error {
		each()
		return nil
	})
	return err
}
