package pocketflow_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/definition/compile"
	"github.com/troupe-engine/troupe/dialect/pocketflow"
	"github.com/troupe-engine/troupe/flow"
)

func planOf(t *testing.T, definition string) *flow.Plan {
	t.Helper()
	definition = strings.Replace(definition, "{", `{"profile":"pocketflow","on_error":"follow",`, 1)
	plan, problems := compile.Text([]byte(definition), flow.Limits{})
	require.NotNil(t, plan, problems)
	return plan
}

// line returns "NODE ATTEMPT STATUS BRANCH INPUT OUTPUT ERROR".
func line(r *pocketflow.Run) string {
	return strings.Join([]string{r.Node, fmt.Sprint(r.Attempt), r.Status, r.Branch, or(r.Input), or(r.Output), r.Error}, " ")
}

func or(text string) string {
	if text == "" {
		return "null"
	}
	return text
}

// lines returns the runs of a history in the form in which the scheduler stores them.
func lines(h *pocketflow.History, plan *flow.Plan) (list []string) {
	history := flow.NewHistory("task-1", plan)
	for i := range h.Events {
		history.Apply(&h.Events[i])
	}
	for _, n := range history.Runs {
		r := pocketflow.Run{Node: n.Address.Node, Attempt: n.Attempt, Status: string(n.Status),
			Branch: n.Branch, Input: string(n.Input), Output: string(n.Output), Error: n.Error}
		if parent, ok := flow.ParentOf(n.Scope); ok {
			r.Node, r.Branch = parent.Node, n.Address.Node
		}
		list = append(list, line(&r))
	}
	return list
}

func tellAll(t *testing.T, definition string, task pocketflow.Task, runs ...pocketflow.Run) *pocketflow.History {
	t.Helper()
	task.ID, task.CreatedAt = "task-1", 1000
	if task.UpdatedAt == 0 {
		task.UpdatedAt = 2000
	}
	for i := range runs {
		if runs[i].StartedAt == 0 {
			runs[i].StartedAt = int64(1001 + i)
		}
		runs[i].FinishedAt = runs[i].StartedAt
	}
	h, err := pocketflow.Tell("ver-1", planOf(t, definition), task, runs)
	require.NoError(t, err)
	folded := flow.NewState("task-1", planOf(t, definition))
	row := flow.Row{Format: flow.Format}
	row.Add(h.Events)
	require.NoError(t, flow.Fold(folded, row.Bytes()))
	require.Equal(t, flow.EncodeSnapshot(h.State).Bytes(), flow.EncodeSnapshot(folded).Bytes(),
		"a member that reads the events comes to the same state")
	return h
}

// told requires that all runs are converted unchanged, and that the task has the state of its row.
func told(t *testing.T, definition string, task pocketflow.Task, runs ...pocketflow.Run) *pocketflow.History {
	t.Helper()
	h := tellAll(t, definition, task, runs...)
	var want []string
	for i := range runs {
		want = append(want, line(&runs[i]))
	}
	require.Equal(t, want, lines(h, planOf(t, definition)))
	require.Empty(t, h.Missing)
	require.Zero(t, h.Untold)
	agrees(t, h, task)
	return h
}

func agrees(t *testing.T, h *pocketflow.History, task pocketflow.Task) {
	t.Helper()
	s := h.State
	var shared map[string]any
	require.NoError(t, json.Unmarshal([]byte(task.Shared), &shared))
	delete(shared, "_rt")
	want, err := json.Marshal(shared)
	require.NoError(t, err)
	require.JSONEq(t, string(want), string(s.Root.SharedJSON()))
	require.Equal(t, task.Node, s.Root.Cursor)
	if s.Status.Ended() {
		require.Equal(t, task.Status, string(s.Status))
		require.Equal(t, task.Action, s.Root.LastAction)
		require.EqualValues(t, 2000_000, s.EndedAt)
	}
}

