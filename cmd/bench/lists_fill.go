//go:build unix

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/troupe-engine/troupe"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/stats"
	"github.com/troupe-engine/troupe/persistence"
)

const (
	filledFlows  = 200
	filledDays   = 30
	filledBatch  = 500
	filledOpen   = 50 // one of this number of tasks has not ended
	filledMinute = 20 // number of flows with statistics by minute for the last day
)

// fillStore fills the store with -n tasks, half of them of the first of 200 flows. One in fifty
// waits for an approval, a signal or a worker. The others ended in the last 30 days, one in twelve
// with one of 50 kinds of errors. Each task has two labels. Open tasks are really started; ended
// tasks are copies of tasks that really ended.
func (b *benchRun) fillStore() error {
	if err := b.publishFilled(); err != nil {
		return err
	}
	ends := map[string]string{}
	for _, end := range []string{"completed", "failed", "canceled"} {
		id, err := b.runToEnd(end)
		if err != nil {
			return err
		}
		ends[end] = id
	}
	if err := b.startOpen(); err != nil {
		return err
	}
	if err := b.engine.Close(); err != nil {
		return err
	}
	b.engine = nil
	if err := b.copyEnded(ends); err != nil {
		return err
	}
	return b.openEngine()
}

func (b *benchRun) publishFilled() error {
	b.engine.HandleJSON("refuse", func(context.Context, troupe.Job) (json.RawMessage, error) { return nil, errors.New("refused") })
	for i := range filledFlows {
		err := b.publishFlow(fmt.Sprintf("flow-%d", i), fmt.Sprintf(`
name: Flow %d
start: choose
nodes:
  choose:
    kind: choice
    choice_cases:
      - {action: approval, expr: {eq: [$params.do, approval]}}
      - {action: signal, expr: {eq: [$params.do, signal]}}
      - {action: queue, expr: {eq: [$params.do, queue]}}
      - {action: failed, expr: {eq: [$params.do, failed]}}
    default_action: completed
  approval: {kind: approval, params: {approval_key: $shared.ok}}
  signal: {kind: wait_event, params: {signal_key: $shared.heard}}
  queue: {exec_type: queue, service: service-%d}
  failed: {exec_type: local_func, func: refuse}
  work: {exec_type: local_func, func: nothing}
edges:
  - {from: choose, action: approval, to: approval}
  - {from: choose, action: signal, to: signal}
  - {from: choose, action: queue, to: queue}
  - {from: choose, action: failed, to: failed}
  - {from: choose, action: completed, to: work}
`, i, i%20))
		if err != nil {
			return err
		}
	}
	return nil
}

// drawFlow draws the number of a flow: 0 with a probability of one half.
func drawFlow(rng *rand.Rand) int {
	if rng.IntN(2) == 0 {
		return 0
	}
	return rng.IntN(filledFlows)
}

func labelsOf(rng *rand.Rand) map[string]string {
	return map[string]string{"customer": fmt.Sprintf("customer-%d", rng.IntN(10_000)),
		"region": []string{"north", "east", "south", "west", "inland"}[rng.IntN(5)]}
}

// startOpen starts the waiting tasks.
func (b *benchRun) startOpen() error {
	return b.forEach(b.o.n/filledOpen, b.o.concurrency, func(i int) error {
		rng := rand.New(rand.NewPCG(1, uint64(i)))
		params := map[string]any{"do": []string{"approval", "signal", "queue", "queue"}[i%4]}
		_, err := b.startTask(fmt.Sprintf("flow-%d", drawFlow(rng)), params, troupe.WithLabels(labelsOf(rng)))
		return err
	})
}

// runToEnd runs a task to the given end and returns its id.
func (b *benchRun) runToEnd(how string) (string, error) {
	do := map[string]string{"canceled": "signal"}[how]
	if do == "" {
		do = how
	}
	id, err := b.startTask("flow-0", map[string]any{"do": do})
	if err != nil {
		return "", err
	}
	if how == "canceled" {
		if err := b.engine.Cancel(b.ctx, id); err != nil {
			return "", err
		}
	}
	end, err := b.awaitTask(id)
	if err != nil {
		return "", err
	}
	if end != how {
		return "", fmt.Errorf("task %s has ended %s, and not %s", id, end, how)
	}
	return id, nil
}

// copyEnded adds ended tasks to the store, as copies of the given tasks.
func (b *benchRun) copyEnded(ends map[string]string) error {
	store, err := troupe.OpenStore(b.ctx, b.store, "")
	if err != nil {
		return err
	}
	defer store.Close()
	joining := persistence.Joining{Name: "fill", Format: flow.Format, TTL: time.Hour}
	if b.dsn != "" {
		joining.Cluster = "troupe" // the default name on PostgreSQL; SQLite has no cluster
	}
	mine, err := store.Join(b.ctx, joining)
	if err != nil {
		return err
	}
	c, err := b.newCopier(store, ends)
	if err != nil {
		return err
	}
	for left := b.o.n - b.o.n/filledOpen; left > 0; left -= filledBatch {
		errs, err := store.Commit(b.ctx, mine, c.copyBatch(min(left, filledBatch)))
		if err := errors.Join(append(errs, err)...); err != nil {
			return err
		}
	}
	if err := c.addStats(b.ctx, store); err != nil {
		return err
	}
	if err := store.Leave(b.ctx, mine); err != nil {
		return err
	}
	return b.analyzeTables()
}

