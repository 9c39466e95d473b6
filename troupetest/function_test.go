package troupetest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/durable"
	"github.com/troupe-engine/troupe/job"
	"github.com/troupe-engine/troupe/troupetest"
)

type shopOrder struct {
	Items []string `json:"items,omitempty"`
	Round int      `json:"round,omitempty"`
}

// sellItems is a function with steps, waits, branches, a race and an undo.
func sellItems(f *durable.Flow, o shopOrder) (string, error) {
	place, err := durable.Do(f, "reserve", func(context.Context) (string, error) { return "shelf 7", nil })
	if err != nil {
		return "", err
	}
	f.Undo("release", func(context.Context) error { return nil })
	if err := f.Do("charge", func(context.Context) error { return nil }, durable.Retry(3, time.Hour)); err != nil {
		return "", err
	}
	parcels, err := durable.Each(f, "pack", o.Items, 2, func(f *durable.Flow, item string) (string, error) {
		f.Sleep("dry", time.Hour)
		return durable.Do(f, "wrap", func(context.Context) (string, error) { return "a " + item, nil })
	})
	if err != nil {
		return "", err
	}
	winner, _, err := durable.Race(f, "fetched or sent",
		func(f *durable.Flow) (string, error) { return durable.Signal[string](f, "fetched") },
		func(f *durable.Flow) (string, error) { f.Sleep("limit", 48*time.Hour); return "", nil })
	if err != nil {
		return "", err
	}
	return fmt.Sprint(place, parcels, winner, f.Now().Format("06-01-02 15h")), nil
}

func TestFunctionsRunInVirtualTime(t *testing.T) {
	tries := 0
	f := troupetest.Function(t, sellItems).EveryCrash()
	f.Mock("charge", func(context.Context) (any, error) {
		if tries++; tries < 3 {
			return nil, errors.New("busy")
		}
		return nil, nil
	})
	r := f.Run(shopOrder{Items: []string{"book", "pen", "cup"}})
	require.NoError(t, r.Err)
	require.Equal(t, "shelf 7[a book a pen a cup] 100-01-03 02h", r.Value)
	require.Equal(t, 3, tries)
	require.Len(t, r.StepsOf("wrap"), 3)
	require.Len(t, r.StepsOf("charge"), 3, "a step and two pauses")
	require.Empty(t, r.StepsOf("release"))
	require.Greater(t, r.Took, 50*time.Hour)

	tries = 0
	f.Give("fetched", "at the door")
	r = f.Run(shopOrder{})
	require.NoError(t, r.Err)
	require.Equal(t, "shelf 7[] 000-01-01 00h", r.Value)
}

func TestFailedFunctionsAreUndoneInTests(t *testing.T) {
	f := troupetest.Function(t, sellItems).EveryCrash()
	f.Mock("charge", func(context.Context) (any, error) { return nil, errors.New("declined") })
	r := f.Run(shopOrder{})
	require.ErrorContains(t, r.Err, "step charge: declined")
	require.Len(t, r.StepsOf("release"), 1)
	require.Equal(t, "undo", r.StepsOf("release")[0].Kind)
	var failed *durable.Error
	require.ErrorAs(t, r.Err, &failed)
}

func TestAnswersAndRestartsOfFunctions(t *testing.T) {
	f := troupetest.Function(t, func(f *durable.Flow, o shopOrder) (string, error) {
		ok, err := durable.Approve(f, "next", durable.Within(time.Hour))
		switch {
		case errors.Is(err, durable.ErrTimeout):
			return fmt.Sprint("late in round ", o.Round), nil
		case err != nil || !ok:
			return fmt.Sprint("no in round ", o.Round), err
		}
		return "", f.Restart(shopOrder{Round: o.Round + 1})
	}).EveryCrash()
	f.Give("next", "approved")
	r := f.Run(shopOrder{})
	require.NoError(t, r.Err)
	require.Equal(t, []any{"late in round 1", 1}, []any{r.Value, r.Restarts})
}

// failureOf returns the text with which the test of a function fails, or "".
func failureOf(t *testing.T, fn durable.Func[shopOrder, int]) string {
	t.Helper()
	return failure(t, func(t testing.TB) { troupetest.Function(t, fn).EveryCrash().Run(shopOrder{}) })
}

