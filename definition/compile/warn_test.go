package compile_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/definition/compile"
	"github.com/troupe-engine/troupe/flow"
)

func warningsOf(text string) (told []string) {
	_, problems := compile.Text([]byte(text), flow.Limits{})
	for _, p := range problems {
		told = append(told, p.String())
	}
	return told
}

func TestProbablyUnintendedDefinitionsAreWarnings(t *testing.T) {
	for name, tt := range map[string]struct {
		text string
		want []string
	}{
		"a node that nothing leads to, with those behind it": {
			"start: a\nnodes:\n  a: {service: s}\n  b: {service: s}\n  c: {service: s}\nedges: [{from: b, action: default, to: c}]\n",
			[]string{`4:3: warning: nodes.b: is never reached from "a": add an edge to it, or leave it out`},
		},
		"nodes that only lead to each other": {
			"start: a\nnodes:\n  a: {service: s}\n  b: {service: s}\n  c: {service: s}\nedges: " +
				"[{from: b, action: default, to: c}, {from: c, action: default, to: b}]\n",
			[]string{
				`4:3: warning: nodes.b: is never reached from "a": add an edge to it, or leave it out`,
				`5:3: warning: nodes.c: is never reached from "a": add an edge to it, or leave it out`,
			},
		},
		"what compensates or comes finally needs no edge": {
			"start: a\nfinally: c\nnodes:\n  a: {service: s, compensate: b}\n  b: {service: s}\n  c: {service: s}\n", nil,
		},
		"a misspelled edge leads where it was meant to": {
			"start: a\nnodes:\n  a: {service: s}\n  ship: {service: s}\nedges: [{from: a, action: default, to: shipp}]\n",
			[]string{`5:40: edges[0].to: unknown node "shipp": did you mean ship?`},
		},
		"an edge for an approval that nobody gives": {
			"start: a\nnodes:\n  a: {kind: approval, params: {approval_key: $shared.ok}}\n  b: " +
				"{service: s}\nedges: [{from: a, action: aproved, to: b}, {from: a, action: " +
				"question, to: b}]\n",
			[]string{`5:27: warning: edges[0].action: node "a" does not end with the action "aproved": did you mean approved?`},
		},
		"an edge for a case that there is not": {
			"start: a\nnodes:\n  a: {kind: choice, choice_cases: [{action: big, expr: {gt: " +
				"[$params.n, 1]}}], default_action: small}\n  b: {service: s}\nedges: [{from: " +
				"a, action: large, to: b}, {from: a, action: small, to: b}]\n",
			[]string{
				`3:45: warning: nodes.a.choice_cases[0].action: no edge has the action "big", ` +
					`so the flow ends after it (if that is meant, write an edge with to: "")`,
				`5:27: warning: edges[0].action: node "a" never ends with the action "large": it ends with big, small`,
			},
		},
		"an action that has an edge to the end": {
			"start: a\nnodes:\n  a: {kind: choice, choice_cases: [{action: big, expr: {gt: " +
				"[$params.n, 1]}}], default_action: small}\n  b: {service: s}\nedges: [{from: " +
				"a, action: big}, {from: a, action: small, to: b}]\n", nil,
		},
		"an edge of a node that has no actions": {
			"start: a\nnodes:\n  a: {service: s}\n  b: {service: s}\nedges: [{from: a, action: done, to: b}]\n",
			[]string{`5:27: warning: edges[0].action: node "a" never ends with the action ` +
				`"done": write default, or error for what follows a failure`},
		},
		"an action of the worker's choice": {
			"start: a\nnodes:\n  a: {service: s, post: {action_key: next}}\n  b: {service: " +
				"s}\nedges: [{from: a, action: done, to: b}]\n", nil,
		},
		"a result that nobody writes": {
			"start: a\nresult: pirce\nnodes:\n  a: {service: s, post: {output_key: price}}\n",
			[]string{`2:9: warning: result: no node writes the key "pirce" of shared: did you mean price?`},
		},
		"a bare word that was meant to be a param": {
			"start: a\nnodes:\n  a: {kind: foreach, service: s, prep: {input_key: items}}\n",
			[]string{`3:52: warning: nodes.a.prep.input_key: "items" is read as the key "items" ` +
				`of shared, which no node writes: did you mean $params.items?`},
		},
		"a bare word that is a key of shared": {
			"start: a\nnodes:\n  a: {service: s, post: {output_key: items}}\n  b: {service: s, " +
				"prep: {input_key: items.first}}\nedges: [{from: a, action: default, to: b}]\n", nil,
		},
		"a reference without its $": {
			"start: a\nnodes:\n  a: {service: s, prep: {input_map: {n: params.n, title: Release notes}}}\n",
			[]string{`3:41: warning: nodes.a.prep.input_map.n: "params.n" is a text: references begin with $, so write $params.n`},
		},
		"a reference without its $ in a dag": {
			"nodes:\n  a: {service: s}\n  b: {service: s, depends_on: [a], prep: {input_map: {n: a.n, m: run.m, title: a}}}\n",
			[]string{
				`3:58: warning: nodes.b.prep.input_map.n: "a.n" is a text: references begin with $, so write $deps.a.n`,
				`3:66: warning: nodes.b.prep.input_map.m: "run.m" is a text: references begin with $, so write $run.m`,
			},
		},
		"a misspelled key of shared": {
			"start: a\nnodes:\n  a: {service: s, post: {output_key: price}}\n  b: {service: s, " +
				"prep: {input_key: $shared.pirce.net}}\nedges: [{from: a, action: default, to: b}]\n",
			[]string{`4:37: warning: nodes.b.prep.input_key: no node writes the key "pirce" of shared: did you mean $shared.price?`},
		},
		"a misspelled key of shared in an expression in CEL": {
			"start: a\nnodes:\n  a: {service: s, post: {output_key: total}}\n  b: {kind: " +
				"choice, choice_cases: [{action: x, expr: 'shared.total > 1 && shared.totl > " +
				"3'}]}\nedges: [{from: a, action: default, to: b}]\n",
			[]string{`4:75: warning: nodes.b.choice_cases[0].expr: no node writes the key "totl" of shared: did you mean shared.total?`},
		},
		"keys of shared that nobody writes": {
			"start: a\nnodes:\n  a: {service: s, prep: {input_key: $shared.nope}}\n  b: " +
				"{service: s, prep: {input_map: {n: $shared.other.n}}}\n" +
				"  c: {kind: choice, choice_cases: [{action: x, expr: {gt: [$shared.third, 1]}}, {action: y, expr: shared.fourth > 1}]}\n" +
				"edges: [{from: a, action: default, to: b}, {from: b, action: default, to: c}]\n",
			[]string{
				`3:37: warning: nodes.a.prep.input_key: no node writes the key "nope" of ` +
					`shared, and none waits for a signal, which could set it`,
				`4:41: warning: nodes.b.prep.input_map.n: no node writes the key "other" of ` +
					`shared, and none waits for a signal, which could set it`,
				`5:60: warning: nodes.c.choice_cases[0].expr.gt[0]: no node writes the key ` +
					`"third" of shared, and none waits for a signal, which could set it`,
				`5:99: warning: nodes.c.choice_cases[1].expr: no node writes the key "fourth" ` +
					`of shared, and none waits for a signal, which could set it`,
			},
		},
		"a key of shared that a signal may set": {
			"start: a\nnodes:\n  a: {service: s, prep: {input_key: $shared.nope}}\n  b: {kind: " +
				"approval, params: {approval_key: $shared.ok}}\nedges: [{from: a, action: " +
				"default, to: b}]\n", nil,
		},
		"a key of shared that a flow which is not at hand may set": {
			"start: a\nnodes:\n  a: {service: s, prep: {input_key: $shared.nope}}\n  b: {kind: " +
				"subflow, flow: other}\nedges: [{from: a, action: default, to: b}]\n",
			[]string{`4:28: nodes.b.flow: unknown flow "other": publish it first`},
		},
		"a key of shared that undoing a part sets": {
			"start: a\nnodes:\n  a: {kind: subflow, subflow: {start: x, nodes: {x: {service: s, " +
				"compensate: u}, u: {service: s, prep: {input_key: $shared.far}, post: " +
				"{output_key: undone}}}}}\n" +
				"  b: {service: s, prep: {input_key: $shared.undone}}\nedges: [{from: a, action: error, to: b}]\n", nil,
		},
		"a key of the shared around a subflow": {
			"start: a\nnodes:\n  a: {service: s, post: {output_key: total}}\n  b: {kind: " +
				"subflow, subflow: {start: x, nodes: {x: {service: s, prep: {input_key: " +
				"$shared.total}}}}}\nedges: [{from: a, action: default, to: b}]\n",
			[]string{`4:84: warning: nodes.b.subflow.nodes.x.prep.input_key: no node writes the ` +
				`key "total" of shared here: a flow inside another one has a shared state of its own`},
		},
		"a misspelled param of a wait": {
			"start: a\nnodes:\n  a: {kind: wait_event, params: {signal_kye: $shared.x}}\n",
			[]string{`3:46: warning: nodes.a.params.signal_kye: no wait_event reads this: did you mean signal_key?`},
		},
		"a condition about what the node does not see": {
			"nodes:\n  check: {service: s}\n  b:\n    service: s\n    depends_on: [check]\n    " +
				"when: {if: {chek: {n: 1}, check: {n: 1}, run: {}}, if_not: {b: {}}}\n",
			[]string{
				`6:17: warning: nodes.b.when.if.chek: the node sees no "chek", so this is never met: did you mean check?`,
				`6:65: warning: nodes.b.when.if_not.b: the node sees no "b", so this is always met`,
			},
		},
		"a condition about an input of another shape": {
			"input_shape: deps\nnodes:\n  a: {service: s, when: {if: {any: 1}}}\n  b: {service: " +
				"s, depends_on: [a], when: {if: {run: {n: 1}}}}\n  c: {service: s, depends_on: " +
				"[a], input_shape: merged, when: {if: {n: 1}}}\n",
			[]string{`4:48: warning: nodes.b.when.if.run: the node sees no "run", so this is never met`},
		},
		"an input that is made of itself": {
			"start: a\nnodes:\n  a: {service: s, compensate: u, prep: {input_map: {n: " +
				"$input.n}}}\n  u: {service: s, prep: {input_key: $input}}\n",
			[]string{`3:56: warning: nodes.a.prep.input_map.n: "$input.n" is null here, because ` +
				`prep is what makes the node's input: write $params. or $shared.`},
		},
		"an edge to a node that compensates": {
			"start: a\nnodes:\n  a: {service: s, compensate: b}\n  b: {service: s}\n  c: " +
				"{service: s}\nedges: [{from: a, action: default, to: b}, {from: b, action: " +
				"default, to: c}]\n",
			[]string{
				`6:40: edges[0].to: node "b" compensates or runs finally: no edge leads there, or on from it`,
				`6:51: edges[1].from: node "b" compensates or runs finally: no edge leads there, or on from it`,
			},
		},
		"what is said twice": {
			"profile: pocketflow\nstart: a\nnodes:\n" +
				"  a: {service: s, max_retries: 3, retry: {max_attempts: 2}, timeout: 1s, timeout_ms: 5}\n",
			[]string{
				`4:35: nodes.a.retry: says the same as max_retries and wait_ms: give one of them`,
				`4:70: nodes.a.timeout: says the same as timeout_ms: give one of them`,
			},
		},
		"how many workers an attempt calls, said twice": {
			"profile: pocketflow\nstart: a\nnodes:\n" +
				"  a: {service: s, workers_per_attempt: 2, max_attempts: 3, worker_delay: 1s, attempt_delay_ms: 5}\n",
			[]string{
				`4:40: nodes.a.workers_per_attempt: says the same as max_attempts: give one of them`,
				`4:74: nodes.a.worker_delay: says the same as attempt_delay_ms: give one of them`,
			},
		},
		"misspelled names": {
			"start: aa1\nfinally: endd\nnodes:\n  a1: {service: s, compensate: undoo}\n  undo: {service: s}\n  end: {service: s}\n",
			[]string{
				`1:8: start: unknown node "aa1": did you mean a1?`,
				`2:10: finally: unknown node "endd": did you mean end?`,
				`4:32: nodes.a1.compensate: unknown node "undoo": did you mean undo?`,
			},
		},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, tt.want, warningsOf(tt.text)) })
	}
}