const chain = `{"start":"a","nodes":{
	"a":{"kind":"executor","service":"x","max_retries":2,"post":{"output_key":"first","action_key":"go"}},
	"b":{"kind":"executor","service":"y","post":{"output_map":{"left":"l"}}},
	"q":{"kind":"executor","service":"z","exec_type":"queue","post":{"output_key":"queued"}},
	"t":{"kind":"timer","params":{"delay_ms":60000},"post":{"output_key":"timed"},"prep":{"input_key":"$params.v"}},
	"w":{"kind":"wait_event","params":{"signal_key":"$shared.flag","timeout_ms":90000},"post":{"output_key":"seen"}},
	"p":{"kind":"approval","params":{"approval_key":"$shared.ok"}},
	"c":{"kind":"choice","prep":{"input_key":"$params.v"},"choice_cases":[{"action":"big","expr":{"gt":["$params.v",1]}}],"post":{"output_key":"chosen"}}},
	"edges":[{"from":"a","action":"next","to":"b"},{"from":"a","action":"default","to":"c"},{"from":"b","action":"default","to":"q"},{"from":"q","action":"default","to":"t"},
		{"from":"t","action":"default","to":"w"},{"from":"w","action":"default","to":"p"},{"from":"p","action":"approved","to":"c"},{"from":"c","action":"big","to":"a"}]}`

func TestRunsOfEveryKindOfNodeAreConverted(t *testing.T) {
	h := told(t, chain, pocketflow.Task{Status: "completed", Params: `{"v":2}`, Action: "",
		Shared: `{"first":{"go":"end"},"left":1,"queued":"Q","timed":2,"flag":true,"seen":true,"ok":true,"chosen":2,"late":"word"}`},
		pocketflow.Run{Node: "a", Attempt: 1, Status: "error", Input: "2", Error: "boom", Worker: "w1", URL: "http://w1"},
		pocketflow.Run{Node: "a", Attempt: 2, Status: "ok", Input: "2", Output: `{"go":"next"}`, Worker: "w2", URL: "http://w2"},
		pocketflow.Run{Node: "b", Attempt: 1, Status: "ok", Input: `{"k":[1]}`, Output: `{"l":1}`},
		pocketflow.Run{Node: "q", Attempt: 1, Status: "ok", Output: `"Q"`, Worker: "queue", URL: "queue"},
		pocketflow.Run{Node: "t", Attempt: 1, Status: "ok", Input: "2"},
		pocketflow.Run{Node: "w", Attempt: 1, Status: "ok", Output: "true"},
		pocketflow.Run{Node: "p", Attempt: 1, Status: "ok", Output: "true", Action: "approved"},
		pocketflow.Run{Node: "c", Attempt: 1, Status: "ok", Input: "2", Action: "big"},
		pocketflow.Run{Node: "a", Attempt: 1, Status: "ok", Input: "2", Output: `{"go":"end"}`})
	require.EqualValues(t, 1000_000, h.State.CreatedAt)
	require.Equal(t, 8, h.State.Steps)
}

func TestAFailedTaskKeepsItsError(t *testing.T) {
	h := told(t, chain, pocketflow.Task{Status: "failed", Params: `{}`, Shared: `{}`},
		pocketflow.Run{Node: "a", Attempt: 1, Status: "error", Error: "one"},
		pocketflow.Run{Node: "a", Attempt: 2, Status: "error", Error: "two"},
		pocketflow.Run{Node: "a", Attempt: 3, Status: "error", Error: "three"})
	require.Equal(t, "three", h.State.Error)
}

// In the scheduler a failed node takes the same edge as after a success.
func TestAFailedNodeThatWasFollowedIsConverted(t *testing.T) {
	h := told(t,
		`{"start":"a","nodes":{"a":{"service":"x"},"b":{"service":"y","post":{"output_key":"o"}}},"edges":[{"from":"a","action":"default","to":"b"}]}`,
		pocketflow.Task{Status: "completed", Params: `{}`, Shared: `{"o":1}`},
		pocketflow.Run{Node: "a", Attempt: 1, Status: "error", Error: "no worker"},
		pocketflow.Run{Node: "b", Attempt: 1, Status: "ok", Output: "1"})
	require.Equal(t, 1, h.State.Followed)
}

const wide = `{"start":"s","nodes":{
	"s":{"kind":"parallel","parallel_services":["x","y","x"],"parallel_mode":"concurrent","prep":{"input_key":"$params.v"},"post":{"output_key":"agg","action_static":"next"}%s},
	"f":{"kind":"foreach","service":"x","prep":{"input_key":"$params.list"},"post":{"output_key":"mapped"}%s}},
	"edges":[{"from":"s","action":"next","to":"f"}]}`

