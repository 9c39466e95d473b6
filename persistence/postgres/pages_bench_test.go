package postgres_test

import (
	"context"
	"crypto/md5"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// BenchmarkPages measures pages of long histories.
//
//   - Pages: the first page with one item, and the last with 500.
//   - Items: events, runs and steps of a task of 1,000,000 steps, and runs and units of a fan-out
//     with 100,000 units. The units of a finished visit come from the cache, which an earlier page
//     has filled.
//   - Also a digest of each of these, and of a task of 10,000 nodes.
//
// B/op is all memory allocated, not only the memory held at once.
func BenchmarkPages(b *testing.B) {
	x := newBench(b)
	h := historian{b: b, x: x, reader: persistence.NewReader(x.store, flow.Limits{})}
	x.Run("1,000,000 steps", func(b *testing.B) {
		h.play("loop",
			`{"start":"a","nodes":{"a":{"func":"f","prep":{"input_key":"$shared.o"},"post":{"output_key":"o"}}},"edges":[{"from":"a","action":"default","to":"a"}]}`,
			1_000_000)
		h.events(b, "loop")
		h.runs(b, "loop", 1_000_000)
		h.steps(b, "loop", 1_000_000)
		h.digest(b, "loop")
	})
	x.Run("10,000 nodes", func(b *testing.B) {
		h.play("many", dagOf(10_000), 10_000)
		h.digest(b, "many")
	})
	x.Run("100,000 units", func(b *testing.B) {
		h.play("wide", `{"mode":"dag","nodes":{"w":{"func":"f","each":{"count":100000}}}}`, 100_000)
		h.runs(b, "wide", 100_000)
		h.units(b, "wide", 100_000)
	})
	x.Run("100,000 units, one left", func(b *testing.B) {
		h.play("left", `{"mode":"dag","nodes":{"w":{"func":"f","each":{"count":100000}}}}`, 99_999)
		h.digest(b, "left")
		h.runs(b, "left", 99_999)
		h.units(b, "left", 100_000)
	})
}

// dagOf returns a definition of a chain of nodes.
func dagOf(nodes int) string {
	b := []byte(`{"mode":"dag","nodes":{"n0":{"func":"f"}`)
	for i := 1; i < nodes; i++ {
		b = fmt.Appendf(b, `,"n%d":{"func":"f","depends_on":["n%d"]}`, i, i-1)
	}
	return string(b) + "}}"
}

// historian writes the history of a task as its actor would.
type historian struct {
	b      *testing.B
	x      *bench
	reader *persistence.Reader

	rows, checks      [][]any
	journal, snapshot int
	state             *flow.State
	env               flow.Env
	seq               int64
	waiting           []flow.Job
}

// play reports jobs, up to the given number.
func (h *historian) play(task, definition string, reports int) {
	ctx := context.Background()
	require.NoError(h.b, h.x.store.CreateFlow(ctx, persistence.Flow{ID: "flow-" + task, Slug: task, Name: task}))
	require.NoError(h.b, h.x.store.CreateVersion(ctx, persistence.Version{ID: "v-" + task,
		FlowID: "flow-" + task, Definition: []byte(definition), Status: "published"}))
	plan, err := h.reader.Plan(ctx, "v-"+task)
	require.NoError(h.b, err)
	h.state, h.env = flow.NewState(task, plan), flow.Env{Now: 1_700_000_000_000, Member: "m", Limits: flow.Limits{Steps: 2_000_000}}
	h.rows, h.checks, h.journal, h.snapshot, h.seq, h.waiting = nil, nil, 0, 0, 0, nil
	h.decide(task, flow.Start{Version: "v-" + task})
	for i := range reports {
		job := h.waiting[0]
		h.waiting = h.waiting[1:]
		h.decide(task, flow.Report{Address: job.Address, Output: fmt.Appendf(nil, `{"number":%d}`, i), Worker: "w"})
		if i%1000 == 0 {
			h.env.Now++
		}
	}
	h.write(task)
}

func (h *historian) decide(task string, c flow.Command) {
	for c != nil {
		d, err := flow.Decide(h.state, c, h.env)
		require.NoError(h.b, err)
		for _, e := range d.Effects {
			if job, ok := e.(flow.Dispatch); ok {
				h.waiting = append(h.waiting, job.Job)
			}
		}
		h.keep(task, d.Events)
		c = d.More
	}
}

func (h *historian) keep(task string, events []flow.Event) {
	if len(events) == 0 {
		return
	}
	h.seq++
	row := flow.AppendEvents(nil, events)
	h.rows = append(h.rows, []any{md5.Sum([]byte(task)), h.seq, h.env.Now, row})
	if h.journal += len(row); persistence.CheckpointDue(h.journal, h.snapshot) {
		snapshot := flow.EncodeSnapshot(h.state).Bytes()
		h.checks = append(h.checks, []any{task, h.seq, 0, len(snapshot), snapshot})
		h.journal, h.snapshot = 0, len(snapshot)
	}
	if len(h.rows) == 10_000 {
		h.flush()
	}
}

func (h *historian) flush() {
	for table, rows := range map[string]*[][]any{"task_events": &h.rows, "checkpoints": &h.checks} {
		columns := []string{"task", "seq", "at", "events"}
		if table == "checkpoints" {
			columns = []string{"task", "seq", "part", "size", "snapshot"}
		}
		_, err := h.x.admin.CopyFrom(context.Background(), pgx.Identifier{table}, columns, pgx.CopyFromRows(*rows))
		require.NoError(h.b, err)
		*rows = nil
	}
}

func (h *historian) write(task string) {
	h.flush()
	_, err := h.x.admin.Exec(context.Background(),
		`INSERT INTO tasks (id, flow_id, version_id, created_at, updated_at, body_hash, params, status, shard)
		VALUES ($1, $2, $3, 1, 1, '', '{}', 'running', 0)`, task, "flow-"+task, "v-"+task)
	require.NoError(h.b, err)
	_, err = h.x.admin.Exec(context.Background(), "VACUUM ANALYZE")
	require.NoError(h.b, err)
}

func (h *historian) measure(b *testing.B, name string, read func() error) {
	b.Run(name, func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := read(); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func (h *historian) events(b *testing.B, task string) {
	for name, at := range map[string]int64{"limit=1": 0, "deepest 500": h.seq - 500} {
		h.measure(b, "events "+name, func() error {
			rows, err := h.x.store.Rows(b.Context(), task, at, persistence.Part{Rows: int(min(500, 1+at)), Bytes: 4 << 20})
			for _, row := range rows {
				if err == nil {
					_, err = flow.DecodeEvents(row.Events)
				}
			}
			return err
		})
	}
}

// deepest returns the place of the last page of 500.
func deepest(_ *testing.B, all int, next func(flow.Place) (n int, more bool, at flow.Place)) (at flow.Place) {
	seen := 0
	for more := true; more && all-seen > 500; {
		var n int
		n, more, at = next(at)
		seen += n
	}
	return at
}

func (h *historian) runs(b *testing.B, task string, all int) {
	last := deepest(b, all, func(at flow.Place) (int, bool, flow.Place) {
		p, err := h.reader.Runs(context.Background(), task, at, 4000, 16<<20)
		require.NoError(b, err)
		return len(p.Runs), p.More, p.Next
	})
	h.measure(b, "runs limit=1", func() error { return one(h.reader.Runs(b.Context(), task, flow.Place{}, 1, 4<<20)) })
	h.measure(b, "runs middle 500", func() error {
		return one(h.reader.Runs(b.Context(), task, flow.Place{Seq: h.seq / 2}, 500, 4<<20))
	})
	h.measure(b, "runs deepest 500", func() error { return one(h.reader.Runs(b.Context(), task, last, 500, 4<<20)) })
}

func one(p *flow.RunPage, err error) error {
	if err == nil && len(p.Runs) == 0 {
		return fmt.Errorf("the page is empty")
	}
	return err
}

func (h *historian) steps(b *testing.B, task string, all int) {
	last := flow.Place{Seq: h.seq - 505}
	for name, q := range map[string]flow.StepQuery{"limit=1": {Most: 1}, "deepest 500": {Most: 500, After: last}} {
		q.Bytes = 4 << 20
		h.measure(b, "steps "+name, func() error {
			p, err := h.reader.Steps(b.Context(), task, q)
			if err == nil && len(p.Steps) != q.Most {
				err = fmt.Errorf("%d steps", len(p.Steps))
			}
			return err
		})
	}
	h.measure(b, "units of the middle visit", func() error {
		_, err := h.reader.Units(b.Context(), task, flow.Address{Node: "a", Visit: all / 2})
		return err
	})
}

func (h *historian) units(b *testing.B, task string, all int) {
	for name, at := range map[string][2]int{"limit=1": {0, 1}, "deepest 500": {all - 500, all}} {
		h.measure(b, "units "+name, func() error {
			l, err := h.reader.Units(b.Context(), task, flow.Address{Node: "w"})
			for i := at[0]; i < at[1] && err == nil; i++ {
				l.At(i)
			}
			return err
		})
	}
}

func (h *historian) digest(b *testing.B, task string) {
	h.measure(b, "digest", func() error {
		v, err := h.reader.View(b.Context(), task)
		if err == nil {
			v.State.Digest(v.State.Root, v.State.Root.Plan.Order())
		}
		return err
	})
}
