package troupe

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

var long = strings.Repeat("long and <ä> \"quoted\" ", 40)

// report is the output of functions in the flows below: larger than all of their other values.
func report(in json.RawMessage) map[string]any {
	return map[string]any{"kind": "large", "n": 7, "of": in, "list": []any{long + "0", long + "1", long + "2"}, "text": long, "none": nil}
}

// manyFields are the fields of an input that is large although no field is.
var manyFields = func() string {
	var b strings.Builder
	for i := range 40 {
		fmt.Fprintf(&b, "f%02d: 'a short text, but one of many', ", i)
	}
	return b.String()
}()

// offloaded are flows that read large values in every possible way, and the operations on their
// tasks.
var offloaded = map[string]struct {
	definition string
	params     any
	signal     string // a key that is signaled with a large value
	answers    bool   // an approval is answered with a large value
}{
	"graph": {params: map[string]any{"text": long, "small": 1}, signal: "go", definition: `
start: make
result: done
nodes:
  make: {exec_type: local_func, func: report, prep: {input_key: $params.text}, post: {output_key: made, output_map: {texts: list, word: kind}}}
  which:
    kind: choice
    prep: {input_key: $shared.made}
    choice_cases:
      - {action: never, expr: "input.n > 7 || size(input.list) > 3"}
      - {action: never, expr: {eq: [$shared.made.text, "short"]}}
      - {action: each, expr: {and: [{eq: [$shared.made.kind, large]}, {exists: "$shared.made.list[2]"}, {in: [large, [$shared.word, large]]}]}}
  each: {kind: foreach, exec_type: local_func, func: echo, prep: {input_key: $shared.made.list}, post: {output_key: echoes}}
  wait: {kind: wait_event, params: {signal_key: $shared.go}, post: {output_key: said}}
  inside:
    kind: subflow
    post: {output_key: sub}
    subflow:
      start: in
      nodes:
        in: {exec_type: local_func, func: echo, prep: {input_key: $params.text}, post: {output_key: seen}}
  sides:
    kind: parallel
    prep: {input_map: {said: $shared.said, sub: $shared.sub, one: "$shared.texts[1]"}}
    parallel_execs:
      - {service: a, exec_type: local_func, func: echo}
      - {service: b, exec_type: local_func, func: report}
    post: {output_key: done}
edges:
  - {from: make, action: default, to: which}
  - {from: which, action: each, to: each}
  - {from: each, action: default, to: wait}
  - {from: wait, action: default, to: inside}
  - {from: inside, action: default, to: sides}
`},
	"dag": {params: map[string]any{"text": long, "few": []int{1, 2}}, definition: `
nodes:
  make: {func: report, prep: {input_key: $run.text}}
  expr:
    depends_on: [make]
    when: {expr: "deps.make.kind == 'large' && size(deps.make.list) == 3 && run.text.startsWith('long')"}
    func: echo
    prep: {input_map: {second: "$deps.make.list[1]", of: $deps.make.of, run: $run.few}}
  has: {depends_on: [make], when: {if: {make: {kind: large, list: []}}}, func: echo}
  hasnot: {depends_on: [make], when: {if_not: {make: {n: 7}}}, whenUnmet: skip, func: echo}
  each: {kind: fanout, depends_on: [make], each: {items: make.list}, func: echo}
  count: {kind: fanout, depends_on: [make], each: {count: make.n}, func: short}
  branch:
    kind: branch
    depends_on: [make, each]
    flow:
      nodes:
        deep: {func: report}
  all: {depends_on: [expr, has, each, count, branch], func: echo}
`},
	"graph-that-makes": {params: map[string]any{"texts": []string{long + "0", long + "1"}}, signal: "note", answers: true, definition: `
start: make
result: done
nodes:
  make: {exec_type: local_func, func: report, post: {output_key: made, output_map: {texts: list, word: text, kind: kind}}}
  part: {exec_type: local_func, func: none, prep: {input_key: $shared.made.text}}
  list: {kind: foreach, exec_type: local_func, func: none, prep: {input_key: $shared.made.list}}
  parts:
    exec_type: local_func
    func: none
    prep: {input_map: {text: $shared.made.text, word: $shared.word, kind: $shared.kind, all: $shared.texts, made: $shared.made, params: $params.texts}}
    post: {output_key: seen}
  many: {exec_type: local_func, func: none, prep: {input_map: {` + manyFields + `}}}
  ask: {kind: approval, params: {approval_key: $shared.made.answer}, post: {output_key: answer}}
  wait: {kind: wait_event, params: {signal_key: note}, post: {output_key: said}}
  inside:
    kind: subflow
    subflow:
      start: in
      nodes:
        in: {exec_type: local_func, func: none, prep: {input_key: $params.text}, post: {output_key: seen}}
  last: {exec_type: local_func, func: echo, prep: {input_map: {answer: $shared.answer, said: $shared.said, word: $shared.word}}, post: {output_map: {done: word}}}
edges:
  - {from: make, action: default, to: part}
  - {from: part, action: default, to: list}
  - {from: list, action: default, to: parts}
  - {from: parts, action: default, to: many}
  - {from: many, action: default, to: ask}
  - {from: ask, action: default, to: wait}
  - {from: wait, action: default, to: inside}
  - {from: inside, action: default, to: last}
`},
	"dag-that-makes": {params: map[string]any{"text": long, "few": []int{1, 2}}, definition: `
nodes:
  make: {func: report}
  expr: {depends_on: [make], prep: {expr: "{'twice': deps.make.text + deps.make.text, 'list': deps.make.list, 'n': deps.make.n}"}, func: none}
  text: {depends_on: [make], prep: {expr: "deps.make.text + 'x'"}, func: none}
  shared: {depends_on: [make], prep: {input_key: $shared.go}, func: none}
  branch:
    kind: branch
    depends_on: [make]
    prep: {expr: "{'text': deps.make.text + '!', 'few': run.few}"}
    flow:
      nodes:
        in: {func: none, prep: {expr: "run.text + '?'"}}
  leaf: {depends_on: [expr, text, shared, branch], func: report, prep: {input_key: $run.few}}
  out: {kind: output, prep: {expr: "{'text': deps.leaf.text + deps.leaf.text, 'n': deps.leaf.n, 'list': deps.leaf.list.map(x, x + '.')}"}}
`},
	"pgflow": {params: []string{long + "a", long + "b", long + "c"}, definition: `
profile: pgflow
nodes:
  each: {kind: fanout, each: {items: $run}, func: report}
  some: {kind: fanout, depends_on: [each], each: {items: each}, func: echo}
  after: {depends_on: [each, some], when: {if: {each: []}}, func: echo}
  out: {kind: output, inputs: {first: {ref: $deps.after}}}
`},
	"ork": {params: map[string]any{"text": long, "list": []any{long, long + "!"}}, definition: `
profile: ork
nodes:
  make: {func: report, input: {more: 1}}
  typed: {depends_on: [make], func: list, output_type: {type: object, fields: {list: [text]}}}
  wrong: {depends_on: [make], func: report, output_type: {type: object, fields: {kind: int}}}
  resize: {depends_on: [make], each: {items: make.list}, input: {width: 100}, func: echo}
  merge: {depends_on: [typed, resize], func: echo}
  always: {depends_on: [wrong], run_on: always, func: echo}
`},
}

