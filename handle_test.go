package troupe_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe"
	"github.com/troupe-engine/troupe/definition/define"
	"github.com/troupe-engine/troupe/flow"
)

func opened(t *testing.T) *troupe.Engine {
	t.Helper()
	e, err := troupe.Open(t.Context(), troupe.Config{Store: "sqlite:" + filepath.Join(t.TempDir(), "x.db")})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	return e
}

// logged waits until the given number of lines of a task can be read, because a slow store returns
// the last ones later.
func logged(t *testing.T, e *troupe.Engine, id string, lines int) (page *troupe.Page[troupe.LogEntry]) {
	t.Helper()
	require.Eventually(t, func() bool {
		var err error
		page, err = e.Logs(t.Context(), id, troupe.LogQuery{})
		return err == nil && len(page.Items) >= lines
	}, time.Minute, 10*time.Millisecond)
	return page
}

// runs publishes a flow and returns the result of a task.
func runs(t *testing.T, e *troupe.Engine, definition string, params any) *troupe.Result {
	t.Helper()
	require.NoError(t, e.Publish(t.Context(), "f", []byte(definition)))
	id, err := e.Start(t.Context(), "f", params)
	require.NoError(t, err)
	result, err := e.Wait(t.Context(), id)
	require.NoError(t, err)
	return result
}

type offer struct {
	Amount int    `json:"amount"`
	Word   string `json:"word,omitempty"`
}

// judge selects the next node by a field of its output.
func judge(_ context.Context, in offer) (offer, error) {
	if in.Word = "yes"; in.Amount > 100 {
		in.Word = "no"
	}
	return in, nil
}

func TestATypedFunctionWorksTheSameInBothModes(t *testing.T) {
	e := opened(t)
	troupe.Handle(e, "judge", judge)
	troupe.Handle(e, "say", func(_ context.Context, in offer) (string, error) { return "it is " + in.Word, nil })

	graph := `{"start":"a","result":"said","nodes":{
		"a":{"func":"judge","post":{"output_key":"offer","action_key":"word"}},
		"b":{"func":"say","prep":{"input_key":"$shared.offer"},"post":{"output_key":"said"}},
		"c":{"func":"say","params":{"word":"too much"},"post":{"output_key":"said"}}},
		"edges":[{"from":"a","action":"yes","to":"b"},{"from":"a","action":"no","to":"c"}]}`
	require.JSONEq(t, `"it is yes"`, string(runs(t, e, graph, offer{Amount: 7}).Value))
	require.JSONEq(t, `"it is too much"`, string(runs(t, e, graph, offer{Amount: 700}).Value))

	dag := `{"mode":"dag","nodes":{
		"a":{"func":"judge"},
		"b":{"func":"say","depends_on":["a"],"prep":{"input_key":"$deps.a"}}}}`
	require.JSONEq(t, `{"b":"it is yes"}`, string(runs(t, e, dag, offer{Amount: 7}).Value))
}

func TestAnInputOfTheWrongTypeFailsTheStepWithoutRetry(t *testing.T) {
	e := opened(t)
	calls := 0
	troupe.Handle(e, "judge", func(ctx context.Context, in offer) (offer, error) { calls++; return judge(ctx, in) })
	result := runs(t, e,
		`{"start":"hold","on_error":"fail","nodes":{"hold":{"func":"judge","retry":{"max_attempts":4}}}}`,
		map[string]any{"amount": "much"})
	require.Equal(t, flow.TaskFailed, result.Status)
	require.Contains(t, result.Error, "function judge, node hold: field amount of its params is "+
		"a text, the function takes a whole number (int)")
	require.Zero(t, calls)
}

func TestErrorsOfTypedFunctionsAreRetriedUnlessFatal(t *testing.T) {
	for name, tt := range map[string]struct {
		err   error
		calls int
	}{"an error": {errors.New("no luck"), 3}, "a fatal one": {troupe.Fatal(errors.New("no luck")), 1}} {
		t.Run(name, func(t *testing.T) {
			e := opened(t)
			var attempts []int
			keys := map[string]bool{}
			troupe.Handle(e, "f", func(ctx context.Context, _ any) (any, error) {
				j := troupe.JobFrom(ctx)
				attempts = append(attempts, j.Attempt)
				keys[j.Key()] = true
				return nil, tt.err
			})
			require.Contains(t, runs(t, e,
				`{"start":"a","on_error":"fail","nodes":{"a":{"func":"f","retry":{"max_attempts":3}}}}`,
				nil).Error, "no luck")
			require.Len(t, attempts, tt.calls)
			require.Len(t, keys, 1, "its key is the same for all of them")
		})
	}
}

