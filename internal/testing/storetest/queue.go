package storetest

import (
	"math/rand/v2"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/persistence"
)

func newJob(id, service string, at int64) persistence.QueueRow {
	return persistence.QueueRow{JobID: id, Task: "a", Service: service, EnqueuedAt: at, Turn: id, Size: len(id) + 7}
}

// deepID returns the id of a job in a scope so deep that no index can hold the id. Only the end
// differs from other ids.
func deepID(end string) string {
	rng := rand.New(rand.NewPCG(1, 1))
	var id strings.Builder
	id.WriteString("a.1.0.1.")
	for range 20 {
		id.WriteString(randomText(rng))
	}
	return id.String() + end
}

// createQueued creates task a with these jobs.
func (w *testEnv) createQueued(jobs ...persistence.QueueRow) {
	w.Helper()
	w.mustCommit(changeCommit(createCommit("a"), func(c *persistence.Commit) { c.Enqueue = jobs }))
}

// listJobs returns ids of queued jobs.
func (w *testEnv) listJobs(services []string, afterAt int64, afterTurn string, limit int) []string {
	w.Helper()
	list := []string{}
	for _, q := range requireList[persistence.QueueRow](w)(w.QueueRows(w.ctx(), services, afterAt, afterTurn, limit)) {
		list = append(list, q.JobID)
	}
	return list
}

