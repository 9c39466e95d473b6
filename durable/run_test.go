//go:build unix

package durable_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe"
	"github.com/troupe-engine/troupe/durable"
	"github.com/troupe-engine/troupe/flow"
)

// openStore opens an engine that is closed when the test ends.
func openStore(t *testing.T, store string) *troupe.Engine {
	t.Helper()
	e, err := troupe.Open(t.Context(), troupe.Config{Store: store})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	return e
}

// childrenOf returns the tasks that a task has run.
func childrenOf(t *testing.T, e *troupe.Engine, id string) []troupe.TaskSummary {
	t.Helper()
	page, err := e.Tasks(t.Context(), troupe.TaskQuery{Labels: map[string]string{"parent": id}})
	require.NoError(t, err)
	return page.Items
}

// awaitState returns when a task has a state.
func awaitState(t *testing.T, e *troupe.Engine, id string, state flow.TaskStatus) {
	t.Helper()
	require.Eventually(t, func() bool {
		task, err := e.Task(t.Context(), id)
		return err == nil && string(task.State) == string(state)
	}, patience, 10*time.Millisecond)
}

func TestFlowsOfEachModeAreRun(t *testing.T) {
	eachStore(t, func(t *testing.T, store string) {
		e := openStore(t, store)
		troupe.Handle(e, "double", func(_ context.Context, p payment) (payment, error) { return payment{2 * p.Amount}, nil })
		require.NoError(t, e.Publish(t.Context(), "graph", []byte(`{"start":"a","result":"out","nodes":{
			"a":{"exec_type":"local_func","func":"double","post":{"output_key":"out"}}}}`)))
		require.NoError(t, e.Publish(t.Context(), "dag", []byte(`{"nodes":{"a":{"exec_type":"local_func","func":"double",
			"prep":{"input_key":"$run"}}}}`)))
		troupe.HandleFlow(e, "code", func(f *durable.Flow, p payment) (payment, error) {
			return durable.Do(f, "double", func(context.Context) (payment, error) { return payment{2 * p.Amount}, nil })
		})
		troupe.HandleFlow(e, "sum", func(f *durable.Flow, p payment) (int, error) {
			graph, err1 := durable.Run[payment](f, "graph", p)
			dag, err2 := durable.Run[map[string]payment](f, "dag", p)
			code, err3 := durable.Run[payment](f, "code", p, durable.Named("function"))
			return graph.Amount + 10*dag["a"].Amount + 100*code.Amount, errors.Join(err1, err2, err3)
		})
		id, err := e.Start(t.Context(), "sum", payment{3})
		require.NoError(t, err)
		requireResult(t, e, id, "666")
		require.Len(t, childrenOf(t, e, id), 3)
	})
}

func TestErrorOfARunFlowNamesItsTask(t *testing.T) {
	eachStore(t, func(t *testing.T, store string) {
		e := openStore(t, store)
		broken := true
		troupe.HandleFlow(e, "bill", func(f *durable.Flow, _ input) (int, error) {
			return durable.Do(f, "print", func(context.Context) (int, error) {
				if broken {
					return 0, errors.New("no paper")
				}
				return 7, nil
			})
		})
		troupe.HandleFlow(e, "sell", func(f *durable.Flow, in input) (int, error) {
			n, err := durable.Run[int](f, "bill", in)
			var failed *durable.Error
			if errors.As(err, &failed) {
				var details struct{ Task, State string }
				if err := json.Unmarshal(failed.Details, &details); err != nil || details.State != "failed" {
					return 0, fmt.Errorf("details: %s", failed.Details)
				}
			}
			return n, err
		})
		id, err := e.Start(t.Context(), "sell", input{"a"})
		require.NoError(t, err)
		result, err := e.Wait(t.Context(), id)
		require.NoError(t, err)
		require.Equal(t, flow.TaskFailed, result.Status)
		require.Contains(t, result.Error, "step bill: the task "+childrenOf(t, e, id)[0].ID+" is failed: main: step print: no paper")

		broken = false
		require.NoError(t, e.Retry(t.Context(), id))
		requireResult(t, e, id, "7")
		require.Len(t, childrenOf(t, e, id), 1, "the task that had failed went on")
	})
}