func TestBranchesAndItemsAreConvertedWithTheirResult(t *testing.T) {
	definition := fmt.Sprintf(wide, "", "")
	told(t, definition, pocketflow.Task{Status: "completed", Params: `{"v":2,"list":[1,2]}`, Shared: `{"agg":[1,null,3],"mapped":[10,20]}`},
		pocketflow.Run{Node: "s", Attempt: 1, Status: "error", Sub: "branch_complete", Branch: "y", Input: "2", Error: "bad"},
		pocketflow.Run{Node: "s", Attempt: 1, Status: "ok", Sub: "branch_complete", Branch: "x", Input: "2", Output: "1"},
		pocketflow.Run{Node: "s", Attempt: 1, Status: "ok", Sub: "branch_complete", Branch: "x", Input: "2", Output: "3"},
		pocketflow.Run{Node: "s", Attempt: 1, Status: "error", Input: "2", Output: "[1,null,3]", Error: `{"y":"bad"}`},
		pocketflow.Run{Node: "f", Attempt: 1, Status: "ok", Sub: "item_complete", Branch: "1", Input: "2", Output: "20"},
		pocketflow.Run{Node: "f", Attempt: 1, Status: "ok", Sub: "item_complete", Branch: "0", Input: "1", Output: "10"},
		pocketflow.Run{Node: "f", Attempt: 1, Status: "ok", Input: "[1,2]", Output: "[10,20]"})
}

func TestBranchesThatSharedARunGetOneEach(t *testing.T) {
	task := pocketflow.Task{Status: "completed", Params: `{"v":2}`, Shared: `{"agg":[1,5,1]}`}
	h := tellAll(t, fmt.Sprintf(wide, "", ""), task,
		pocketflow.Run{Node: "s", Attempt: 1, Status: "ok", Sub: "branch_complete", Branch: "x", Input: "2", Output: "1"},
		pocketflow.Run{Node: "s", Attempt: 1, Status: "ok", Sub: "branch_complete", Branch: "y", Input: "2", Output: "5"},
		pocketflow.Run{Node: "s", Attempt: 1, Status: "ok", Input: "2", Output: "[1,5,1]"},
		pocketflow.Run{Node: "f", Attempt: 1, Status: "ok", Output: "[]"})
	agrees(t, h, task)
	require.Len(t, lines(h, planOf(t, fmt.Sprintf(wide, "", ""))), 5)
}

func TestAParallelThatFailedAtOnceIsConvertedFromItsBranches(t *testing.T) {
	definition := fmt.Sprintf(wide, `,"failure_strategy":"fail_fast"`, "")
	task := pocketflow.Task{Status: "completed", Params: `{"v":2}`, Shared: `{"_rt":{"pl:s":{"done":{"x":1}}},"agg":[1]}`}
	h := tellAll(t, definition, task,
		pocketflow.Run{Node: "s", Attempt: 1, Status: "ok", Sub: "branch_complete", Branch: "x", Input: "2", Output: "1"},
		pocketflow.Run{Node: "s", Attempt: 1, Status: "error", Sub: "branch_complete", Branch: "y", Input: "2", Error: "bad"},
		pocketflow.Run{Node: "f", Attempt: 1, Status: "ok", Output: "[]"})
	agrees(t, h, task)
	require.Empty(t, h.Missing)
}

const nested = `{"start":"s","nodes":{
	"s":{"kind":"subflow","post":{"output_key":"sub"}%s,"subflow":{"start":"a","nodes":{
		"a":{"kind":"executor","service":"x","post":{"output_key":"m","action_static":"go"}},
		"b":{"kind":"executor","service":"y","post":{"output_key":"n"}}},
		"edges":[{"from":"a","action":"go","to":"b"}]}},
	"e":{"kind":"executor","service":"z","post":{"output_key":"final"}}},
	"edges":[{"from":"s","action":"default","to":"e"},{"from":"e","action":"again","to":"s"}]}`

func TestChildrenOfASubflowAreConverted(t *testing.T) {
	child := func(name, input, output string) pocketflow.Run {
		return pocketflow.Run{Node: "s", Attempt: 1, Status: "ok", Sub: "sub_node_complete",
			Branch: name, Input: input, Output: output, Action: map[string]string{"a": "go"}[name]}
	}
	told(t, fmt.Sprintf(nested, ""), pocketflow.Task{Status: "completed", Params: `{}`, Shared: `{"sub":{"m":1,"n":2},"final":9}`},
		child("a", "3", "1"), child("b", "1", "2"), pocketflow.Run{Node: "e", Attempt: 1, Status: "ok", Output: "9"})
}

