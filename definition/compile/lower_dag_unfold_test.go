package compile_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/definition/compile"
	"github.com/troupe-engine/troupe/definition/show"
	"github.com/troupe-engine/troupe/flow"
)

func TestFoldedNotationsHaveTheSameMeaning(t *testing.T) {
	for folded, plain := range map[string]string{
		"{exec: {service: s}}":     "{service: s}",
		"{exec: {func: f}}":        "{exec_type: local_func, func: f}",
		"{kind: timer, delay: 3s}": "{kind: timer, params: {delay_ms: 3000}}",
		"{kind: wait_event, signal: {key: $shared.go, timeout: 5s}}":                 "{kind: wait_event, params: {signal_key: $shared.go, timeout_ms: 5000}}",
		"{kind: approval, signal: {key: $shared.go}}":                                "{kind: approval, params: {approval_key: $shared.go}}",
		"{kind: wait_event, params: {signal_key: $shared.x}, signal: {timeout: 5s}}": "{kind: wait_event, params: {signal_key: $shared.x, timeout_ms: 5000}}",
	} {
		for where, definition := range map[string]string{
			"a node":                   "mode: dag\nnodes: {n: ",
			"what runs finally":        "finally: n\nnodes: {a: {service: s}, n: ",
			"what undoes another node": "nodes: {a: {service: s, compensate: n}, n: ",
			"a node in a branch":       "nodes: {b: {kind: branch, flow: {nodes: {n: ",
		} {
			end := "}"
			if where == "a node in a branch" {
				end = "}}}}"
			}
			one, problems := compile.Text([]byte(definition+folded+end), flow.Limits{})
			require.NoError(t, problems.Err(), "%s as %s", folded, where)
			other, others := compile.Text([]byte(definition+plain+end), flow.Limits{})
			require.NoError(t, others.Err(), "%s as %s", plain, where)
			require.Empty(t, show.Differences(other, one), "%s as %s", folded, where)
			require.Len(t, problems, len(others), "%s as %s: %v", folded, where, problems)
		}
	}
}
