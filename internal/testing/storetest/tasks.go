package storetest

import (
	"fmt"
	"math"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// createListed creates the tasks t1 to t6. t2 to t4 have the same creation time, and t1 was updated
// last.
func (w *testEnv) createListed() {
	w.Helper()
	require.NoError(w, w.CreateFlow(w.ctx(), persistence.Flow{ID: "f1", Slug: "one", Name: "One"}))
	require.NoError(w, w.CreateFlow(w.ctx(), persistence.Flow{ID: "f2", Name: "Two"}))
	w.createVersion("v1", "f1", 4, "")
	w.createVersion("v2", "f1", 5, "")
	w.createVersion("v3", "f2", 1, "")
	for _, t := range []struct {
		id, flow, version, status string
		at                        int64
		paused                    bool
		labels                    map[string]string
	}{
		{"t1", "f1", "v1", "running", 10, false, map[string]string{"team": "blue", `od"d'k\ey`: `v"al`}},
		{"t2", "f1", "v1", "completed", 20, false, map[string]string{"team": "blue", "env": "test"}},
		{"t3", "f1", "v2", "running", 20, true, map[string]string{"team": "red"}},
		{"t4", "f2", "v3", "failed", 20, false, nil},
		{"t5", "flow", "version", "pending", 30, false, map[string]string{"env": "blue"}},
	} {
		w.mustCommit(persistence.Commit{Task: t.id, Seq: 1, Events: []byte("[]"), At: t.at,
			Create:  &persistence.Create{FlowID: t.flow, VersionID: t.version, Labels: t.labels, CreatedAt: t.at},
			Columns: &persistence.Columns{Status: t.status, Paused: t.paused}})
	}
	w.mustCommit(persistence.Commit{Task: "t4", Seq: 1, At: 20,
		Columns: &persistence.Columns{Status: "failed", EndedAt: 70, Error: "p2: Card 100% refused",
			Cursor: "pay"}},
		persistence.Commit{Task: "t2", Seq: 1, At: 20, Columns: &persistence.Columns{Status: "completed", EndedAt: 50}},
		persistence.Commit{Task: "t5", Seq: 1, At: 30,
			Enqueue: []persistence.QueueRow{{JobID: "j1", Task: "t5", Service: "s", EnqueuedAt: 30},
				{JobID: "j2", Task: "t5", Service: "s", EnqueuedAt: 30, Turn: "2"}}},
		persistence.Commit{Task: "t3", Seq: 1, At: 20,
			Enqueue: []persistence.QueueRow{{JobID: "j3", Task: "t3", Service: "s",
				EnqueuedAt: 20}}, Rest: &persistence.Rest{Resting: true},
			Columns: &persistence.Columns{Status: "running", Paused: true, Waits: flow.WaitSignal}},
		persistence.Commit{Task: "t1", Seq: 1, At: 40,
			Columns: &persistence.Columns{Status: "running",
				Waits: flow.WaitApproval | flow.WaitTimer, Wait: firstWait}})
}

var yes, no = true, false

// firstWait is the wait of t1.
var firstWait = flow.Awaited{Kind: "approval", Scope: "sub#1", Node: "a\"sk", Visit: 2, Key: "go", Since: 11, Due: 99}

// filters maps names to filters and the tasks that they select, in order.
var filters = map[string]struct {
	filter persistence.TaskFilter
	want   []string
}{
	"everything, newest first":    {persistence.TaskFilter{}, []string{"t5", "t4", "t3", "t2", "t1"}},
	"newest update first":         {persistence.TaskFilter{ByUpdate: true}, []string{"t1", "t5", "t4", "t3", "t2"}},
	"newest update first, a page": {persistence.TaskFilter{ByUpdate: true, Offset: 1, Limit: 3}, []string{"t5", "t4", "t3"}},
	"a flow":                      {persistence.TaskFilter{FlowID: "f1"}, []string{"t3", "t2", "t1"}},
	"a flow by slug":              {persistence.TaskFilter{FlowSlug: "one"}, []string{"t3", "t2", "t1"}},
	"no such slug":                {persistence.TaskFilter{FlowSlug: "none"}, []string{}},
	"a version":                   {persistence.TaskFilter{VersionID: "v1"}, []string{"t2", "t1"}},
	"ids that begin alike":        {persistence.TaskFilter{IDPrefix: "t"}, []string{"t5", "t4", "t3", "t2", "t1"}},
	"an id":                       {persistence.TaskFilter{IDPrefix: "t3", Limit: 2}, []string{"t3"}},
	"no id begins so":             {persistence.TaskFilter{IDPrefix: "T"}, []string{}},
	"an id of a label":            {persistence.TaskFilter{IDPrefix: "t2", Labels: map[string]string{"team": "blue"}}, []string{"t2"}},
	"statuses":                    {persistence.TaskFilter{Statuses: []string{"running", "failed"}}, []string{"t4", "t3", "t1"}},
	"an unknown status":           {persistence.TaskFilter{Statuses: []string{"nope"}}, []string{}},
	"a label":                     {persistence.TaskFilter{Labels: map[string]string{"team": "blue"}}, []string{"t2", "t1"}},
	"all labels must match":       {persistence.TaskFilter{Labels: map[string]string{"team": "blue", "env": "test"}}, []string{"t2"}},
	"labels with odd characters":  {persistence.TaskFilter{Labels: map[string]string{`od"d'k\ey`: `v"al`}}, []string{"t1"}},
	"created from and to":         {persistence.TaskFilter{CreatedFrom: 20, CreatedTo: 30}, []string{"t4", "t3", "t2"}},
	"states, a page": {persistence.TaskFilter{Statuses: []string{"running", "failed",
		"completed"}, Offset: 1, Limit: 2}, []string{"t3", "t2"}},
	"states and a flow": {persistence.TaskFilter{Statuses: []string{"running", "failed"},
		FlowID: "f1", Limit: 5}, []string{"t3", "t1"}},
	"states after one": {persistence.TaskFilter{Statuses: []string{"running", "pending",
		"completed"}, Before: persistence.Spot{CreatedAt: 20, ID: "t3"}, Limit: 5}, []string{"t2", "t1"}},
	"a state twice": {persistence.TaskFilter{Statuses: []string{"failed", "failed"},
		Limit: 5}, []string{"t4"}},
	"a state and an unknown one": {persistence.TaskFilter{Statuses: []string{"failed", "nope"},
		Limit: 5}, []string{"t4"}},
	"a label after one": {persistence.TaskFilter{Labels: map[string]string{"team": "blue"},
		Before: persistence.Spot{CreatedAt: 20, ID: "t2"}, Limit: 5}, []string{"t1"}},
	"a label and a state": {persistence.TaskFilter{Labels: map[string]string{"team": "blue"},
		Statuses: []string{"running", "failed"}, Limit: 5}, []string{"t1"}},
	"a label, newest update": {persistence.TaskFilter{Labels: map[string]string{"team": "blue"},
		ByUpdate: true, Limit: 5}, []string{"t1", "t2"}},
	"paused":     {persistence.TaskFilter{Paused: &yes}, []string{"t3"}},
	"not paused": {persistence.TaskFilter{Paused: &no}, []string{"t5", "t4", "t2", "t1"}},
	"behind one": {persistence.TaskFilter{Before: persistence.Spot{CreatedAt: 30,
		ID: "t5"}}, []string{"t4", "t3", "t2", "t1"}},
	"behind one of a moment": {persistence.TaskFilter{Before: persistence.Spot{CreatedAt: 20,
		ID: "t3"}, Limit: 2}, []string{"t2", "t1"}},
	"behind one that is gone":     {persistence.TaskFilter{Before: persistence.Spot{CreatedAt: 20, ID: "t3x"}}, []string{"t3", "t2", "t1"}},
	"some flows":                  {persistence.TaskFilter{FlowIDs: []string{"f2", "flow"}}, []string{"t5", "t4"}},
	"a version by its number":     {persistence.TaskFilter{Version: 5}, []string{"t3"}},
	"a number that none can have": {persistence.TaskFilter{Version: math.MaxInt}, []string{}},
	"where the cursor is":         {persistence.TaskFilter{Node: "pay"}, []string{"t4"}},
	"a text of an error":          {persistence.TaskFilter{Text: "CARD 100% r"}, []string{"t4"}},
	"errors alike":                {persistence.TaskFilter{Failure: "p2: Card #% refused"}, []string{"t4"}},
	"no error is alike":           {persistence.TaskFilter{Failure: "p#: Card #% refused"}, []string{}},
	"no pattern":                  {persistence.TaskFilter{Text: "card_100"}, []string{}},
	"what a label says":           {persistence.TaskFilter{Text: "blue"}, []string{"t5", "t2", "t1"}},
	"the beginning of an id":      {persistence.TaskFilter{Text: "t3"}, []string{"t3"}},
	"ended from and to":           {persistence.TaskFilter{EndedFrom: 50, EndedTo: 70}, []string{"t2"}},
	"lasted from":                 {persistence.TaskFilter{LastedFrom: 50}, []string{"t4"}},
	"lasted to":                   {persistence.TaskFilter{LastedTo: 50}, []string{"t2"}},
	"the oldest first":            {persistence.TaskFilter{Oldest: true}, []string{"t1", "t2", "t3", "t4", "t5"}},
	"the oldest behind one": {persistence.TaskFilter{Oldest: true,
		Before: persistence.Spot{CreatedAt: 20, ID: "t2"}, Limit: 2}, []string{"t3", "t4"}},
	"the oldest of some states": {persistence.TaskFilter{Oldest: true,
		Statuses: []string{"running", "failed"}, Limit: 2}, []string{"t1", "t3"}},
	"the oldest with a label": {persistence.TaskFilter{Oldest: true,
		Labels: map[string]string{"team": "blue"}, Limit: 2}, []string{"t1", "t2"}},
	"the newest end first": {persistence.TaskFilter{ByEnd: true}, []string{"t4", "t2"}},
	"the newest end, behind one": {persistence.TaskFilter{ByEnd: true,
		Before: persistence.Spot{CreatedAt: 70, ID: "t4"}, Limit: 2}, []string{"t2"}},
	"the oldest end of a label": {persistence.TaskFilter{ByEnd: true, Oldest: true,
		Labels: map[string]string{"team": "blue"}, Limit: 2}, []string{"t2"}},
	"the newest end of states": {persistence.TaskFilter{ByEnd: true,
		Statuses: []string{"failed", "completed"}, Limit: 2}, []string{"t4", "t2"}},
	"those that ended lately": {persistence.TaskFilter{EndedFrom: 60, Limit: 2}, []string{"t4"}},
	"a page of what has ended": {persistence.TaskFilter{EndedFrom: 1, EndedTo: 1000, Offset: 1,
		Limit: 1}, []string{"t2"}},
	"the oldest that ended": {persistence.TaskFilter{EndedFrom: 1, Oldest: true, Limit: 1},
		[]string{"t2"}},
	"what has ended of a flow": {persistence.TaskFilter{EndedFrom: 1, FlowID: "f1", Limit: 5},
		[]string{"t2"}},
	"states of a flow": {persistence.TaskFilter{FlowID: "f1",
		Statuses: []string{"failed", "canceled", "completed"}, Limit: 5}, []string{"t2"}},
	"what goes on of a flow": {persistence.TaskFilter{FlowID: "f1",
		Statuses: []string{"running", "pending"}, Limit: 5}, []string{"t3", "t1"}},
	"a label in a time": {persistence.TaskFilter{Labels: map[string]string{"team": "blue"},
		CreatedFrom: 11, CreatedTo: 21}, []string{"t2"}},
	"a label by its end": {persistence.TaskFilter{Labels: map[string]string{"team": "blue"},
		EndedFrom: 1, Limit: 5}, []string{"t2"}},
	"what is in it, of a flow": {persistence.TaskFilter{Queued: "s", FlowID: "f1", Limit: 5},
		[]string{"t3"}},
	"what waits for some of it": {persistence.TaskFilter{Waits: flow.WaitTimer | flow.WaitSignal},
		[]string{"t3", "t1"}},
	"what waits, oldest first": {persistence.TaskFilter{Waits: flow.WaitSignal | flow.WaitApproval,
		Oldest: true, Limit: 5}, []string{"t1", "t3"}},
	"what waits for an approval": {persistence.TaskFilter{Waits: flow.WaitApproval, FlowID: "f1",
		Statuses: []string{"running", "failed"}, Limit: 5}, []string{"t1"}},
	"what is in a queue": {persistence.TaskFilter{Queued: "s"}, []string{"t5", "t3"}},
	"what is in it, a page": {persistence.TaskFilter{Queued: "s",
		Statuses: []string{"running", "pending"}, Oldest: true, Limit: 1}, []string{"t3"}},
	"what is in no queue":     {persistence.TaskFilter{Queued: "t"}, []string{}},
	"what waits for somebody": {persistence.TaskFilter{Waits: flow.WaitManual}, []string{}},
	"through one": {persistence.TaskFilter{Through: persistence.Spot{CreatedAt: 20,
		ID: "t3"}}, []string{"t5", "t4", "t3"}},
	"behind one, through another": {persistence.TaskFilter{Before: persistence.Spot{CreatedAt: 30,
		ID: "t5"}, Through: persistence.Spot{CreatedAt: 20, ID: "t3"}, Limit: 5}, []string{"t4", "t3"}},
	"the oldest through one": {persistence.TaskFilter{Oldest: true,
		Through: persistence.Spot{CreatedAt: 20, ID: "t2"}, Limit: 5}, []string{"t1", "t2"}},
	"behind all":      {persistence.TaskFilter{Before: persistence.Spot{CreatedAt: 1, ID: "t0"}}, []string{}},
	"a page":          {persistence.TaskFilter{Offset: 1, Limit: 2}, []string{"t4", "t3"}},
	"an offset alone": {persistence.TaskFilter{Offset: 3}, []string{"t2", "t1"}},
	"several at once": {persistence.TaskFilter{FlowSlug: "one", VersionID: "v1", Statuses: []string{"running", "completed"},
		Labels: map[string]string{"team": "blue"}, CreatedTo: 21, Paused: &no,
		Before: persistence.Spot{CreatedAt: 20, ID: "t4"}, ByUpdate: true, Limit: 5}, []string{"t1", "t2"}},
}

var tasks = []storeBehavior{
	{"the newest tasks of each flow are told by its id", func(w *testEnv) {
		w.createListed()
		marks := requireList[persistence.TaskMark](w)(w.NewestOf(w.ctx(), []string{"f2", "f1", "none", "no\x00text", "f1"}, 2))
		require.Equal(w, []persistence.TaskMark{{Flow: "f1", ID: "t3", Status: "running",
			CreatedAt: 20}, {Flow: "f1", ID: "t2", Status: "completed", CreatedAt: 20},
			{Flow: "f2", ID: "t4", Status: "failed", CreatedAt: 20}}, marks)
		require.Empty(w, requireList[persistence.TaskMark](w)(w.NewestOf(w.ctx(), nil, 2)))
	}},
	{"a filter picks tasks", func(w *testEnv) {
		w.createListed()
		for name, tt := range filters {
			list := requireList[persistence.TaskRow](w)(w.ListTasks(w.ctx(), tt.filter))
			ids := []string{}
			for _, t := range list {
				ids = append(ids, t.ID)
			}
			require.Equal(w, tt.want, ids, name)
		}
	}},
	{"counting ignores order and paging", func(w *testEnv) {
		w.createListed()
		for name, tt := range filters {
			tt.filter.Offset, tt.filter.Limit = 0, 0
			n, err := w.CountTasks(w.ctx(), tt.filter)
			require.NoError(w, err)
			require.Len(w, requireList[persistence.TaskRow](w)(w.ListTasks(w.ctx(), tt.filter)), n, name)
			tt.filter.Offset, tt.filter.Limit, tt.filter.ByUpdate = 1, 1, true
			same, err := w.CountTasks(w.ctx(), tt.filter)
			require.NoError(w, err)
			require.Equal(w, n, same, name)
		}
	}},
	{"tasks that a filter picks are counted by what they have", func(w *testEnv) {
		w.createListed()
		for name, tt := range map[string]struct {
			filter persistence.TaskFilter
			by     persistence.By
			want   map[string]int
		}{
			"status": {persistence.TaskFilter{FlowID: "f1"}, persistence.By{},
				map[string]int{"running": 2, "completed": 1}},
			"status of all": {persistence.TaskFilter{}, persistence.By{},
				map[string]int{"running": 2, "completed": 1, "failed": 1, "pending": 1}},
			"status of some": {persistence.TaskFilter{Statuses: []string{"failed", "pending",
				"canceled"}}, persistence.By{}, map[string]int{"failed": 1, "pending": 1}},
			"status of no status": {persistence.TaskFilter{Statuses: []string{"nope"}},
				persistence.By{}, map[string]int{}},
			"status of flows": {persistence.TaskFilter{FlowIDs: []string{"f1", "f2"},
				CreatedFrom: 20}, persistence.By{}, map[string]int{"running": 1, "completed": 1,
				"failed": 1}},
			"status of a slug": {persistence.TaskFilter{FlowSlug: "one", CreatedTo: 20},
				persistence.By{}, map[string]int{"running": 1}},
			"status of a label": {persistence.TaskFilter{Labels: map[string]string{"team": "blue"}},
				persistence.By{}, map[string]int{"running": 1, "completed": 1}},
			"status of labels": {persistence.TaskFilter{Labels: map[string]string{"team": "blue",
				"env": "test"}}, persistence.By{}, map[string]int{"completed": 1}},
			"a status of a label": {persistence.TaskFilter{Labels: map[string]string{"team": "blue"},
				Statuses: []string{"completed"}}, persistence.By{}, map[string]int{"completed": 1}},
			"label and flow": {persistence.TaskFilter{Labels: map[string]string{"team": "blue"},
				FlowID: "f1"}, persistence.By{}, map[string]int{"running": 1, "completed": 1}},
			"status of what waits":  {persistence.TaskFilter{Waits: flow.AllWaits}, persistence.By{}, map[string]int{"running": 2}},
			"status of what ended":  {persistence.TaskFilter{EndedFrom: 50}, persistence.By{}, map[string]int{"completed": 1, "failed": 1}},
			"status of what failed": {persistence.TaskFilter{Text: "refused"}, persistence.By{}, map[string]int{"failed": 1}},
			"flow":                  {persistence.TaskFilter{}, persistence.By{Flow: true}, map[string]int{"f1": 3, "f2": 1, "flow": 1}},
			"label":                 {persistence.TaskFilter{}, persistence.By{Label: "team"}, map[string]int{"blue": 2, "red": 1, "": 2}},
			"label of a label": {persistence.TaskFilter{Labels: map[string]string{"team": "blue"}},
				persistence.By{Label: "env"}, map[string]int{"test": 1, "": 1}},
			"status of no tasks": {persistence.TaskFilter{FlowID: "no"}, persistence.By{}, map[string]int{}},
		} {
			for _, most := range []int{0, 5} { // no more tasks than the limit
				tt.filter.Most = most
				groups, err := w.CountTasksBy(w.ctx(), tt.filter, tt.by)
				require.NoError(w, err)
				want := map[string]persistence.Group{}
				for what, n := range tt.want {
					want[what] = persistence.Group{Count: n}
				}
				require.Equal(w, want, groups, name)
			}
		}
		few, err := w.CountTasks(w.ctx(), persistence.TaskFilter{Most: 2})
		require.NoError(w, err)
		require.Equal(w, 2, few, "counting ends there")
		one, err := w.CountTasksBy(w.ctx(), persistence.TaskFilter{Most: 1}, persistence.By{Flow: true})
		require.NoError(w, err)
		require.NotEmpty(w, one)
		for _, group := range one {
			require.Equal(w, persistence.Group{Count: 1, More: true}, group)
		}
	}},
	{"each state is counted up to a bound of its own", func(w *testEnv) {
		require.NoError(w, w.CreateFlow(w.ctx(), persistence.Flow{ID: "f1", Slug: "one"}))
		w.createVersion("v1", "f1", 1, "")
		blue := map[string]string{"team": "blue"}
		for i, status := range []string{"completed", "completed", "completed", "failed", "failed",
			"canceled", "running", "running", "running"} {
			c := persistence.Columns{Status: status}
			if status != "running" {
				c.EndedAt = 50
			}
			w.mustCommit(persistence.Commit{Task: fmt.Sprintf("t%d", i), Seq: 1,
				Events: []byte("[]"), At: 50, Columns: &c, Create: &persistence.Create{FlowID: "f1",
					VersionID: "v1", CreatedAt: int64(i), Labels: blue}})
		}
		want := map[string]persistence.Group{"completed": {Count: 2, More: true},
			"failed": {Count: 2}, "canceled": {Count: 1}, "running": {Count: 2, More: true}}
		for _, f := range []persistence.TaskFilter{{Most: 2}, {Most: 2, FlowID: "f1"},
			{Most: 2, FlowSlug: "one"}, {Most: 2, FlowIDs: []string{"f0", "f1"}},
			{Most: 2, CreatedFrom: -1, CreatedTo: 9}} {
			groups, err := w.CountTasksBy(w.ctx(), f, persistence.By{})
			require.NoError(w, err)
			require.Equal(w, want, groups, "%+v", f)
		}
		// retried
		w.mustCommit(persistence.Commit{Task: "t3", Seq: 1, At: 60, Columns: &persistence.Columns{Status: "running"}},
			persistence.Commit{Task: "t8", Seq: 1, At: 60, Columns: &persistence.Columns{Status: "failed", EndedAt: 60}})
		groups, err := w.CountTasksBy(w.ctx(), persistence.TaskFilter{Most: 9, Labels: blue}, persistence.By{})
		require.NoError(w, err)
		require.Equal(w, map[string]persistence.Group{"completed": {Count: 3}, "failed": {Count: 2},
			"canceled": {Count: 1}, "running": {Count: 3}}, groups, "labels follow the state")
		few, err := w.CountTasksBy(w.ctx(), persistence.TaskFilter{Most: 2, Labels: blue}, persistence.By{})
		require.NoError(w, err)
		require.NotEmpty(w, few)
		for status, group := range few {
			require.LessOrEqual(w, group.Count, 2, status)
			require.True(w, group.More || group.Count == groups[status].Count, status)
		}
	}},
	{"tasks are counted by status", func(w *testEnv) {
		w.createListed()
		counts, err := w.CountTasksBy(w.ctx(), persistence.TaskFilter{}, persistence.By{})
		require.NoError(w, err)
		require.Equal(w, map[string]persistence.Group{"running": {Count: 2},
			"completed": {Count: 1}, "failed": {Count: 1}, "pending": {Count: 1}}, counts)
	}},
	{"tasks that have not ended are counted by shard", func(w *testEnv) {
		ended := changeCommit(createCommit("ended"),
			func(c *persistence.Commit) { c.Columns = &persistence.Columns{Status: "completed", EndedAt: 5} })
		w.mustCommit(createCommit("a"), createCommit("b"), createCommit("rests"), ended)
		w.mustCommit(persistence.Commit{Task: "rests", Seq: 1, Rest: &persistence.Rest{Resting: true, Due: 9}})
		want := map[int]persistence.ShardTasks{}
		for _, id := range []string{"a", "b", "rests"} {
			want[persistence.ShardOf(id)] = want[persistence.ShardOf(id)].With(id == "rests")
		}
		counts, err := w.CountByShard(w.ctx())
		require.NoError(w, err)
		require.Equal(w, want, counts)
	}},
	{"params are read with their task alone", func(w *testEnv) {
		w.mustCommit(changeCommit(createCommit("a"), func(c *persistence.Commit) { c.Create.Params = []byte(`{"p":1}`) }))
		for _, row := range requireList[persistence.TaskRow](w)(w.ListTasks(w.ctx(), persistence.TaskFilter{})) {
			require.Nil(w, row.Params)
		}
		t, err := w.Task(w.ctx(), "a")
		require.NoError(w, err)
		require.JSONEq(w, `{"p":1}`, string(t.Params))
	}},
	{"a task is listed with its flow and version, when they exist", func(w *testEnv) {
		w.createListed()
		t, err := w.Task(w.ctx(), "t1")
		require.NoError(w, err)
		require.Equal(w, &persistence.TaskRow{ID: "t1", FlowID: "f1", VersionID: "v1", FlowName: "One", FlowSlug: "one", VersionNumber: 4,
			Columns: persistence.Columns{Status: "running",
				Waits: flow.WaitApproval | flow.WaitTimer, Wait: firstWait},
			Labels: map[string]string{"team": "blue", `od"d'k\ey`: `v"al`}, CreatedAt: 10, UpdatedAt: 40}, t)
		t, err = w.Task(w.ctx(), "t5")
		require.NoError(w, err)
		require.Equal(w, "flow", t.FlowID)
		require.Empty(w, fmt.Sprint(t.FlowName, t.FlowSlug))
		_, err = w.Task(w.ctx(), "nope")
		require.ErrorIs(w, err, persistence.ErrNotFound)
	}},
}

func endCommit(id string, at int64) persistence.Commit {
	return persistence.Commit{Task: id, Seq: 1, Columns: &persistence.Columns{Status: "completed", EndedAt: at}}
}

var retention = []storeBehavior{
	{"tasks that ended long ago are deleted, the oldest first", func(w *testEnv) {
		w.mustCommit(createCommit("a"), createCommit("b"), createCommit("c"), createCommit("d"), createCommit("e"))
		w.mustCommit(endCommit("a", 30), endCommit("b", 10), endCommit("c", 20), endCommit("d", 40))
		require.Equal(w, []persistence.TaskEnd{{ID: "b", EndedAt: 10}, {ID: "c", EndedAt: 20}},
			requireList[persistence.TaskEnd](w)(w.EndedBetween(w.ctx(), 0, 40, 2)))
		require.Equal(w, []persistence.TaskEnd{{ID: "c", EndedAt: 20}, {ID: "a", EndedAt: 30}},
			requireList[persistence.TaskEnd](w)(w.EndedBetween(w.ctx(), 20, 40, 9)))
		n, err := w.DeleteEnded(w.ctx(), 40, 2)
		require.NoError(w, err)
		require.Equal(w, 2, n)
		require.Nil(w, w.loadTask("b"))
		require.Nil(w, w.loadTask("c"))
		require.NotNil(w, w.loadTask("a"))
		n, err = w.DeleteEnded(w.ctx(), 40, 2)
		require.NoError(w, err)
		require.Equal(w, 1, n)
		require.NotNil(w, w.loadTask("d"))
		require.NotNil(w, w.loadTask("e"))
	}},
	{"a deleted task is unknown to the owner that wrote its last row", func(w *testEnv) {
		w.mustCommit(createCommit("a"), createCommit("b"))
		w.mustCommit(appendCommit("a", 2), appendCommit("b", 2))
		w.mustCommit(changeCommit(appendCommit("a", 3),
			func(c *persistence.Commit) { c.Columns = &persistence.Columns{Status: "failed", EndedAt: 10} }))
		w.mustCommit(appendCommit("a", 4), appendCommit("b", 3))
		n, err := w.DeleteEnded(w.ctx(), 40, 9)
		require.NoError(w, err)
		require.Equal(w, 1, n)
		answers := w.commitBatch(appendCommit("a", 5), appendCommit("b", 4))
		require.ErrorIs(w, answers[0], persistence.ErrUnknown)
		require.NoError(w, answers[1])
		require.Empty(w, requireList[persistence.Row](w)(w.Rows(w.ctx(), "a", 0, rowsPart(9))))
	}},
	{"a task that goes on after its end is unfinished, and kept", func(w *testEnv) {
		w.mustCommit(createCommit("a"))
		w.mustCommit(endCommit("a", 10))
		w.mustCommit(changeCommit(appendCommit("a", 2),
			func(c *persistence.Commit) { c.Columns = &persistence.Columns{Status: "running", Steps: 1} }))
		t, err := w.Task(w.ctx(), "a")
		require.NoError(w, err)
		require.Equal(w, persistence.Columns{Status: "running", Steps: 1}, t.Columns)
		require.Equal(w, []string{"a"}, w.listUnfinished())
		n, err := w.DeleteEnded(w.ctx(), 40, 9)
		require.NoError(w, err)
		require.Zero(w, n)
		w.mustCommit(changeCommit(restCommit("a", 5), func(c *persistence.Commit) { c.Seq = 2 }))
		require.Equal(w, []persistence.Wake{{Task: "a", Due: 5}}, w.dueWakes(9))
	}},
	{"a flow is deleted with its versions and tasks, in parts", func(w *testEnv) {
		require.NoError(w, w.CreateFlow(w.ctx(), persistence.Flow{ID: "other", Slug: "slug"}))
		w.createVersion("other1", "other", 1, "published")
		other := createCommit("x")
		other.Create.FlowID, other.Create.VersionID = "other", "other1"
		w.createQueued(newJob("j", "s", 1))
		w.mustCommit(createCommit("b"), createCommit("c"), other)
		w.mustCommit(restCommit("a", 5), restCommit("b", 6))
		w.appendLog(newLogChunk("a", "j", 1, "text\n"))
		for _, want := range []int{2, 1, 0} {
			n, err := w.DeleteFlow(w.ctx(), "flow", 2)
			require.NoError(w, err)
			require.Equal(w, want, n)
			_, err = w.Flow(w.ctx(), "flow")
			require.Equal(w, want == 2, err == nil, "it goes with the last task")
		}
		require.Empty(w, requireList[persistence.Row](w)(w.Rows(w.ctx(), "a", 0, rowsPart(9))))
		require.Empty(w, w.listJobs(nil, 0, "", 9))
		require.Empty(w, w.dueWakes(99))
		require.Empty(w, w.readTexts("a", "j"))
		require.ErrorIs(w, w.commitBatch(appendCommit("a", 2))[0], persistence.ErrUnknown)
		require.Empty(w, w.listVersions("flow"))
		require.ErrorIs(w, w.commitBatch(createCommit("late"))[0], persistence.ErrNoVersion, "nothing of it begins any more")
		require.ErrorIs(w, w.CreateVersion(w.ctx(), persistence.Version{ID: "late", FlowID: "flow"}), persistence.ErrNotFound)
		require.NotNil(w, w.loadTask("x"))
		require.Equal(w, []string{"other1"}, w.listVersions("other"))
		_, err := w.DeleteFlow(w.ctx(), "other", 2)
		require.NoError(w, err)
		_, err = w.FlowBySlug(w.ctx(), "slug")
		require.ErrorIs(w, err, persistence.ErrNotFound)
	}},
	{"with a task everything of it is deleted", func(w *testEnv) {
		w.createQueued(newJob("j", "s", 1))
		w.mustCommit(createCommit("b"))
		w.mustCommit(restCommit("a", 5), restCommit("b", 6))
		w.appendLog(newLogChunk("a", "j", 1, "text\n"))
		w.mustCommit(endCommit("a", 3))
		n, err := w.DeleteEnded(w.ctx(), 4, 10)
		require.NoError(w, err)
		require.Equal(w, 1, n)
		require.Empty(w, requireList[persistence.Row](w)(w.Rows(w.ctx(), "a", 0, rowsPart(9))))
		require.Empty(w, w.listJobs(nil, 0, "", 9))
		require.Equal(w, []persistence.Wake{{Task: "b", Due: 6}}, w.dueWakes(99))
		require.Empty(w, w.readTexts("a", "j"))
		require.ErrorIs(w, w.commitBatch(appendCommit("a", 2))[0], persistence.ErrUnknown)
		w.mustCommit(createCommit("a"))
	}},
}
