package troupe_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe"
	"github.com/troupe-engine/troupe/flow"
)

func TestARetryKeepsTheKeysAndARerunAndAForkHaveNewOnes(t *testing.T) {
	for mode, definition := range map[string]string{
		"graph": `{"start":"pay","on_error":"fail","result":"paid","nodes":{"pay":{"func":"pay","post":{"output_key":"paid"}}}}`,
		"dag":   `{"mode":"dag","nodes":{"pay":{"func":"pay"}}}`,
	} {
		t.Run(mode, func(t *testing.T) {
			e := opened(t)
			var fail atomic.Bool
			fail.Store(true)
			got := make(chan troupe.Job, 100)
			e.Handle("pay", func(_ context.Context, j troupe.Job) (any, error) {
				got <- j
				if fail.Load() {
					return nil, errors.New("no")
				}
				return "paid", nil
			})
			result := runs(t, e, definition, nil)
			require.Equal(t, flow.TaskFailed, result.Status)
			first := <-got
			require.Equal(t, flow.UnitKey(first.Task, flow.Address{Node: "pay", Visit: 1}), first.Key())

			fail.Store(false)
			require.NoError(t, e.Retry(t.Context(), first.Task))
			_, err := e.Wait(t.Context(), first.Task)
			require.NoError(t, err)
			again := <-got
			require.Equal(t, first.Key(), again.Key())
			require.NotEqual(t, first.ID, again.ID)

			reran, err := e.Rerun(t.Context(), first.Task, troupe.Rerun{})
			require.NoError(t, err)
			_, err = e.Wait(t.Context(), reran.ID)
			require.NoError(t, err)
			forked, err := e.Fork(t.Context(), first.Task, troupe.Fork{From: "pay"})
			require.NoError(t, err)
			_, err = e.Wait(t.Context(), forked.ID)
			require.NoError(t, err)
			require.Len(t, map[string]bool{first.Key(): true, (<-got).Key(): true, (<-got).Key(): true}, 3)
		})
	}
}

func TestEachVisitAndEachUnitHasAKeyOfItsOwn(t *testing.T) {
	for name, definition := range map[string]string{
		"a loop": `{"start":"pay","on_error":"fail","nodes":{"pay":{"func":"pay","post":{"action_key":"go"}}},"edges":[{"from":"pay","action":"on","to":"pay"}]}`,
		"units":  `{"mode":"dag","nodes":{"pay":{"func":"pay","each":{"count":3}}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			e := opened(t)
			var calls atomic.Int64
			got := make(chan string, 100)
			e.Handle("pay", func(_ context.Context, j troupe.Job) (any, error) {
				got <- j.Key()
				if calls.Add(1) < 3 {
					return map[string]string{"go": "on"}, nil
				}
				return map[string]string{"go": "end"}, nil
			})
			require.Equal(t, flow.TaskCompleted, runs(t, e, definition, nil).Status)
			require.Len(t, map[string]bool{<-got: true, <-got: true, <-got: true}, 3)
		})
	}
}

func TestARetryOfASubflowKeepsTheKeysOfItsUnits(t *testing.T) {
	for name, definition := range map[string]string{
		"by its strategy": `{"start":"order","on_error":"fail","nodes":{"order":{"kind":"subflow","failure_strategy":"retry","retry":{"max_attempts":2},
			"flow":{"start":"pay","nodes":{"pay":{"func":"pay"}}}}}}`,
		"of a dag by its strategy": `{"start":"order","on_error":"fail","nodes":{"order":{"kind":"subflow","failure_strategy":"retry","retry":{"max_attempts":2},
			"flow":{"mode":"dag","nodes":{"pay":{"func":"pay"}}}}}}`,
		"by an operator":              `{"start":"order","on_error":"fail","nodes":{"order":{"kind":"subflow","flow":{"start":"pay","nodes":{"pay":{"func":"pay"}}}}}}`,
		"of a fan-out by an operator": `{"mode":"dag","nodes":{"pay":{"func":"pay","each":{"count":2}}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			e := opened(t)
			var calls atomic.Int64
			got := make(chan troupe.Job, 100)
			e.Handle("pay", func(_ context.Context, j troupe.Job) (any, error) {
				if j.Unit > 0 {
					return nil, nil
				}
				got <- j
				if calls.Add(1) < 3 {
					return nil, errors.New("no")
				}
				return nil, nil
			})
			require.NoError(t, e.Publish(t.Context(), "f", []byte(definition)))
			id, err := e.Start(t.Context(), "f", nil)
			require.NoError(t, err)
			for {
				result, err := e.Wait(t.Context(), id)
				require.NoError(t, err)
				if result.Status == flow.TaskCompleted {
					break
				}
				require.NoError(t, e.Retry(t.Context(), id))
			}
			keys, ids := map[string]bool{}, map[string]bool{}
			for range 3 {
				j := <-got
				keys[j.Key()], ids[j.ID] = true, true
			}
			require.Len(t, keys, 1)
			require.Len(t, ids, 3)
		})
	}
}

func TestARetryWithAnotherInputHasANewKey(t *testing.T) {
	e := opened(t)
	got := make(chan troupe.Job, 100)
	e.Handle("pay", func(_ context.Context, j troupe.Job) (any, error) {
		got <- j
		if string(j.Input) == "1" {
			return nil, errors.New("no")
		}
		return nil, nil
	})
	require.NoError(t, e.Publish(t.Context(), "f",
		[]byte(`{"start":"ask","on_error":"fail","nodes":{"ask":{"kind":"wait_event","params":{"signal_key":"amount"}},
		"pay":{"func":"pay","prep":{"input_key":"$shared.amount"}}},"edges":[{"from":"ask","to":"pay","action":"default"},{"from":"ask","to":"pay","action":"signaled"}]}`)))
	id, err := e.Start(t.Context(), "f", nil)
	require.NoError(t, err)
	require.NoError(t, e.Signal(t.Context(), id, "amount", 1))
	_, err = e.Wait(t.Context(), id)
	require.NoError(t, err)
	first := <-got
	require.NoError(t, e.Retry(t.Context(), id))
	require.Equal(t, first.Key(), (<-got).Key())
	_, err = e.Wait(t.Context(), id)
	require.NoError(t, err)
	require.NoError(t, e.Signal(t.Context(), id, "amount", 2))
	require.NoError(t, e.Retry(t.Context(), id))
	require.NotEqual(t, first.Key(), (<-got).Key())
}