func TestALoopWithoutAnyPauseIsAWarning(t *testing.T) {
	const back = "edges: [{from: a, action: default, to: b}, {from: b, action: default, to: a}]"
	for nodes, loops := range map[string]bool{
		"a: {kind: choice}, b: {kind: choice}":                                                                                true,
		"a: {kind: choice}, b: {kind: timer, params: {delay_ms: 0}}":                                                          true,
		"a: {kind: choice}, b: {kind: subflow, subflow: {start: c, nodes: {c: {kind: choice}}}}":                              true,
		"a: {kind: choice}, b: {kind: timer, params: {delay_ms: 5}}":                                                          false,
		"a: {kind: choice}, b: {kind: timer, params: {delay_ms: $params.wait}}":                                               false,
		"a: {kind: choice}, b: {kind: approval, params: {approval_key: ok}}":                                                  false,
		"a: {kind: choice}, b: {kind: wait_event, params: {signal_key: ok}}":                                                  false,
		"a: {kind: choice}, b: {service: s}":                                                                                  false,
		"a: {kind: choice}, b: {kind: subflow, subflow: {start: c, nodes: {c: {service: s}}}}":                                false,
		"a: {kind: choice}, b: {kind: subflow, flow: {nodes: {c: {service: s}}}}":                                             false,
		"a: {kind: choice}, b: {kind: subflow, subflow: {start: c, nodes: {c: {kind: wait_event, params: {signal_key: x}}}}}": false,
	} {
		var want []string
		if loops {
			want = []string{`2:9: warning: nodes.a: the loop a → b → a has no work, wait or ` +
				`timer in it: a task that goes round it fails after 10000 steps`}
		}
		require.Equal(t, want, slices.DeleteFunc(told(t, "start: a\nnodes: {"+nodes+"}\n"+back),
			func(p string) bool {
				return !strings.Contains(p, "loop") && !strings.Contains(p,
					"error")
			}), nodes)
	}
}