func TestCancelReachesRunFlowsAndBack(t *testing.T) {
	eachStore(t, func(t *testing.T, store string) {
		e := openStore(t, store)
		troupe.HandleFlow(e, "wait", func(f *durable.Flow, _ input) (int, error) { return durable.Signal[int](f, "go") })
		troupe.HandleFlow(e, "parent", func(f *durable.Flow, in input) (string, error) {
			_, err := durable.Run[int](f, "wait", in)
			return fmt.Sprint(err), nil
		})
		for _, way := range []string{"the parent", "the child"} {
			id, err := e.Start(t.Context(), "parent", input{"a"})
			require.NoError(t, err)
			require.Eventually(t, func() bool { return len(childrenOf(t, e, id)) == 1 }, patience, 10*time.Millisecond)
			child := childrenOf(t, e, id)[0].ID
			if way == "the parent" {
				require.NoError(t, e.Cancel(t.Context(), id))
				awaitState(t, e, child, flow.TaskCanceled)
				awaitState(t, e, id, flow.TaskCanceled)
				continue
			}
			require.NoError(t, e.Cancel(t.Context(), child))
			requireResult(t, e, id, fmt.Sprintf("%q", "step wait: the task "+child+" is canceled"))
		}
	})
}

func TestFlowsThatAreNotThereFailAtOnce(t *testing.T) {
	eachStore(t, func(t *testing.T, store string) {
		e := openStore(t, store)
		troupe.HandleFlow(e, "parent", func(f *durable.Flow, in input) (int, error) { return durable.Run[int](f, "nothing", in) })
		id, err := e.Start(t.Context(), "parent", input{"a"})
		require.NoError(t, err)
		result, err := e.Wait(t.Context(), id)
		require.NoError(t, err)
		require.Contains(t, result.Error, `there is no flow "nothing": publish it first`)
	})
}

func TestRunThatTakesTooLongIsCanceled(t *testing.T) {
	eachStore(t, func(t *testing.T, store string) {
		e := openStore(t, store)
		troupe.HandleFlow(e, "wait", func(f *durable.Flow, _ input) (int, error) { return durable.Signal[int](f, "go") })
		troupe.HandleFlow(e, "parent", func(f *durable.Flow, in input) (bool, error) {
			_, err := durable.Run[int](f, "wait", in, durable.Within(50*time.Millisecond))
			return errors.Is(err, durable.ErrTimeout), nil
		})
		id, err := e.Start(t.Context(), "parent", input{"a"})
		require.NoError(t, err)
		requireResult(t, e, id, "true")
		for _, child := range childrenOf(t, e, id) { // none, if it was not started in time
			awaitState(t, e, child.ID, flow.TaskCanceled)
		}
	})
}

// TestRunFlowsSurviveKills kills the program within the tasks that a function runs, and behind
// them.
func TestRunFlowsSurviveKills(t *testing.T) {
	eachStore(t, func(t *testing.T, store string) {
		startTask(t, store, "ten", "x") // publishes it; the programs end this task, too
		s := setup{Store: store, Dir: t.TempDir(), Kills: []string{"a1-in-3", "a1-after-10", "a-after-1", "a2-in-1", "a-after-2"}}
		s.Tasks = []string{startTask(t, store, "tens", "a")}
		programs, said := runUntilEnd(t, s)
		require.Equal(t, len(s.Kills)+1, programs)
		require.Contains(t, said, "completed 110")
		lines := readLedger(t, s.Dir)
		requireRecordedOnce(t, lines, "a1")
		requireRecordedOnce(t, lines, "a2")
	})
}

// TestRetriedTaskRunsACanceledFlowAnew has a flow that is run in a branch while the function fails.
func TestRetriedTaskRunsACanceledFlowAnew(t *testing.T) {
	eachStore(t, func(t *testing.T, store string) {
		e := openStore(t, store)
		broken, started := true, make(chan struct{})
		troupe.HandleFlow(e, "wait", func(f *durable.Flow, _ input) (int, error) { return durable.Signal[int](f, "go") })
		troupe.HandleFlow(e, "parent", func(f *durable.Flow, in input) (int, error) {
			side := durable.Go(f, "side", func(f *durable.Flow) (int, error) { return durable.Run[int](f, "wait", in) })
			if err := f.Do("check", func(context.Context) error {
				<-started
				if broken {
					return errors.New("no paper")
				}
				return nil
			}); err != nil {
				return 0, err
			}
			return side.Wait(f)
		})
		id, err := e.Start(t.Context(), "parent", input{"a"})
		require.NoError(t, err)
		require.Eventually(t, func() bool { return len(childrenOf(t, e, id)) == 1 }, patience, 10*time.Millisecond)
		first := childrenOf(t, e, id)[0].ID
		close(started)
		awaitState(t, e, id, flow.TaskFailed)
		awaitState(t, e, first, flow.TaskCanceled)

		broken = false
		require.NoError(t, e.Retry(t.Context(), id))
		require.Eventually(t, func() bool { return len(childrenOf(t, e, id)) == 2 }, patience, 10*time.Millisecond)
		for _, child := range childrenOf(t, e, id) {
			if child.ID != first {
				require.NoError(t, e.Signal(t.Context(), child.ID, "go", 7))
			}
		}
		requireResult(t, e, id, "7")
	})
}
