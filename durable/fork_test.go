//go:build unix

package durable_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe"
	"github.com/troupe-engine/troupe/durable"
)

// TestForkGoesOnWithAnotherResult forks a task at its fifth step, with another result of the
// fourth.
func TestForkGoesOnWithAnotherResult(t *testing.T) {
	eachStore(t, func(t *testing.T, store string) {
		e := openStore(t, store)
		ran := map[string]int{}
		troupe.HandleFlow(e, "sum", func(f *durable.Flow, _ input) (sum int, err error) {
			for k := 1; k <= 6 && err == nil; k++ {
				var n int
				n, err = durable.Do(f, fmt.Sprint("step", k), func(context.Context) (int, error) {
					ran[fmt.Sprint("step", k)]++
					if sum >= 100 {
						return 1, nil
					}
					return k, nil
				})
				sum += n
			}
			return sum, err
		})
		id, err := e.Start(t.Context(), "sum", input{"a"})
		require.NoError(t, err)
		requireResult(t, e, id, "21")
		change := map[string]json.RawMessage{"step4": json.RawMessage("100")}
		forked, err := e.Fork(t.Context(), id, troupe.Fork{From: "step5", Results: change})
		require.NoError(t, err)
		requireResult(t, e, forked.ID, "108")
		require.Equal(t, map[string]int{"step1": 1, "step2": 1, "step3": 1, "step4": 1, "step5": 2, "step6": 2}, ran)
		page, err := e.Steps(t.Context(), forked.ID, troupe.StepQuery{Step: "step4"})
		require.NoError(t, err)
		require.Equal(t, "100", string(page.Items[0].Output))

		for _, step := range []string{"step5", "step9"} {
			_, err = e.Fork(t.Context(), id, troupe.Fork{From: "step5", DryRun: true,
				Results: map[string]json.RawMessage{step: json.RawMessage("1")}})
			require.ErrorContains(t, err, fmt.Sprintf("the fork keeps no recorded step %q of a function", step))
		}
	})
}