// analyzeTables runs ANALYZE, as Postgres would do later by itself.
func (b *benchRun) analyzeTables() error {
	if b.dsn == "" {
		return nil
	}
	conn, err := pgx.Connect(b.ctx, b.dsn)
	if err != nil {
		return err
	}
	defer conn.Close(b.ctx)
	_, err = conn.Exec(b.ctx, "VACUUM ANALYZE")
	return err
}

// taskCopier creates ended tasks as copies of real tasks.
type taskCopier struct {
	rng     *rand.Rand
	now     time.Time
	flows   []persistence.Flow
	version map[string]string // version of each flow, by flow id
	ends    map[string]*persistence.Record
}

func (b *benchRun) newCopier(store persistence.Store, ends map[string]string) (*taskCopier, error) {
	c := &taskCopier{rng: rand.New(rand.NewPCG(2, 3)), now: time.Now(),
		flows: make([]persistence.Flow, filledFlows), version: map[string]string{},
		ends: map[string]*persistence.Record{}}
	for i := range c.flows {
		f, err := store.FlowBySlug(b.ctx, fmt.Sprintf("flow-%d", i))
		if err != nil {
			return nil, err
		}
		versions, err := store.ListVersions(b.ctx, f.ID)
		if err != nil {
			return nil, err
		}
		c.flows[i], c.version[f.ID] = *f, versions[0].ID
	}
	for how, id := range ends {
		records, err := store.Load(b.ctx, []string{id})
		if err != nil {
			return nil, err
		}
		c.ends[how] = records[0]
	}
	return c, nil
}

func (c *taskCopier) copyBatch(n int) []persistence.Commit {
	batch := make([]persistence.Commit, n)
	for i := range batch {
		batch[i] = c.copyTask()
	}
	return batch
}

func (c *taskCopier) copyTask() persistence.Commit {
	f := &c.flows[drawFlow(c.rng)]
	created := c.now.Add(-time.Duration(c.rng.Int64N(int64(filledDays * 24 * time.Hour)))).UnixMilli()
	how := "completed"
	switch n := c.rng.IntN(48); {
	case n < 4:
		how = "failed"
	case n == 4:
		how = "canceled"
	}
	of := c.ends[how]
	columns := of.Columns
	columns.EndedAt = created + int64(c.rng.ExpFloat64()*800)
	if how == "failed" {
		columns.Error = fmt.Sprintf("%s: refused %d of kind %c%c", columns.Cursor, c.rng.IntN(1000), 'a'+c.rng.IntN(10), 'a'+c.rng.IntN(5))
	}
	var snapshot flow.Snapshot
	if of.Snapshot != nil {
		snapshot = flow.Snapshot{of.Snapshot}
	}
	return persistence.Commit{
		Task: "task-" + uuid.Must(uuid.NewV7()).String(), Seq: 1, At: columns.EndedAt,
		Events: of.Rows[0].Events, Columns: &columns, Snapshot: snapshot,
		Create: &persistence.Create{FlowID: f.ID, VersionID: c.version[f.ID],
			Labels: labelsOf(c.rng), Params: []byte(`{"do":"completed"}`), CreatedAt: created},
	}
}

// addStats adds the statistics that members would have recorded for these tasks.
func (c *taskCopier) addStats(ctx context.Context, store persistence.Stats) error {
	for i := range c.flows {
		hours := c.statsRows(&c.flows[i], persistence.StatsHour, filledDays*24)
		if i < filledMinute {
			hours = append(hours, c.statsRows(&c.flows[i], persistence.StatsMinute, 24*60)...)
		}
		if err := store.AddStats(ctx, hours); err != nil {
			return err
		}
	}
	return store.AddStats(ctx, append(c.statsRows(&persistence.Flow{}, persistence.StatsHour,
		filledDays*24), c.statsRows(&persistence.Flow{}, persistence.StatsMinute, 24*60)...))
}

// statsRows returns the statistics of a flow and its nodes, or of all tasks.
func (c *taskCopier) statsRows(f *persistence.Flow, width int64, n int) (rows []persistence.StatsRow) {
	at := c.now.UnixMilli()
	for i := range int64(n) {
		for _, node := range []string{"", "choose", "work", "failed"} {
			if node != "" && f.ID == "" {
				continue
			}
			counts := stats.Counts{Began: 10}
			for range 10 {
				counts.End(flow.TaskCompleted, "", at, int64(c.rng.ExpFloat64()*800))
			}
			rows = append(rows, persistence.StatsRow{Counts: counts, StatsSpot: persistence.StatsSpot{
				Key: stats.Key{Flow: f.ID, Version: c.version[f.ID], Node: node}, Width: width, Bucket: at - at%width - i*width}})
		}
	}
	return rows
}