func TestInvalidFunctionsAreReportedAtRegistration(t *testing.T) {
	e := opened(t)
	troupe.Handle(e, "judge", judge)
	require.PanicsWithValue(t,
		`troupe: the function "judge": there is a function of that name already`,
		func() { troupe.Handle(e, "judge", judge) })
	require.PanicsWithValue(t, `troupe: the function "f": its input cannot be read from JSON: it is a func()`, func() {
		troupe.Handle(e, "f", func(context.Context, func()) (any, error) { return nil, nil })
	})
	raw := func(context.Context, troupe.Job) (any, error) { return nil, nil }
	require.PanicsWithValue(t, `troupe: the function "judge": there is a function of that name already`, func() { e.Handle("judge", raw) })
	e.Handle("raw", raw)
	require.PanicsWithValue(t, `troupe: the function "raw": there is a function of that name already`, func() { e.Handle("raw", raw) })
	require.Panics(t, func() {
		e.HandleJSON("raw", func(context.Context, troupe.Job) (json.RawMessage, error) { return nil, nil })
	})
	troupe.Handle(e, "upper", judge) // replaces a demo function
}

func TestPublishingAFlowWithAnUnregisteredFunctionWarns(t *testing.T) {
	e := opened(t)
	definition := []byte("start: a\nnodes: {a: {func: jugde}}\n")
	published, err := e.Apply(t.Context(), "f", definition)
	require.NoError(t, err)
	require.Len(t, published.Warnings, 1)
	require.Contains(t, published.Warnings[0].String(), "nodes.a.func: this member has no function jugde: it has ")
	troupe.Handle(e, "judge", judge)
	problems, err := e.Validate(t.Context(), definition)
	require.NoError(t, err)
	require.Contains(t, problems[0].String(), "did you mean judge?")
	_, err = e.Apply(t.Context(), "f", definition, troupe.Strict())
	require.ErrorContains(t, err, "this member has no function jugde")
	published, err = e.Apply(t.Context(), "f", []byte("start: a\nnodes: {a: {func: judge}}\n"))
	require.NoError(t, err)
	require.Empty(t, published.Warnings)
}

func TestAProgramGetsTheWarningsOfAFlowThatItBuilt(t *testing.T) {
	e := opened(t)
	b := define.NewGraph("late")
	b.Node("a").Func("jugde")
	published, err := e.ApplyFlow(t.Context(), b)
	require.NoError(t, err)
	require.Equal(t, []any{1, true}, []any{published.Number, published.Created})
	require.Len(t, published.Warnings, 1)
	require.Contains(t, published.Warnings[0].String(), "nodes.a.func: this member has no function jugde")
	_, err = e.ApplyFlow(t.Context(), b, troupe.Strict())
	require.ErrorIs(t, err, troupe.ErrInvalid)
	require.ErrorContains(t, err, "this member has no function jugde")
	require.ErrorContains(t, e.PublishFlow(t.Context(), b, troupe.Strict()), "this member has no function jugde")
	require.NoError(t, e.PublishFlow(t.Context(), b))
	_, err = e.ApplyFlow(t.Context(), define.NewGraph(""))
	require.ErrorIs(t, err, troupe.ErrInvalid)
}

func TestOnlyOneOfConcurrentRegistrationsSucceeds(t *testing.T) {
	e := opened(t)
	const names, at = 500, 4
	var registered atomic.Int64
	for n := range names {
		var all sync.WaitGroup
		for range at {
			all.Go(func() {
				defer func() {
					if recover() == nil {
						registered.Add(1)
					}
				}()
				troupe.Handle(e, fmt.Sprint("f", n), judge)
			})
		}
		all.Wait()
	}
	require.EqualValues(t, names, registered.Load())
}

func TestProgressAndLogsOfARunningFunctionAreStored(t *testing.T) {
	e := opened(t)
	said, leave := make(chan troupe.Job, 1), make(chan struct{})
	troupe.Handle(e, "f", func(ctx context.Context, _ any) (any, error) {
		j := troupe.JobFrom(ctx)
		troupe.Progress(ctx, "half of it")
		_, _ = j.Log.Write([]byte("one line\n"))
		said <- j
		<-leave
		return nil, nil
	})
	require.NoError(t, e.Publish(t.Context(), "f", []byte(`{"start":"a","nodes":{"a":{"func":"f"}}}`)))
	id, err := e.Start(t.Context(), "f", nil)
	require.NoError(t, err)
	j := <-said
	runs, err := e.Runs(t.Context(), id, troupe.Paging{})
	require.NoError(t, err)
	require.Equal(t, "half of it", runs.Items[0].StatusText)
	for line, err := range e.FollowLogs(t.Context(), id, troupe.LogQuery{Node: "a"}) {
		require.NoError(t, err)
		require.Equal(t, []any{"one line", "log", j.ID, 1}, []any{line.Text, line.Stream, line.Job, line.Attempt})
		break
	}
	close(leave)
	_, err = e.Wait(t.Context(), id)
	require.NoError(t, err)
	page, err := e.Logs(t.Context(), id, troupe.LogQuery{})
	require.NoError(t, err)
	require.Equal(t, "one line", page.Items[0].Text)
	log, err := e.Log(t.Context(), j.ID)
	require.NoError(t, err)
	require.Equal(t, "one line\n", log)
}

func TestAFunctionThatReturnsNoJSONFailsItsStep(t *testing.T) {
	e := opened(t)
	e.HandleJSON("broken", func(context.Context, troupe.Job) (json.RawMessage, error) { return json.RawMessage("{"), nil })
	result := runs(t, e, `{"start":"a","nodes":{"a":{"func":"broken"}}}`, nil)
	require.Equal(t, "a: the output is no valid JSON in UTF-8", result.Error)
}
