package compile_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/definition/compile"
	"github.com/troupe-engine/troupe/flow"
)

func TestNodesOfABranchObeyTheSettingsOfItsFlow(t *testing.T) {
	const nodes = "nodes: {b: {service: s, when: {if: {}}}, own: {service: s, when: {if: {}}, skip_mode: propagate, " +
		"timeout: 1s, retry: {max_attempts: 1}, route: push, input_shape: deps}}"
	const around = "mode: dag\ninput_shape: merged\n" +
		"defaults: {timeout: 9s, skip_mode: optional, retry: {max_attempts: 9}, route: queue}\n" +
		"nodes: {x: {service: s, when: {if: {}}}, a: {kind: branch, flow: {mode: dag, "
	type settings struct {
		TimeoutMS int64
		Mode      flow.SkipMode
		Retries   int
		Exec      flow.ExecType
		Shape     flow.Shape
	}
	of := func(p *flow.PlanNode) settings {
		return settings{p.TimeoutMS, p.Dag.Mode, p.Retry.Max, p.Exec.Type, p.Dag.Shape}
	}
	outer := settings{9_000, flow.SkipOptional, 8, flow.ExecQueue, flow.ShapeMerged}
	for written, want := range map[string]settings{
		"":                                       outer,
		"defaults: {timeout: 5s}, ":              {5_000, flow.SkipOptional, 8, flow.ExecQueue, flow.ShapeMerged},
		"defaults: {timeout: 0s}, ":              {0, flow.SkipOptional, 8, flow.ExecQueue, flow.ShapeMerged},
		"defaults: {route: push}, ":              {9_000, flow.SkipOptional, 8, flow.ExecPush, flow.ShapeMerged},
		"defaults: {retry: {max_attempts: 7}}, ": {9_000, flow.SkipOptional, 6, flow.ExecQueue, flow.ShapeMerged},
		"input_shape: run_deps, ":                {9_000, flow.SkipOptional, 8, flow.ExecQueue, flow.ShapeRunDeps},
		"defaults: {exec_type: push}, ":          {9_000, flow.SkipOptional, 8, flow.ExecPush, flow.ShapeMerged},
		"input_shape: deps, defaults: {skip_mode: fail}, ": {9_000, flow.SkipFail, 8, flow.ExecQueue, flow.ShapeDeps},
		"profile: troupe, defaults: {timeout: 5s}, ":       {5_000, flow.SkipOptional, 8, flow.ExecQueue, flow.ShapeMerged},
		"profile: pgflow, ":                                {60_000, flow.SkipPropagate, 2, flow.ExecQueue, flow.ShapeRunDeps},
		"profile: ork, ":                                   {3_600_000, flow.SkipPropagate, 0, flow.ExecPush, flow.ShapeMerged},
	} {
		plan, problems := compile.Text([]byte(around+written+nodes+"}}}"), flow.Limits{})
		require.NoError(t, problems.Err(), written)
		require.Equal(t, want, of(plan.Root.Nodes["a/b"]), written)
		require.Equal(t, settings{1_000, flow.SkipPropagate, 0, flow.ExecPush, flow.ShapeDeps}, of(plan.Root.Nodes["a/own"]), written)
		require.Equal(t, outer, of(plan.Root.Nodes["x"]), "the nodes around it do not")
	}
}

func TestSettingsOfABranchThatCannotBeObeyedAreReported(t *testing.T) {
	for flowInside, want := range map[string]string{
		"on_error: fail_fast, ": "nodes.a.flow.on_error: does not decide about failures here: a branch has the on_error of the " +
			"flow around it, which is continue: change it there, or start tasks of this flow",
		"on_error: sometimes, ": `nodes.a.flow.on_error: unknown word "sometimes": write continue or fail_fast`,
		"input_shape: round, ":  `nodes.a.flow.input_shape: unknown word "round": write run_deps, deps, merged or mapped`,
		"profile: temporal, ": `nodes.a.flow.profile: unknown profile "temporal": write troupe, pocketflow, ork or pgflow, ` +
			"or leave it out",
		"defaults: {skip_mode: hop}, ": `nodes.a.flow.defaults.skip_mode: unknown word "hop": write propagate, optional or fail`,
		"on_error: continue, ":         "",
	} {
		_, problems := compile.Text([]byte("mode: dag\nnodes: {a: {kind: branch, flow: {mode: dag, "+flowInside+
			"nodes: {b: {service: s, when: {if: {}}}}}}}"), flow.Limits{})
		if want == "" {
			require.Empty(t, problems, flowInside)
			continue
		}
		require.Len(t, problems, 1, flowInside)
		require.Equal(t, want, problems[0].Path+": "+problems[0].Msg)
		require.ErrorContains(t, problems.Err(), want, "it is an error")
	}
}

func TestASkipModeOfTheDefaultsThatNoNodeObeysIsAWarning(t *testing.T) {
	const warning = "warning: defaults.skip_mode: has no effect: no node without its own has a condition: " +
		"add when to a node, or leave it out"
	for nodes, warned := range map[string]bool{
		"a: {service: s}": true,
		"a: {service: s, when: {if: {}}, skip_mode: fail}":                                                            true,
		"a: {service: s, when: {if: {}}, whenUnmet: skip}":                                                            true,
		"a: {service: s, when: {if: {}}}":                                                                             false,
		"a: {kind: timer, delay: 1s, when: {if: {}}}":                                                                 false,
		"a: {kind: branch, flow: {mode: dag, nodes: {b: {service: s, when: {if: {}}}}}}":                              false,
		"a: {kind: branch, flow: {mode: dag, defaults: {skip_mode: fail}, nodes: {b: {service: s, when: {if: {}}}}}}": true,
	} {
		_, problems := compile.Text([]byte("mode: dag\ndefaults: {skip_mode: optional}\nnodes: {"+nodes+"}"), flow.Limits{})
		require.NoError(t, problems.Err(), nodes)
		if !warned {
			require.Empty(t, problems, nodes)
			continue
		}
		require.Len(t, problems, 1, nodes)
		require.Contains(t, problems[0].String(), warning, nodes)
		require.Error(t, problems.Strict().Err(), nodes)
	}
}

func TestAPublishedFlowInABranchMayTreatFailuresOtherwiseByItself(t *testing.T) {
	for _, written := range []string{"on_error: fail_fast", "profile: pgflow"} {
		_, problems := compile.Text([]byte("mode: dag\nnodes: {a: {kind: branch, prep: {input_key: $run}, "+
			"flow: {mode: dag, embedded: x, "+written+", nodes: {b: {service: s}}}}}"), flow.Limits{})
		require.NoError(t, problems.Err(), written)
		require.Len(t, problems, 1, written)
		require.Contains(t, problems[0].String(), "does not decide about failures here", written)
	}
}