func TestRetriedChildrenAreConverted(t *testing.T) {
	child := func(status, output, text string) pocketflow.Run {
		return pocketflow.Run{Node: "s", Attempt: 1, Status: status, Sub: "sub_node_complete",
			Branch: "a", Output: output, Error: text, Action: map[string]string{"ok": "go"}[status]}
	}
	b := child("error", "", "bad input")
	b.Branch = "b"
	told(t, fmt.Sprintf(nested, `,"failure_strategy":"retry","max_retries":2`),
		pocketflow.Task{Status: "failed", Params: `{}`, Shared: `{"sub":{"m":1},"other":1}`},
		child("error", "", "one"), child("ok", "1", ""), b,
		pocketflow.Run{Node: "e", Attempt: 1, Status: "error", Error: "end"})
}

func TestATaskContinuesAtItsNode(t *testing.T) {
	ok := pocketflow.Run{Node: "a", Attempt: 1, Status: "ok", Output: `{"go":"next"}`}
	at := func(node string) pocketflow.Task {
		return pocketflow.Task{Status: "running", Params: `{"v":2}`, Node: node, Action: "next", Shared: `{"first":{"go":"next"}}`}
	}
	// next returns the decision of a member that loads the task.
	next := func(h *pocketflow.History, now int64) flow.Decision {
		d, err := flow.Decide(h.State, flow.Recover{}, flow.Env{Now: now, Member: "m"})
		require.NoError(t, err)
		return d
	}
	dispatched := func(d flow.Decision) (jobs []string) {
		for _, e := range d.Effects {
			if e, ok := e.(flow.Dispatch); ok {
				jobs = append(jobs, fmt.Sprint(e.Job.Address.Node, " ", e.Job.Attempt, " ", string(e.Job.Input)))
			}
		}
		return jobs
	}
	t.Run("that has not begun", func(t *testing.T) {
		h := told(t, chain, pocketflow.Task{Status: "pending", Params: `{"v":2}`, Node: "a", Shared: `{}`})
		require.Equal(t, []string{"a 1 null"}, dispatched(next(h, 3000_000)))
	})
	t.Run("between two nodes", func(t *testing.T) {
		h := told(t, chain, at("b"), ok)
		require.Equal(t, []string{"b 1 null"}, dispatched(next(h, 3000_000)))
	})
	t.Run("with a signal that nobody has seen", func(t *testing.T) {
		task := at("b")
		task.Shared = `{"first":{"go":"next"},"flag":"up"}`
		told(t, chain, task, ok)
	})
	t.Run("in a try", func(t *testing.T) {
		task := at("a")
		task.Shared, task.Action = `{}`, ""
		h := told(t, chain, task, pocketflow.Run{Node: "a", Attempt: 1, Status: "error", Input: "7", Error: "boom"})
		require.Equal(t, []string{"a 2 7"}, dispatched(next(h, 3000_000)))
	})
	t.Run("in the queue", func(t *testing.T) {
		task := at("q")
		task.Status, task.Shared = "waiting_queue", `{"first":{"go":"next"},"left":null}`
		h := tellAll(t, chain, task, ok, pocketflow.Run{Node: "b", Attempt: 1, Status: "ok",
			Output: "{}"}, pocketflow.Run{Node: "q", Attempt: 1, Status: "queued"})
		require.Equal(t, []string{"the run of the node q that was under way: its job is given again"}, h.Missing)
		require.Equal(t, 1, h.Untold)
		require.Equal(t, []string{"q 1 null"}, dispatched(next(h, 3000_000)))
	})
	t.Run("at a timer", func(t *testing.T) {
		task := at("t")
		task.Shared = `{"_rt":{"tm:t":{"start":1500000}},"first":{"go":"next"},"left":null,"queued":1}`
		h := told(t, chain, task, ok, pocketflow.Run{Node: "b", Attempt: 1, Status: "ok",
			Output: "{}"}, pocketflow.Run{Node: "q", Attempt: 1, Status: "ok", Output: "1"})
		require.EqualValues(t, 1560_000, h.State.Root.Step.Due)
		require.Equal(t, "2", string(h.State.Root.Step.Input))
	})
	t.Run("at an event with a timeout", func(t *testing.T) {
		task := at("w")
		task.Shared = `{"_rt":{"we:w":{"start":1500000}},"first":{"go":"next"},"left":null,"queued":1,"timed":2}`
		h := told(t, chain, task, ok, pocketflow.Run{Node: "b", Attempt: 1, Status: "ok",
			Output: "{}"}, pocketflow.Run{Node: "q", Attempt: 1, Status: "ok", Output: "1"},
			pocketflow.Run{Node: "t", Attempt: 1, Status: "ok", Input: "2"})
		require.EqualValues(t, 1590_000, h.State.Root.Step.Due)
	})
	t.Run("in the midst of branches", func(t *testing.T) {
		definition := fmt.Sprintf(wide, "", "")
		h := tellAll(t, definition, pocketflow.Task{Status: "running", Params: `{"v":2}`, Node: "s",
			Shared: `{"_rt":{"pl:s":{"done":{"x":1}}}}`},
			pocketflow.Run{Node: "s", Attempt: 1, Status: "ok", Sub: "branch_complete", Branch: "x", Input: "2", Output: "1"})
		require.Equal(t, []string{"1 runs of the node s, which was not over: it begins again"}, h.Missing)
		require.Equal(t, []string{"s 1 2", "s 1 2", "s 1 2"}, dispatched(next(h, 3000_000)))
	})
	t.Run("in a subflow", func(t *testing.T) {
		h := tellAll(t, fmt.Sprintf(nested, ""), pocketflow.Task{Status: "running", Params: `{}`,
			Node: "s", Shared: `{"_rt":{"sf:s":{"curr":"b","shared":{"m":1}}}}`},
			pocketflow.Run{Node: "s", Attempt: 1, Status: "ok", Sub: "sub_node_complete", Branch: "a", Output: "1", Action: "go"})
		require.Equal(t, []string{"1 runs of the subflow s, which was not over: it begins again"}, h.Missing)
		require.Equal(t, []string{"a 1 null"}, dispatched(next(h, 3000_000)))
	})
}