func TestNondeterministicFunctionsAreFound(t *testing.T) {
	nothing := func(context.Context) error { return nil }
	calls := 0
	for name, c := range map[string]struct {
		fn   durable.Func[shopOrder, int]
		says string
	}{
		"another step": {func(f *durable.Flow, _ shopOrder) (int, error) {
			calls++
			return 0, errors.Join(f.Do("first", nothing), f.Do(fmt.Sprint("step", calls), nothing))
		}, "nondeterministic: after a crash before its first step the function differs: it asked for do step"},
		"another input": {func(f *durable.Flow, _ shopOrder) (int, error) {
			calls++
			return 0, f.Do("step", nothing, durable.Input(calls))
		}, "with another kind or input than before"},
		"another result": {func(f *durable.Flow, _ shopOrder) (int, error) {
			calls++
			return calls, f.Do("step", nothing)
		}, "it returned "},
		"another error": {func(_ *durable.Flow, _ shopOrder) (int, error) {
			calls++
			return 0, fmt.Errorf("failed in call %d", calls)
		}, "it ended with the error \"failed in call "},
		"fewer steps": {func(f *durable.Flow, _ shopOrder) (int, error) {
			if calls++; calls%2 == 0 {
				return 0, nil
			}
			return 0, f.Do("odd", nothing)
		}, "it did not ask for the step odd"},
		"another wait": {func(f *durable.Flow, _ shopOrder) (int, error) {
			calls++
			f.Sleep(fmt.Sprint("nap", calls), time.Hour)
			return 0, nil
		}, "nondeterministic: at step nap"},
		"other branches": {func(f *durable.Flow, _ shopOrder) (int, error) {
			calls++
			_, err := durable.Each(f, "each", make([]int, 1+calls%2), 2, func(f *durable.Flow, _ int) (int, error) {
				return 0, f.Do("work", nothing)
			})
			return 0, err
		}, "each/1/work"},
	} {
		t.Run(name, func(t *testing.T) {
			calls = 0
			require.Contains(t, failureOf(t, c.fn), c.says)
		})
	}
}

func TestFunctionsThatWaitForeverFailTheTest(t *testing.T) {
	require.Equal(t, `the function waits for the signal paid, which never comes: give it a value with Give("paid", …)`,
		failureOf(t, func(f *durable.Flow, _ shopOrder) (int, error) { return durable.Signal[int](f, "paid") }))
}

// TestRacesAreNoFaultOfAFunction has losers whose steps are recorded or not.
func TestRacesAreNoFaultOfAFunction(t *testing.T) {
	step := func(name string) func(f *durable.Flow) (int, error) {
		return func(f *durable.Flow) (int, error) {
			for range 3 {
				if err := f.Do(name, func(context.Context) error { return nil }); err != nil {
					return 0, err
				}
			}
			return 1, nil
		}
	}
	for range 200 {
		require.Empty(t, failureOf(t, func(f *durable.Flow, _ shopOrder) (int, error) {
			durable.Go(f, "aside", step("look"))
			winner, _, err := durable.Race(f, "race", step("one"), step("two"), step("three"))
			if err != nil {
				return 0, err
			}
			return winner, f.Do(fmt.Sprint("behind", winner), func(context.Context) error { return nil })
		}))
	}
}

func TestDeferredStepsOfAFunctionThatBeginsAnewAreReplayed(t *testing.T) {
	r := troupetest.Function(t, func(f *durable.Flow, o shopOrder) (id string, err error) {
		defer func() {
			err = errors.Join(err, f.Do("close", func(context.Context) error { return nil }))
		}()
		id = f.UUID()
		if err := f.Do("work", func(context.Context) error { return nil }); err != nil || o.Round == 2 {
			return id, err
		}
		return "", errors.Join(f.Set("id of "+fmt.Sprint(o.Round), id), f.Restart(shopOrder{Round: o.Round + 1}))
	}).EveryCrash().Run(shopOrder{})
	require.NoError(t, r.Err)
	require.Equal(t, 2, r.Restarts)
	require.Len(t, r.StepsOf("close"), 3)
	require.NotContains(t, string(r.StepsOf("id of 0")[0].Output), r.Value)
	require.NotEqual(t, r.StepsOf("id of 0")[0].Output, r.StepsOf("id of 1")[0].Output)
}

