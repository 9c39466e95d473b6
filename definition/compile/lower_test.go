package compile_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/troupe-engine/troupe/definition"
	"github.com/troupe-engine/troupe/definition/compile"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/testing/flowtest"
)

// tight is a set of very low limits.
var tight = flow.Limits{Depth: 1, Units: 1}

func TestAcceptedDefinitionsAreLoweredWithAnyLimits(t *testing.T) {
	for name, text := range map[string]string{
		"nested subflows": `{"start":"a","nodes":{"a":{"kind":"subflow","subflow":{"start":"b","nodes":{"b":{"kind":"subflow","subflow":{"start":"c","nodes":{"c":{"service":"s"}}}}}}}}}`,
		"branches":        `{"start":"a","nodes":{"a":{"kind":"parallel","parallel_services":["x","y","z"]}}}`,
		"a count":         `{"mode":"dag","nodes":{"a":{"service":"s","each":{"count":9}}}}`,
		"a graph inside":  `{"mode":"dag","nodes":{"a":{"kind":"branch","flow":{"start":"b","nodes":{"b":{"kind":"subflow","subflow":{"start":"c","nodes":{"c":{"service":"s"}}}}}}}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			d, err := definition.Parse([]byte(text))
			require.NoError(t, err)
			plan, problems := compile.Definition(d, flow.Limits{})
			require.NoError(t, problems.Err())
			require.Error(t, compile.Check(d, tight).Err(), "today it would be refused")
			require.Equal(t, planJSON(t, plan), planJSON(t, compile.Lower(d, tight)))
		})
	}
}

func TestCheckingAndLoweringAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d, err := definition.Parse([]byte(flowtest.RandomDefinition(flowtest.Rapid{T: t})))
		require.NoError(t, err)
		plan, problems := compile.Definition(d, flow.Limits{})
		require.NoError(t, problems.Err())
		require.Equal(t, problems, compile.Check(d, flow.Limits{}))
		want, err := json.Marshal(plan)
		require.NoError(t, err)
		got, err := json.Marshal(compile.Lower(d, tight))
		require.NoError(t, err)
		require.Equal(t, string(want), string(got))
	})
}

// A rule of a newer release makes stored definitions wrong.
func TestDefinitionsThatViolateNewRulesHaveAPlan(t *testing.T) {
	for name, tt := range map[string]struct {
		text string
		has  func(p *flow.Plan) bool
	}{
		"a duration": {`{"profile":"ork","nodes":{"a":{"service":"s","start_delay":999999999999}}}`,
			func(p *flow.Plan) bool { return p.Root.Nodes["a"].Dag.StartDelayMS == 999999999999_000 }},
		"a time": {`{"start":"a","nodes":{"a":{"service":"s","timeout_ms":900000000000000000}}}`,
			func(p *flow.Plan) bool { return p.Root.Nodes["a"].TimeoutMS == 900000000000000000 }},
		"a reserved key": {`{"start":"a","nodes":{"a":{"service":"s","post":{"output_key":"_rt"}}}}`,
			func(p *flow.Plan) bool { return p.Root.Nodes["a"].Post.OutputKey == "_rt" }},
		"a long key": {`{"start":"` + strings.Repeat("k",
			999) + `","nodes":{"` + strings.Repeat("k", 999) + `":{"service":"s"}}}`,
			func(p *flow.Plan) bool { return len(p.Root.Nodes) == 1 }},
		"a slug": {`{"mode":"dag","nodes":{"größe":{"service":"s"}}}`,
			func(p *flow.Plan) bool { return p.Root.Nodes["größe"].Exec.Service == "s" }},
	} {
		t.Run(name, func(t *testing.T) {
			d, _ := definition.Parse([]byte(tt.text))
			_, problems := compile.Definition(d, flow.Limits{})
			require.Error(t, problems.Err())
			require.True(t, tt.has(compile.Lower(d, flow.Limits{})))
		})
	}
}

func TestAnExpressionThatCanNoLongerBeCompiledFailsItsStep(t *testing.T) {
	d, err := definition.Parse([]byte(
		`{"start":"a","nodes":{"a":{"kind":"choice","choice_cases":[{"action":"x","expr":"gone(params)"}]}}}`))
	require.NoError(t, err)
	require.Error(t, compile.Check(d, flow.Limits{}).Err())
	s := flow.NewState("task", compile.Lower(d, flow.Limits{}))
	_, err = flow.Decide(s, flow.Start{}, flow.Env{Now: 1})
	require.NoError(t, err)
	require.Equal(t, flow.TaskFailed, s.Status)
	require.Contains(t, s.Error, "gone(params)")
}