func TestControlParamsThatATaskMayChangeAreWarnings(t *testing.T) {
	const wins, unless = "in profile pocketflow a task's param ", ": write profile: troupe, or declare inputs without it"
	definition := `start: a
nodes:
  a: {kind: approval, params: {approval_key: $shared.ok}}
  w: {kind: wait_event, params: {signal_key: $shared.go, timeout_ms: 5}}
  t: {kind: timer, params: {delay_ms: 5}}
  p: {kind: parallel, params: {services: [s]}}
  q: {kind: parallel, parallel_services: [s]}
edges: [{from: a, action: default, to: w}, {from: w, action: default, to: t}, {from: t, action: default, to: p}, {from: p, action: default, to: q}]
`
	require.Equal(t, []string{
		"4:46: warning: nodes.a.params.approval_key: " + wins +
			"approval_key wins over this and decides what approves, also without a person" + unless,
		"5:46: warning: nodes.w.params.signal_key: " + wins + "signal_key wins over this and decides what ends the wait" + unless,
		"5:70: warning: nodes.w.params.timeout_ms: " + wins + "timeout_ms wins over this and decides how long it waits" + unless,
		"6:39: warning: nodes.t.params.delay_ms: " + wins + "delay_ms wins over this and decides how long the timer waits" + unless,
		"7:32: warning: nodes.p.params.services: " + wins + "services wins over this and decides which services are called" + unless,
	}, told(t, "profile: pocketflow\n"+definition))
	require.Empty(t, told(t, definition), "elsewhere the node wins")
	require.Empty(t, told(t, "profile: pocketflow\ninputs: {amount: int}\n"+definition), "inputs name all that a task may bring")
}

func TestAParamOfAChoiceIsAWarning(t *testing.T) {
	const choice = "start: a\nnodes: {a: {kind: choice, params: {size: 1}, choice_cases: " +
		"[{action: x, expr: {gt: [$params.size, 2]}}], default_action: y}}"
	require.Equal(t, []string{"2:42: warning: nodes.a.params.size: always wins over what a task " +
		"brings: for a default declare it in the inputs of the flow"}, told(t, choice))
	require.Empty(t, told(t, "profile: pocketflow\n"+choice))
}

func TestWritingAnAwaitedKeyIsAWarning(t *testing.T) {
	require.Equal(t, []string{
		`3:38: warning: nodes.a.post.output_key: the key "decision" is what node "ask" waits ` +
			`for, which only a signal or an answer sets: what a node writes there ends no wait`,
	}, told(t, `start: a
nodes:
  a: {service: s, post: {output_key: decision}}
  ask: {kind: approval, params: {approval_key: $shared.decision.legal}, post: {output_key: decision}}
edges: [{from: a, action: default, to: ask}]`))
}
