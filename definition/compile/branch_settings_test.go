package compile_test

import (
	"fmt"
	"strings"
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

func TestADefaultThatNoNodeObeysIsAWarning(t *testing.T) {
	const retry = "no node without its own has attempts to repeat: give it to a node, or leave it out"
	const timeout = "no node without its own has attempts that can be late: give it to a node, or leave it out"
	const execType = "each node with jobs has its own, or a route decides: leave it out"
	const route = "each node with jobs has its own route, exec_type, func or script: leave it out"
	const skipMode = "no node without its own has a condition: add when to a node, or leave it out"
	const inside = "a: {kind: branch, flow: {mode: dag, "
	for _, tt := range []struct{ defaults, nodes, want string }{
		{"retry: {max_attempts: 3}", "a: {service: s}", ""},
		{"retry: {max_attempts: 3}", "a: {service: s, retry: {max_attempts: 2}}", retry},
		{"retry: {max_attempts: 3}", "a: {route: direct}", retry},
		{"retry: {max_attempts: 3}", "a: {kind: timer, delay: 1s}", retry},
		{"retry: {max_attempts: 3}", "a: {kind: timer, delay: 1s, when: {cond: {service: s}}}", ""},
		{"retry: {max_attempts: 3}", "a: {kind: branch, flow: {start: b, nodes: {b: {service: s}}}}", retry},
		{"retry: {max_attempts: 3}", inside + "nodes: {b: {service: s}}}}", ""},
		{"retry: {max_attempts: 3}", inside + "defaults: {retry: {max_attempts: 2}}, nodes: {b: {service: s}}}}", retry},
		{"retry: {max_attempts: 3}", inside + "profile: ork, nodes: {b: {service: s}}}}", retry},
		{"retry: {max_attempts: 3}", "a: {route: direct}, b: {service: s}}\nfinally: b\nx-y: {", ""},
		{"retry: {max_attempts: 3}", "a: {route: direct, compensate: b}, b: {service: s}}\nx-y: {", ""},
		{"timeout: 5s", "a: {service: s}", ""},
		{"timeout: 0s", "a: {service: s}", ""},
		{"timeout: 5s", "a: {service: s, timeout: 1s}", timeout},
		{"timeout: 5s", "a: {service: s, timeout: 0s}", timeout},
		{"timeout: 5s", "a: {kind: approval, signal: {key: k}}", timeout},
		{"timeout: 5s", "a: {kind: output, service: s}", ""},
		{"exec_type: queue", "a: {service: s}", ""},
		{"exec_type: queue", "a: {service: s, route: push}", execType},
		{"exec_type: queue", "a: {service: s, exec_type: push}", execType},
		{"exec_type: queue", "a: {exec: {command: c, type: process}}", execType},
		{"exec_type: queue, route: queue", "a: {service: s}", ""},
		{"exec_type: push, route: queue", "a: {service: s}", execType},
		{"route: queue", "a: {service: s}", ""},
		{"route: queue", "a: {service: s, route: push}", route},
		{"route: queue", "a: {func: echo}", route},
		{"route: queue", "a: {kind: branch, prep: {func: echo}, flow: {mode: dag, nodes: {b: {func: echo}}}}", route},
		{"route: queue", inside + "defaults: {exec_type: push}, nodes: {b: {service: s}}}}", route},
		{"skip_mode: optional", "a: {service: s}", skipMode},
		{"skip_mode: optional", "a: {service: s, when: {if: {}}, skip_mode: fail}", skipMode},
		{"skip_mode: optional", "a: {service: s, when: {if: {}}, whenUnmet: skip}", skipMode},
		{"skip_mode: optional", "a: {service: s, when: {if: {}}}", ""},
		{"skip_mode: optional", "a: {kind: timer, delay: 1s, when: {if: {}}}", ""},
		{"skip_mode: optional", inside + "nodes: {b: {service: s, when: {if: {}}}}}}", ""},
		{"skip_mode: optional", inside + "defaults: {skip_mode: fail}, nodes: {b: {service: s, when: {if: {}}}}}}", skipMode},
	} {
		text := "mode: dag\ndefaults: {" + tt.defaults + "}\nnodes: {" + tt.nodes + "}"
		_, problems := compile.Text([]byte(text), flow.Limits{})
		require.NoError(t, problems.Err(), text)
		if tt.want == "" {
			require.Empty(t, problems, text)
			continue
		}
		require.Len(t, problems, 1, text)
		field, _, _ := strings.Cut(tt.defaults, ":")
		column := 12
		if field != "retry" { // a text is at its own place, an object at that of its key
			column += len(field) + 2
		}
		require.Equal(t, fmt.Sprintf("2:%d: warning: defaults.%s: has no effect: %s", column, field, tt.want), problems[0].String(), text)
		require.Error(t, problems.Strict().Err(), text)
	}
}

func TestADefaultOfABranchThatNoNodeObeysIsAWarningAtItsPlace(t *testing.T) {
	_, problems := compile.Text([]byte("mode: dag\nnodes:\n  a:\n    kind: branch\n    flow:\n      mode: dag\n"+
		"      defaults: {timeout: 5s}\n      nodes: {b: {service: s, timeout: 1s}}\n"), flow.Limits{})
	require.Len(t, problems, 1)
	require.Contains(t, problems[0].String(), "7:27: warning: nodes.a.flow.defaults.timeout: has no effect: no node without its own")
}

func TestPartsOfARetryThatNodesOfPgflowLeaveOutComeFromTheDefaults(t *testing.T) {
	const whole = "{max_attempts: 2, delay: 5, backoff: fixed, max_delay: 9, jitter: 0.5}"
	for node, warned := range map[string]bool{"retry: {max_attempts: 2}": false, "": false, "retry: " + whole: true} {
		_, problems := compile.Text([]byte("profile: pgflow\ndefaults: {retry: {delay: 7}}\nnodes: {a: {"+node+"}}"), flow.Limits{})
		require.NoError(t, problems.Err(), node)
		require.Equal(t, warned, strings.Contains(problems.Error(), "defaults.retry: has no effect"), "%s: %v", node, problems)
	}
}

func TestAnUnknownWordOfTheDefaultsIsNoWarningToo(t *testing.T) {
	for _, written := range []string{"exec_type: ftp", "route: pigeon", "skip_mode: hop"} {
		_, problems := compile.Text([]byte("mode: dag\ndefaults: {"+written+"}\nnodes: {a: {func: echo}}"), flow.Limits{})
		require.Len(t, problems, 1, written)
		require.Error(t, problems.Err(), written)
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
