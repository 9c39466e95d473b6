package show_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/definition/show"
	"github.com/troupe-engine/troupe/internal/testing/flowtest"
)

func TestDifferencesAreAboutTheShape(t *testing.T) {
	const old = "profile: pgflow\nnodes:\n  a: {}\n  b: {depends_on: [a], when: {if: {a: 1}}}\n  c: {}\n"
	for name, tt := range map[string]struct {
		new  string
		want []string
	}{
		"the same": {old, []string{}},
		"times and tries": {"profile: pgflow\nnodes:\n  a: {timeout: 9, retry: " +
			"{max_attempts: 7, delay: 2}}\n  b: {depends_on: [a], when: {if: {a: 1}}}\n  c: " +
			"{start_delay: 3}\n", []string{}},
		"how values are written": {"profile: pgflow\nnodes:\n  a: {}\n  b: {depends_on: [a], when: {if: {a: 1.0}}}\n  c: {}\n", []string{}},
		"the order": {"profile: pgflow\nnodes:\n  c: {}\n  a: {}\n  b: " +
			"{depends_on: [a], when: {if: {a: 1}}}\n",
			[]string{"the order of the steps is c, a, b, was a, b, c"}},
		"slugs": {"profile: pgflow\nnodes:\n  a: {}\n  b: {depends_on: [a], " +
			"when: {if: {a: 1}}}\n  d: {}\n", []string{"step c is gone", "step d is new"}},
		"type and route": {"profile: pgflow\nnodes:\n  a: {kind: map}\n  b: " +
			"{depends_on: [a], when: {if: {a: 1}}}\n  c: {route: direct}\n",
			[]string{"step a: the type is fanout, was executor",
				"step c: the route is direct, was queue",
				"step c: the handler is none, was {\"service\":\"c\"}"}},
		"dependencies": {"profile: pgflow\nnodes:\n  a: {}\n  b: {depends_on: [a], " +
			"when: {if: {a: 1}}}\n  c: {depends_on: [a, b]}\n",
			[]string{"step c: the list of dependencies is a, b, was none"}},
		"modes and pattern": {"profile: pgflow\nnodes:\n  a: {on_exhausted: skip}\n  b: " +
			"{depends_on: [a], when: {if_not: {a: 1}}, skip_mode: optional}\n  c: {}\n",
			[]string{"step a: the mode when exhausted is optional, was fail",
				"step b: the mode when skipped is optional, was propagate",
				"step b: the pattern if is none, was {\"a\":1}",
				"step b: the pattern if_not is {\"a\":1}, was none"}},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, tt.want, show.Differences(flowtest.Plan(t, old), flowtest.Plan(t, tt.new)))
		})
	}
	require.Empty(t, show.Differences(flowtest.Plan(t, "profile: pgflow\nnodes: {a: {when: {if: {x: {p: 1, q: [2]}}}}}\n"),
		flowtest.Plan(t, "profile: pgflow\nnodes: {a: {when: {if: {x: {q: [2.0], p: 1e0}}}}}\n")), "nor does the order of keys count")
	graph := flowtest.Plan(t, "start: a\nnodes: {a: {service: s}, b: {service: s}}\nedges: [{from: a, action: x, to: b}]\n")
	other := flowtest.Plan(t, "start: a\nnodes: {a: {service: s}, b: {service: s}}\nedges: [{from: a, action: y, to: b}]\n")
	require.Equal(t, []string{"step a: the set of edges is y → b, was x → b"}, show.Differences(graph, other))
}
