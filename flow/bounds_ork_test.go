package flow_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/testing/flowtest"
)

func TestTheInputOfAWorkflowOfOrkIsAnObject(t *testing.T) {
	plan := flowtest.Plan(t, "profile: ork\nnodes: {a: {service: s}}")
	for _, wrong := range []string{`[1]`, `"x"`, `1`, `true`} {
		_, err := flow.Start{Params: json.RawMessage(wrong)}.Fit(plan, flow.DefaultLimits)
		require.ErrorContains(t, err, "the input must be an object, whose fields the tasks get", wrong)
	}
	for _, fine := range []string{`{"n":1}`, `{}`, `null`, ``} {
		_, err := flow.Start{Params: json.RawMessage(fine)}.Fit(plan, flow.DefaultLimits)
		require.NoError(t, err, fine)
	}
}