func TestPausesOfUndosTakeNoTime(t *testing.T) {
	f := troupetest.Function(t, func(f *durable.Flow, _ shopOrder) (int, error) {
		f.Undo("release", func(context.Context) error { return nil }, durable.Retry(10, time.Minute))
		return 0, errors.New("no")
	}).EveryCrash()
	f.Mock("release", func(context.Context) (any, error) { return nil, errors.New("busy") })
	r := f.Run(shopOrder{})
	require.ErrorContains(t, r.Err, "it was not undone: step release: busy")
	require.Equal(t, 10*time.Minute, r.Took)
}

func TestPanicsOfFunctionsAreTheirErrors(t *testing.T) {
	r := troupetest.Function(t, func(f *durable.Flow, _ shopOrder) (int, error) {
		return 0, f.Do("a/b", func(context.Context) error { return nil })
	}).EveryCrash().Run(shopOrder{})
	require.ErrorContains(t, r.Err, `panic: durable: a step cannot have the name "a/b"`)
}

func TestFunctionsThatCannotBeginAnewFailTheTest(t *testing.T) {
	require.Contains(t, failureOf(t, func(f *durable.Flow, _ shopOrder) (int, error) { return 0, f.Restart(shopOrder{}) }),
		"it has run no step and waited for nothing")
	require.Contains(t, failureOf(t, func(f *durable.Flow, _ shopOrder) (int, error) { f.Now(); return 0, f.Restart(7) }),
		"its input must be a JSON object, and is 7")
	require.Contains(t, failureOf(t, func(f *durable.Flow, _ shopOrder) (int, error) { f.Now(); return 0, f.Restart(shopOrder{}) }),
		"the function has begun anew 10000 times")
	require.Equal(t, "the value false ends no wait for the signal paid: give another one", failure(t, func(t testing.TB) {
		troupetest.Function(t, func(f *durable.Flow, _ shopOrder) (bool, error) { return durable.Signal[bool](f, "paid") }).
			Give("paid", false).Run(shopOrder{})
	}))
}

func TestMocksStandForTheWorkersOfCalledServices(t *testing.T) {
	t.Parallel()
	ship := func(f *durable.Flow, o shopOrder) ([]string, error) {
		return durable.Each(f, "pack", o.Items, 2, func(f *durable.Flow, item string) (string, error) {
			return durable.Call[string](f, "print-label", item, durable.Retry(2, time.Hour), durable.Within(3*time.Hour))
		})
	}
	busy := 2
	f := troupetest.Function(t, ship).EveryCrash()
	f.Mock("print-label", func(ctx context.Context) (any, error) {
		if busy--; busy >= 0 {
			return nil, errors.New("busy")
		}
		return "No. " + string(job.From(ctx).Input), nil
	})
	r := f.Run(shopOrder{Items: []string{"cup", "pan"}})
	require.NoError(t, r.Err)
	require.Equal(t, []string{`No. "cup"`, `No. "pan"`}, r.Value)
	require.Len(t, r.StepsOf("print-label"), 2)
	require.Equal(t, 3*time.Hour, r.Took, "the pauses before the second and the third attempt")

	busy = 100
	r = f.Run(shopOrder{Items: []string{"cup"}})
	require.ErrorContains(t, r.Err, "print-label: busy")
}

func TestCallsWithoutAMockFailTheTest(t *testing.T) {
	t.Parallel()
	require.Equal(t, `the function calls the service print-label, which has no workers in a test: mock it with Mock("print-label", …)`,
		failureOf(t, func(f *durable.Flow, _ shopOrder) (int, error) { return durable.Call[int](f, "print-label", 1) }))
}

func TestValuesOfStreamsAreKeptOnceInTests(t *testing.T) {
	t.Parallel()
	r := troupetest.Function(t, func(f *durable.Flow, o shopOrder) (int, error) {
		for i, item := range o.Items {
			if err := f.Stream("items").Write(item); err != nil {
				return 0, err
			}
			f.Sleep("rest", time.Hour)
			if err := f.Do("say", func(ctx context.Context) error { return job.Stream(ctx, "said").Write(i) }); err != nil {
				return 0, err
			}
		}
		return len(o.Items), f.Stream("items").Close()
	}).EveryCrash().Run(shopOrder{Items: []string{"cup", "pan"}})
	require.NoError(t, r.Err)
	require.Equal(t, map[string][]json.RawMessage{
		"items": {[]byte(`"cup"`), []byte(`"pan"`)}, "said": {[]byte("0"), []byte("1")},
	}, r.Streams)
}