func TestACanceledTaskIsConverted(t *testing.T) {
	told(t, chain, pocketflow.Task{Status: "canceled", Params: `{}`, Shared: `{"first":{"go":"next"}}`, Action: "canceled"},
		pocketflow.Run{Node: "a", Attempt: 1, Status: "ok", Output: `{"go":"next"}`},
		pocketflow.Run{Node: "b", Attempt: 0, Status: "canceled"})
	h := tellAll(t, chain, pocketflow.Task{Status: "canceling", Params: `{}`, Shared: `{}`, Node: "a"})
	require.Equal(t, flow.TaskCanceled, h.State.Status, "what was to be canceled is")
}

// A task is imported even if its runs are inconsistent.
func TestOmittedRunsAreListedAndTheTaskFollowsItsRow(t *testing.T) {
	for name, tt := range map[string]struct {
		task pocketflow.Task
		runs []pocketflow.Run
		why  string
	}{
		"a node that is not there": {pocketflow.Task{Status: "completed", Params: `{}`, Shared: `{"x":1}`},
			[]pocketflow.Run{{Node: "gone", Attempt: 1, Status: "ok"}},
			`its 1 runs: one is of the node "gone", which its version does not have`},
		"a node where it was not": {pocketflow.Task{Status: "failed", Params: `{}`, Shared: `{"x":1}`},
			[]pocketflow.Run{{Node: "b", Attempt: 1, Status: "ok"}},
			`its 1 runs: one is of the node "b", where the task was not: it was at "a"`},
		"a run that never ended": {pocketflow.Task{Status: "running", Params: `{}`, Shared: `{"x":1}`, Node: "b"},
			[]pocketflow.Run{{Node: "a", Attempt: 1, Status: "running"},
				{Node: "b", Attempt: 1, Status: "ok"}},
			`its 2 runs: one of the node a is "running", and the task has gone on`},
	} {
		t.Run(name, func(t *testing.T) {
			h := tellAll(t, chain, tt.task, tt.runs...)
			require.Contains(t, h.Missing, tt.why)
			require.Equal(t, len(tt.runs), h.Untold)
			tt.task.Node = h.State.Root.Cursor
			agrees(t, h, tt.task)
		})
	}
	h := tellAll(t, chain, pocketflow.Task{Status: "completed", Params: `no object`, Shared: `[1]`})
	require.Len(t, h.Missing, 2)
	require.Equal(t, "{}", string(h.Params))
	_, err := pocketflow.Tell("v", planOf(t, chain), pocketflow.Task{Status: "running", Params: `{}`, Shared: `{}`, Node: "gone"}, nil)
	require.ErrorContains(t, err, `it is at the node "gone", which its version does not have`)
	_, err = pocketflow.Tell("v", planOf(t, chain), pocketflow.Task{Status: "asleep", Params: `{}`, Shared: `{}`}, nil)
	require.ErrorContains(t, err, `its status "asleep" is none`)
}
