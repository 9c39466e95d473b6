package compile_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/definition"
	"github.com/troupe-engine/troupe/definition/compile"
	"github.com/troupe-engine/troupe/flow"
)

func TestItemsWithoutAServiceAreReported(t *testing.T) {
	text := "start: a\nnodes: {a: {kind: foreach, prep: {input_key: $params.l}, foreach_execs: [{index: 0, "
	rest := "nodes.a.service: is missing: only the items in foreach_execs can be carried out; say " +
		"which service of the workers does this"
	for of, want := range map[string][]string{
		"exec_type: local_func, func: f}]}}": {rest},
		"params: {x: 1}}]}}": {rest,
			"nodes.a.foreach_execs[0].service: is missing: say which service of the workers does this"},
	} {
		_, problems := compile.Text([]byte(text+of), flow.Limits{})
		require.Equal(t, definition.SeverityWarning, problems[0].Severity)
		var told []string
		for _, p := range problems {
			told = append(told, p.Path+": "+p.Msg)
		}
		require.Equal(t, want, told)
	}
}

func TestANodeWithoutAServiceIsRefused(t *testing.T) {
	for name, tt := range map[string]struct{ text, path string }{
		"no fields": {"start: a\nnodes: {a: {}}", "nodes.a"},
		"nothing":   {"start: a\nnodes: {a: }", "nodes.a"},
		"a branch": {"start: a\nnodes: {a: {kind: parallel, parallel_execs: [{params: {x: 1}}]}}",
			"nodes.a.parallel_execs[0]"},
		"each item":        {"start: a\nnodes: {a: {kind: foreach, prep: {input_key: $params.list}}}", "nodes.a"},
		"in a subflow":     {"start: a\nnodes: {a: {kind: subflow, subflow: {start: b, nodes: {b: {}}}}}", "nodes.a.subflow.nodes.b"},
		"in a flow inside": {"start: a\nnodes: {a: {kind: subflow, flow: {start: b, nodes: {b: {}}}}}", "nodes.a.flow.nodes.b"},
		"compensate":       {"start: a\nnodes: {a: {service: s, compensate: b}, b: {}}", "nodes.b"},
		"finally":          {"start: a\nfinally: b\nnodes: {a: {service: s}, b: {}}", "nodes.b"},
	} {
		t.Run(name, func(t *testing.T) {
			_, problems := compile.Text([]byte(tt.text), flow.Limits{})
			require.Len(t, problems, 1)
			require.Equal(t, definition.SeverityError, problems[0].Severity)
			require.Equal(t, tt.path+
				".service: is missing: say which service of the workers does this",
				problems[0].Path+": "+problems[0].Msg)
			plan, problems := compile.Text([]byte("profile: pocketflow\n"+tt.text), flow.Limits{})
			require.NotNil(t, plan)
			require.Equal(t, definition.SeverityWarning, problems[0].Severity)
			require.Equal(t, tt.path+".service: is missing: no worker can be found for this", problems[0].Path+": "+problems[0].Msg)
		})
	}
}

func TestAMissingLocalFunctionIsAWarning(t *testing.T) {
	site := compile.Site{Func: func(name string) error {
		if name == "known" {
			return nil
		}
		return fmt.Errorf("no %s", name)
	}}
	for text, want := range map[string]string{
		"start: a\nnodes: {a: {func: known}}":                                                "",
		"start: a\nnodes: {a: {func: f}}":                                                    "nodes.a.func: no f",
		"start: a\nnodes: {a: {kind: parallel, parallel_execs: [{func: known}, {func: f}]}}": "nodes.a.parallel_execs[1].func: no f",
		"start: a\nnodes: {a: {kind: foreach, func: f, prep: {input_key: $params.list}}}":    "nodes.a.func: no f",
		"start: a\nnodes: {a: {kind: foreach, func: known, prep: {input_key: $params.list}, " +
			"foreach_execs: [{index: 1, func: f}]}}": "nodes.a.foreach_execs[0].func: no f",
		"start: a\nnodes: {a: {kind: subflow, subflow: {start: b, nodes: {b: {service: s}}}, " +
			"subflow_execs: [{node: b, exec_type: local_func, func: f}]}}": "nodes.a.subflow.nodes.b.func: no f",
		"mode: dag\nnodes: {a: {func: f}}":                                 "nodes.a.func: no f",
		"mode: dag\nnodes: {a: {service: s, when: {cond: {func: f}}}}":     "nodes.a.when.cond.func: no f",
		"mode: dag\nnodes: {a: {service: s, compensate: b}, b: {func: f}}": "nodes.b.func: no f",
		"mode: dag\nnodes: {a: {kind: map, func: f}}":                      "nodes.a.func: no f",
	} {
		d, err := definition.Parse([]byte(text))
		require.NoError(t, err)
		plan, problems := site.Definition(d, flow.Limits{})
		require.NotNil(t, plan, "%s: %v", text, problems)
		if want == "" {
			require.Empty(t, problems, text)
			continue
		}
		require.Len(t, problems, 1, text)
		require.Equal(t, want, problems[0].Path+": "+problems[0].Msg, text)
		require.Equal(t, definition.SeverityWarning, problems[0].Severity)
	}
}
