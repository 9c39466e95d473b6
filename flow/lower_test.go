package flow

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// tight limits allow next to nothing.
var tight = Limits{Depth: 1, Units: 1}

func TestWhatWasAcceptedIsLoweredWhateverTheLimitsAreNow(t *testing.T) {
	for name, text := range map[string]string{
		"nested subflows": `{"start":"a","nodes":{"a":{"kind":"subflow","subflow":{"start":"b","nodes":{"b":{"kind":"subflow","subflow":{"start":"c","nodes":{"c":{"service":"s"}}}}}}}}}`,
		"branches":        `{"start":"a","nodes":{"a":{"kind":"parallel","parallel_services":["x","y","z"]}}}`,
		"a count":         `{"mode":"dag","nodes":{"a":{"service":"s","each":{"count":9}}}}`,
		"a graph inside":  `{"mode":"dag","nodes":{"a":{"kind":"branch","flow":{"start":"b","nodes":{"b":{"kind":"subflow","subflow":{"start":"c","nodes":{"c":{"service":"s"}}}}}}}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			d, err := ParseDefinition([]byte(text))
			require.NoError(t, err)
			plan, problems := Compile(d, Limits{})
			require.NoError(t, problems.Err())
			require.Error(t, Check(d, tight).Err(), "today it would be refused")
			require.Equal(t, planJSON(t, plan), planJSON(t, Lower(d, tight)))
		})
	}
}

func TestCheckingAndLoweringAreOfOneMind(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d, err := ParseDefinition([]byte(randomDefinition(rapidDice{t})))
		require.NoError(t, err)
		plan, problems := Compile(d, Limits{})
		require.NoError(t, problems.Err())
		require.Equal(t, problems, Check(d, Limits{}))
		want, err := json.Marshal(plan)
		require.NoError(t, err)
		got, err := json.Marshal(Lower(d, tight))
		require.NoError(t, err)
		require.Equal(t, string(want), string(got))
	})
}

// A rule that comes with a release is one by which a stored definition is wrong.
func TestWhatIsWrongByTodaysRulesHasAPlan(t *testing.T) {
	for name, tt := range map[string]struct {
		text string
		has  func(p *Plan) bool
	}{
		"a duration":     {`{"profile":"ork","nodes":{"a":{"service":"s","start_delay":999999999999}}}`, func(p *Plan) bool { return p.Root.Nodes["a"].Dag.StartDelayMS == 999999999999_000 }},
		"a time":         {`{"start":"a","nodes":{"a":{"service":"s","timeout_ms":900000000000000000}}}`, func(p *Plan) bool { return p.Root.Nodes["a"].TimeoutMS == 900000000000000000 }},
		"a reserved key": {`{"start":"a","nodes":{"a":{"service":"s","post":{"output_key":"_rt"}}}}`, func(p *Plan) bool { return p.Root.Nodes["a"].Post.OutputKey == "_rt" }},
		"a long key":     {`{"start":"` + strings.Repeat("k", 999) + `","nodes":{"` + strings.Repeat("k", 999) + `":{"service":"s"}}}`, func(p *Plan) bool { return len(p.Root.Nodes) == 1 }},
		"a slug":         {`{"mode":"dag","nodes":{"größe":{"service":"s"}}}`, func(p *Plan) bool { return p.Root.Nodes["größe"].Exec.Service == "s" }},
	} {
		t.Run(name, func(t *testing.T) {
			d, _ := ParseDefinition([]byte(tt.text))
			_, problems := Compile(d, Limits{})
			require.Error(t, problems.Err())
			require.True(t, tt.has(Lower(d, Limits{})))
		})
	}
}

func TestAnExpressionThatCanNoLongerBeCompiledFailsItsStep(t *testing.T) {
	d, err := ParseDefinition([]byte(`{"start":"a","nodes":{"a":{"kind":"choice","choice_cases":[{"action":"x","expr":"gone(params)"}]}}}`))
	require.NoError(t, err)
	require.Error(t, Check(d, Limits{}).Err())
	s := NewState("task", Lower(d, Limits{}))
	_, err = Decide(s, Start{}, Env{Now: 1})
	require.NoError(t, err)
	require.Equal(t, TaskFailed, s.Status)
	require.Contains(t, s.Error, "gone(params)")
}
