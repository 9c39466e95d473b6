//go:build unix

package durable_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe"
	"github.com/troupe-engine/troupe/durable"
)

func TestOthersReadTheValuesThatAFunctionSets(t *testing.T) {
	eachWarmth(t, func(t *testing.T, open func() *troupe.Engine) {
		e := open()
		troupe.HandleFlow(e, "fn", func(f *durable.Flow, in rounds) (string, error) {
			if err := f.Set("round", in.Round); err != nil {
				return "", err
			}
			if in.Round < 2 {
				return "", f.Restart(rounds{Round: in.Round + 1})
			}
			_, err := durable.Each(f, "part", []string{"a", "b"}, 2, func(f *durable.Flow, part string) (string, error) {
				return "", f.Set("part "+part, map[string]string{"is": "ready"})
			})
			if err != nil {
				return "", err
			}
			if err := f.Set("state", "waits"); err != nil {
				return "", err
			}
			said, err := durable.Signal[string](f, "go on")
			if err != nil {
				return "", err
			}
			return said, f.Set("state", "goes on")
		})
		id, err := e.Start(t.Context(), "fn", rounds{})
		require.NoError(t, err)
		awaitKind(t, e, id, "signal")
		sharedOf := func() string {
			task, err := e.Task(t.Context(), id)
			require.NoError(t, err)
			shared, err := json.Marshal(task.Shared)
			require.NoError(t, err)
			return string(shared)
		}
		waiting := `{"round":2,"part a":{"is":"ready"},"part b":{"is":"ready"},"state":%q%s}`
		require.JSONEq(t, fmt.Sprintf(waiting, "waits", ""), sharedOf())
		require.NoError(t, e.Signal(t.Context(), id, "go on", "yes"))
		requireResult(t, e, id, `"yes"`)
		require.JSONEq(t, fmt.Sprintf(waiting, "goes on", `,"result":"yes","go on":"yes"`), sharedOf())
	})
}

func TestValuesThatCannotBeSetAreErrors(t *testing.T) {
	eachWarmth(t, func(t *testing.T, open func() *troupe.Engine) {
		e := open()
		troupe.HandleFlow(e, "fn", func(f *durable.Flow, _ rounds) ([]string, error) {
			f.Sleep("rest", time.Millisecond)
			return []string{f.Set("result", 1).Error(), f.Set("channel", make(chan int)).Error(),
				f.Set("large", strings.Repeat("x", 2<<20)).Error()}, nil
		})
		id, err := e.Start(t.Context(), "fn", rounds{})
		require.NoError(t, err)
		result, err := e.Wait(t.Context(), id)
		require.NoError(t, err)
		require.Empty(t, result.Error)
		for _, part := range []string{"step result: a function cannot set result: that is what it returns",
			"the value channel cannot be written as JSON", "step large: the result of the step large has 2097154 bytes"} {
			require.Contains(t, string(result.Value), part)
		}
		task, err := e.Task(t.Context(), id)
		require.NoError(t, err)
		require.NotContains(t, task.Shared, "large")
	})
}