// handleOffloaded registers the functions of the flows.
func (e *Engine) handleOffloaded() {
	e.HandleJSON("echo", func(_ context.Context, j Job) (json.RawMessage, error) { return j.Input, nil })
	e.HandleJSON("short", func(_ context.Context, _ Job) (json.RawMessage, error) { return json.RawMessage("1"), nil })
	e.HandleJSON("none", func(_ context.Context, _ Job) (json.RawMessage, error) { return json.RawMessage("null"), nil })
	e.Handle("list", func(context.Context, Job) (any, error) { return map[string]any{"list": []string{long, long}}, nil })
	e.Handle("report", func(_ context.Context, j Job) (any, error) { return report(j.Input), nil })
}

// carriedOut returns the result of a task, and the input and output of each attempt.
func (e *Engine) carriedOut(t *testing.T, name string) map[string]any {
	t.Helper()
	tt := offloaded[name]
	require.NoError(t, e.Publish(t.Context(), name, []byte(tt.definition)))
	id, err := e.Start(t.Context(), name, tt.params)
	require.NoError(t, err)
	if tt.signal != "" {
		require.NoError(t, e.Signal(t.Context(), id, tt.signal, map[string]string{"said": long}))
	}
	if tt.answers {
		_, err := e.AnswerApproval(t.Context(), e.askedOf(t, id),
			ApprovalAnswer{Value: must(json.Marshal(map[string]string{"because": long}))})
		require.NoError(t, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	result, err := e.Wait(ctx, id)
	require.NoError(t, err)
	task, err := e.Task(t.Context(), id)
	require.NoError(t, err)
	got := map[string]any{"status": result.Status, "error": result.Error,
		"result": decoded(t, result.Value), "params": decoded(t, task.Params),
		"answered": decoded(t, task.Result), "shared": decoded(t, task.Shared)}
	runs, err := e.Runs(t.Context(), id, Paging{Limit: 200})
	require.NoError(t, err)
	for _, r := range runs.Items {
		got[fmt.Sprint(r.Scope, "/", r.Node, "#", r.Visit, ".", r.Unit, r.Kind)] = []any{r.State,
			r.Error, decoded(t, r.Input), decoded(t, r.Output)}
	}
	got["id"] = id
	return got
}

// askedOf returns the approval that a task waits for.
func (e *Engine) askedOf(t *testing.T, task string) (id string) {
	t.Helper()
	require.Eventually(t, func() bool {
		asked, err := e.Approvals(t.Context(), ApprovalQuery{Text: task})
		require.NoError(t, err)
		if len(asked.Items) == 1 {
			id = asked.Items[0].ID
		}
		return id != ""
	}, 20*time.Second, 5*time.Millisecond)
	return id
}

func decoded(t *testing.T, v any) (value any) {
	t.Helper()
	text, err := json.Marshal(v)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &value))
	return value
}

func TestTasksHaveTheSameResultsWithAndWithoutAPayloadStore(t *testing.T) {
	onBoth(t, func(t *testing.T, store func() string) {
		plain, _ := offloading(t, store(), 0)
		away, folder := offloading(t, store(), 500)
		plain.handleOffloaded()
		away.handleOffloaded()
		for name := range offloaded {
			t.Run(name, func(t *testing.T) {
				want, got := plain.carriedOut(t, name), away.carriedOut(t, name)
				id := got["id"].(string)
				delete(want, "id")
				delete(got, "id")
				require.Equal(t, want, got)
				require.NotEmpty(t, objectsOf(t, folder, id))
				if strings.HasSuffix(name, "-that-makes") {
					require.EqualValues(t, flow.TaskCompleted, got["status"], got["error"])
				}
				rows, err := away.stores.Newest.Rows(t.Context(), id, 0, persistence.Part{Rows: 1000, Bytes: 10 << 20})
				require.NoError(t, err)
				for _, row := range rows {
					require.NotContains(t, string(row.Events), `quoted\" long and`, "a large value is in the store")
				}
			})
		}
	})
}