var queue = []storeBehavior{
	{"jobs of the same time wait in order of their turn, and are read on in it", func(w *testEnv) {
		turn := func(id, turn string, at int64) persistence.QueueRow {
			j := newJob(id, "s", at)
			j.Turn = turn
			return j
		}
		w.createQueued(turn("a", "19", 2), turn("b", "210", 2), turn("c", "1Z", 2), turn("d", "1a", 2), turn("e", "0", 3))
		require.Equal(w, []string{"a", "c", "d", "b", "e"}, w.listJobs(nil, 0, "", 9))
		require.Equal(w, []string{"d", "b", "e"}, w.listJobs([]string{"s"}, 2, "1Z", 9))
		rows := requireList[persistence.QueueRow](w)(w.QueueFor(w.ctx(), persistence.QueueFilter{Service: "s"}, 2, "1Z", 2))
		require.Equal(w, []persistence.QueueRow{turn("d", "1a", 2), turn("b", "210", 2)}, rows)
	}},
	{"jobs wait in order of time", func(w *testEnv) {
		w.createQueued(newJob("c", "s", 2), newJob("b", "t", 1), newJob("a", "s", 2), newJob("d", "u", 1))
		require.Equal(w, []string{"b", "d", "a", "c"}, w.listJobs(nil, 0, "", 9))
		require.Equal(w, []persistence.QueueRow{newJob("b", "t", 1)},
			requireList[persistence.QueueRow](w)(w.QueueRows(w.ctx(), nil, 0, "", 1)))
	}},
	{"the queue is read on from a position", func(w *testEnv) {
		w.createQueued(newJob("c", "s", 2), newJob("b", "t", 1), newJob("a", "s", 2), newJob("d", "u", 1))
		require.Equal(w, []string{"d", "a"}, w.listJobs(nil, 1, "b", 2))
		require.Equal(w, []string{"c"}, w.listJobs(nil, 2, "a", 2))
		require.Empty(w, w.listJobs(nil, 2, "c", 2))
	}},
	{"only the services asked for are listed", func(w *testEnv) {
		w.createQueued(newJob("c", "s", 2), newJob("b", "t", 1), newJob("a", "s", 2), newJob("d", "u", 1))
		require.Equal(w, []string{"a", "c"}, w.listJobs([]string{"s"}, 0, "", 9))
		require.Equal(w, []string{"b", "a", "c"}, w.listJobs([]string{"s", "t", "x", "s"}, 0, "", 9))
		require.Equal(w, []string{"b", "a"}, w.listJobs([]string{"s", "t"}, 0, "", 2))
		require.Empty(w, w.listJobs([]string{}, 0, "", 9))
	}},
	{"a job that is taken out is gone", func(w *testEnv) {
		w.createQueued(newJob("a", "s", 1), newJob("b", "s", 1), newJob("c", "s", 1))
		w.mustCommit(changeCommit(appendCommit("a", 2), func(c *persistence.Commit) { c.Dequeue = []string{"a", "c", "unknown"} }))
		require.Equal(w, []string{"b"}, w.listJobs(nil, 0, "", 9))
	}},
	{"a job put in and taken out at once does not wait", func(w *testEnv) {
		w.createQueued(newJob("old", "s", 1))
		w.mustCommit(changeCommit(appendCommit("a", 2), func(c *persistence.Commit) {
			c.Enqueue = []persistence.QueueRow{newJob("x", "s", 2), newJob("old", "s", 2), newJob("y", "s", 2)}
			c.Dequeue = []string{"x", "old"}
		}))
		require.Equal(w, []string{"y"}, w.listJobs(nil, 0, "", 9))
	}},
	{"jobs of scopes however deep wait, are found and are taken out", func(w *testEnv) {
		x, y := newJob(deepID("x"), "s", 1), newJob(deepID("y"), "s", 2)
		x.Turn, y.Turn = "1", "2"
		w.createQueued(x, y)
		require.Equal(w, []persistence.QueueRow{x, y}, requireList[persistence.QueueRow](w)(w.QueueRows(w.ctx(), nil, 0, "", 9)))
		require.Equal(w, []persistence.QueueRow{y},
			requireList[persistence.QueueRow](w)(w.QueueFor(w.ctx(),
				persistence.QueueFilter{Service: "s"}, 1, "1", 9)))
		before, err := w.QueueBefore(w.ctx(), "a", y.JobID, 9)
		require.NoError(w, err)
		require.Equal(w, 1, before)
		w.mustCommit(changeCommit(appendCommit("a", 2), func(c *persistence.Commit) { c.Enqueue = []persistence.QueueRow{x} }))
		w.mustCommit(changeCommit(appendCommit("a", 3), func(c *persistence.Commit) { c.Dequeue = []string{x.JobID} }))
		require.Equal(w, []string{y.JobID}, w.listJobs(nil, 0, "", 9))
	}},
	{"a job waits once", func(w *testEnv) {
		w.createQueued(newJob("a", "s", 1))
		w.mustCommit(changeCommit(appendCommit("a", 2),
			func(c *persistence.Commit) { c.Enqueue = []persistence.QueueRow{newJob("a", "s", 5)} }))
		require.Equal(w, []persistence.QueueRow{newJob("a", "s", 1)},
			requireList[persistence.QueueRow](w)(w.QueueRows(w.ctx(), nil, 0, "", 9)))
	}},
	{"jobs of many tasks change in one batch", func(w *testEnv) {
		w.createQueued(newJob("a1", "s", 1))
		w.mustCommit(createCommit("b"), createCommit("c"))
		other := persistence.QueueRow{JobID: "b1", Task: "b", Service: "s", EnqueuedAt: 2}
		w.mustCommit(
			changeCommit(appendCommit("a", 2), func(c *persistence.Commit) { c.Dequeue = []string{"a1"} }),
			changeCommit(appendCommit("b", 2), func(c *persistence.Commit) { c.Enqueue = []persistence.QueueRow{other} }),
			appendCommit("c", 2),
		)
		require.Equal(w, []persistence.QueueRow{other}, requireList[persistence.QueueRow](w)(w.QueueRows(w.ctx(), nil, 0, "", 9)))
	}},
	{"a poller sees the jobs of its flow and those that ask for no label it has not", func(w *testEnv) {
		gpu, both := newJob("gpu", "s", 1), newJob("both", "s", 2)
		gpu.Labels, both.Labels = []string{"gpu"}, []string{"eu", `o"d'd`}
		w.createQueued(gpu, both, newJob("plain", "s", 3), newJob("other", "t", 3))
		elsewhere := persistence.QueueRow{JobID: "b1", Task: "b", Service: "s", EnqueuedAt: 4}
		w.mustCommit(changeCommit(createCommit("b"), func(c *persistence.Commit) {
			c.Create.FlowID, c.Enqueue = "elsewhere", []persistence.QueueRow{elsewhere}
		}))
		for _, tt := range []struct {
			filter persistence.QueueFilter
			want   []string
		}{
			{persistence.QueueFilter{Service: "s"}, []string{"plain", "b1"}},
			{persistence.QueueFilter{Service: "s", Labels: []string{"gpu"}}, []string{"gpu", "plain", "b1"}},
			{persistence.QueueFilter{Service: "s", Labels: []string{"eu"}}, []string{"plain", "b1"}},
			{persistence.QueueFilter{Service: "s", Labels: []string{`o"d'd`, "x", "eu", "gpu"}}, []string{"gpu", "both", "plain", "b1"}},
			{persistence.QueueFilter{Service: "s", FlowID: "elsewhere", Labels: []string{"gpu"}}, []string{"b1"}},
			{persistence.QueueFilter{Service: "s", FlowID: "nowhere"}, []string{}},
			{persistence.QueueFilter{Service: "t"}, []string{"other"}},
		} {
			list := []string{}
			for _, q := range requireList[persistence.QueueRow](w)(w.QueueFor(w.ctx(), tt.filter, 0, "", 9)) {
				list = append(list, q.JobID)
			}
			require.Equal(w, tt.want, list, "%+v", tt.filter)
		}
		page := requireList[persistence.QueueRow](w)(w.QueueFor(w.ctx(),
			persistence.QueueFilter{Service: "s", Labels: []string{"gpu"}}, 1, "gpu", 1))
		require.Equal(w, []persistence.QueueRow{newJob("plain", "s", 3)}, page)
		require.Equal(w, []string{"eu", `o"d'd`},
			requireList[persistence.QueueRow](w)(w.QueueRows(w.ctx(), []string{"s"}, 1, "gpu", 1))[0].Labels)
	}},
	{"the services that have jobs are known by name", func(w *testEnv) {
		services, err := w.QueueServices(w.ctx())
		require.NoError(w, err)
		require.Empty(w, services)
		w.createQueued(newJob("a", "t", 3), newJob("b", "s", 2), newJob("c", "t", 5))
		services, err = w.QueueServices(w.ctx())
		require.NoError(w, err)
		require.Equal(w, []string{"s", "t"}, services)
	}},
	{"it is known how many are before a job", func(w *testEnv) {
		w.createQueued(newJob("c", "s", 2), newJob("b", "t", 1), newJob("a", "s", 2), newJob("d", "s", 3))
		for id, want := range map[string]int{"a": 0, "b": 0, "c": 1, "d": 2} {
			n, err := w.QueueBefore(w.ctx(), "a", id, 9)
			require.NoError(w, err)
			require.Equal(w, want, n, id)
		}
		n, err := w.QueueBefore(w.ctx(), "a", "d", 1)
		require.NoError(w, err)
		require.Equal(w, 1, n, "no more are counted than are asked for")
		for task, id := range map[string]string{"a": "x", "x": "a"} {
			_, err := w.QueueBefore(w.ctx(), task, id, 9)
			require.ErrorIs(w, err, persistence.ErrNotFound)
		}
	}},
	{"its depth is known by service", func(w *testEnv) {
		w.createQueued(newJob("a", "s", 3), newJob("b", "s", 2), newJob("c", "t", 5))
		depth, err := w.QueueDepth(w.ctx())
		require.NoError(w, err)
		require.Equal(w, map[string]persistence.QueueStat{"s": {Waiting: 2, Tasks: 1, Oldest: 2},
			"t": {Waiting: 1, Tasks: 1, Oldest: 5}}, depth)
	}},
}
