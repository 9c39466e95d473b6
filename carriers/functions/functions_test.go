package functions_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/carriers/functions"
	"github.com/troupe-engine/troupe/carriers/logs"
	"github.com/troupe-engine/troupe/flow"
	jobs "github.com/troupe-engine/troupe/job"
	"github.com/troupe-engine/troupe/persistence"
)

func job(fn, input, params string) flow.Job {
	return flow.Job{Exec: &flow.Exec{Type: flow.ExecFunc, Func: fn},
		Input: json.RawMessage(input), Params: json.RawMessage(params)}
}

func TestDemoFunctions(t *testing.T) {
	r := functions.New(functions.Options{})
	functions.RegisterDemo(r)
	for name, tt := range map[string]struct {
		fn, input, params string
		want, err         string
	}{
		"mul multiplies by params.mul":              {"mul", `3`, `{"mul":2}`, `6`, ""},
		"mul without a factor changes nothing":      {"mul", `2.5`, `{}`, `2.5`, ""},
		"mul takes a factor that is no number as 1": {"mul", `3`, `{"mul":"x"}`, `3`, ""},
		"mul takes an input that is no number as 0": {"mul", `"3"`, `{"mul":2}`, `0`, ""},
		"mul takes a missing input as 0":            {"mul", ``, ``, `0`, ""},
		"mul beyond all numbers fails":              {"mul", `1e308`, `{"mul":10}`, ``, "failed"},
		"upper takes its input":                     {"upper", `"aé"`, `{"text":"b"}`, `"AÉ"`, ""},
		"upper falls back to params.text":           {"upper", `7`, `{"text":"b"}`, `"B"`, ""},
		"upper without a text fails":                {"upper", `null`, `{"text":1}`, ``, "failed"},
		"log_result hands its input on":             {"log_result", `{"b":1,"a":[2]}`, `{}`, `{"b":1,"a":[2]}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			rep := r.Carry(t.Context(), job(tt.fn, tt.input, tt.params))
			require.Equal(t, tt.err, rep.Error)
			require.Equal(t, tt.want, string(rep.Output))
			require.Equal(t, "local-func:"+tt.fn, rep.Worker)
			require.Equal(t, "local", rep.URL)
			require.False(t, rep.Fatal)
		})
	}
}

func TestAnUnknownFunctionIsFatal(t *testing.T) {
	r := functions.New(functions.Options{})
	rep := r.Carry(t.Context(), job("nope", `1`, `{}`))
	require.Equal(t, flow.Report{Error: "fatal error: this member has no function nope: it has none", Fatal: true}, rep)
	for _, name := range []string{"upper", "lower"} {
		r.Register(name, func(context.Context, jobs.Job) (any, error) { return nil, nil })
	}
	require.Equal(t, "fatal error: this member has no function nope: it has lower, upper",
		r.Carry(t.Context(), job("nope", `1`, `{}`)).Error)
	require.Equal(t, "fatal error: this member has no function uper: did you mean upper?",
		r.Carry(t.Context(), job("uper", `1`, `{}`)).Error)
}

type fatalError struct{ error }

func (fatalError) Fatal() bool { return true }

func TestTheResultOfAFunctionIsReported(t *testing.T) {
	for name, tt := range map[string]struct {
		fn   functions.Func
		want flow.Report
	}{
		"a value becomes JSON": {func(context.Context, jobs.Job) (any, error) { return map[string]int{"a": 1}, nil },
			flow.Report{Output: json.RawMessage(`{"a":1}`)}},
		"JSON stays as it is": {func(context.Context, jobs.Job) (any, error) { return json.RawMessage(`[1, 2]`), nil },
			flow.Report{Output: json.RawMessage(`[1, 2]`)}},
		"nil is null": {func(context.Context, jobs.Job) (any, error) { return nil, nil },
			flow.Report{Output: json.RawMessage(`null`)}},
		"an error keeps its text": {func(context.Context, jobs.Job) (any, error) { return nil, errors.New("no luck") },
			flow.Report{Error: "no luck"}},
		"an error without a text is an error": {func(context.Context, jobs.Job) (any, error) { return nil, errors.New("") },
			flow.Report{Error: "failed"}},
		"an error may be fatal": {func(context.Context, jobs.Job) (any, error) { return nil, fatalError{errors.New("never")} },
			flow.Report{Error: "never", Fatal: true}},
		"a panic is an error": {func(context.Context, jobs.Job) (any, error) { panic("boom") },
			flow.Report{Error: "panic: boom"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := functions.New(functions.Options{})
			r.Register("f", tt.fn)
			tt.want.Worker, tt.want.URL = "local-func:f", "local"
			require.Equal(t, tt.want, r.Carry(t.Context(), job("f", `1`, `{}`)))
		})
	}
}

// shelf keeps logs in memory.
type shelf struct {
	persistence.Logs
	kept map[string]string
}

func (l *shelf) AppendLog(_ context.Context, chunks []persistence.LogChunk, _ int) error {
	for _, c := range chunks {
		for _, line := range c.Lines {
			l.kept[c.Task+" "+c.Job] += line.Text
		}
	}
	return nil
}

func TestAFunctionGetsItsJobAndReportsProgress(t *testing.T) {
	var noted []flow.Note
	kept := &shelf{kept: map[string]string{}}
	book := logs.New(logs.Options{Store: kept})
	r := functions.New(functions.Options{Logs: book, Note: func(_ context.Context, task string, n flow.Note) error {
		require.Equal(t, "t", task)
		noted = append(noted, n)
		return nil
	}})
	var got jobs.Job
	r.Register("f", func(ctx context.Context, j jobs.Job) (any, error) {
		got = j
		require.Equal(t, j, jobs.From(ctx))
		jobs.Progress(ctx, "half of it")
		_, err := j.Log.Write([]byte("well"))
		return nil, err
	})
	j := job("f", `1`, `{"a":2}`)
	j.Task, j.Units, j.Plan = "t", 9, &flow.Plan{FlowSlug: "fl"}
	j.Address = flow.Address{Scope: "sub#1", Node: "n", Visit: 2, Unit: 3, Attempt: 4}
	require.Equal(t, flow.Report{Worker: "local-func:f", URL: "local", Output: json.RawMessage(`null`), Log: true}, r.Carry(t.Context(), j))
	got.Log = nil
	require.Equal(t, jobs.WithKey(j.Key(), jobs.Job{ID: flow.JobID("t", j.Address), Service: "f",
		Input: json.RawMessage(`1`), Params: json.RawMessage(`{"a":2}`),
		Task: "t", Flow: "fl", Step: "sub/n", Unit: 3, Units: 9, Attempt: 4}), got)
	require.Equal(t, []flow.Note{{Address: j.Address, Text: "half of it"}}, noted)
	require.NoError(t, book.Close(t.Context()))
	require.Equal(t, map[string]string{"t " + got.ID: "well"}, kept.kept)
}

// succeedAtCall counts its calls and succeeds at the nth.
func succeedAtCall(n int, calls *int) functions.RawFunc {
	return func(context.Context, jobs.Job) (json.RawMessage, error) {
		if *calls++; *calls >= n {
			return json.RawMessage(`"ok"`), nil
		}
		return nil, errors.New("not yet")
	}
}

func TestFunctionRetries(t *testing.T) {
	for name, tt := range map[string]struct {
		tries, succeedsAt, calls int
		err                      string
	}{
		"0 is one try":               {0, 2, 1, "not yet"},
		"a negative count is one":    {-3, 2, 1, "not yet"},
		"tries stop at a success":    {5, 3, 3, ""},
		"tries are used up":          {2, 3, 2, "not yet"},
		"a success needs no further": {3, 1, 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			calls, r, j := 0, functions.New(functions.Options{}), job("f", `1`, `{}`)
			j.Exec.MaxAttempts = tt.tries
			r.RegisterRaw("f", succeedAtCall(tt.succeedsAt, &calls))
			require.Equal(t, tt.err, r.Carry(t.Context(), j).Error)
			require.Equal(t, tt.calls, calls)
		})
	}
}

func TestRetryPausesEndWhenTheJobIsWithdrawn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls, r, j := 0, functions.New(functions.Options{}), job("f", `1`, `{}`)
		j.Exec.MaxAttempts, j.Exec.TryDelayMS = 100, 1000
		r.RegisterRaw("f", succeedAtCall(100, &calls))
		ctx, cancel := context.WithTimeout(t.Context(), 2500*time.Millisecond)
		defer cancel()
		begun := time.Now()
		require.Equal(t, "not yet", r.Carry(ctx, j).Error)
		require.Equal(t, 3, calls)
		require.Equal(t, 2500*time.Millisecond, time.Since(begun))
	})
}

func BenchmarkCarryRaw(b *testing.B) {
	r, j := functions.New(functions.Options{}), job("f", `1`, `{}`)
	r.RegisterRaw("f", func(_ context.Context, j jobs.Job) (json.RawMessage, error) { return j.Input, nil })
	b.ReportAllocs()
	for b.Loop() {
		r.Carry(b.Context(), j)
	}
}
