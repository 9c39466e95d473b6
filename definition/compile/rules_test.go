package compile_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/definition/compile"
	"github.com/troupe-engine/troupe/flow"
)

// TestEveryRuleOfDagModeReportsProblemPlaceAndAdvice has a violation of each rule, with all
// reported problems.
func TestEveryRuleOfDagModeReportsProblemPlaceAndAdvice(t *testing.T) {
	for _, tt := range []struct {
		definition string
		problems   []string
	}{
		{`nodes: {1a: {service: s}}`, []string{
			`1:9: nodes.1a: the key "1a" is no slug: it begins with a letter or _ and has up to 128 letters, digits and _`,
		}},
		{`nodes: {a-b: {service: s}}`, []string{
			`1:9: nodes.a-b: the key "a-b" is no slug: it begins with a letter or _ and has up to 128 letters, digits and _`,
		}},
		{`nodes: {a/b: {service: s}}`, []string{
			`1:9: nodes.a/b: the key "a/b" holds / or :, which only slugs made by the compiler may have`,
		}},
		{`nodes: {'gate:b': {service: s}}`, []string{
			`1:9: nodes.gate:b: the key "gate:b" holds / or :, which only slugs made by the compiler may have`,
		}},
		{`nodes: {run: {service: s}}`, []string{
			`1:9: nodes.run: the key run is reserved for the run's input`,
		}},
		{`nodes: {output: {service: s}}`, []string{
			`1:9: nodes.output: the key output is reserved: write kind: output`,
		}},
		{"nodes:\n  a: {service: s}\n  a: {service: s}", []string{
			`3:3: nodes.a: the key is there twice, first in line 2`,
		}},
		{`{"nodes":{"a":{"service":"s"},"a":{"service":"t"}}}`, []string{
			`1:31: nodes.a: the key is there twice, first in line 1`,
		}},
		{`nodes: {B: {kind: branch, flow: {nodes: {x: {service: s}}}}, B/x: {service: s}}`, []string{
			`1:62: nodes.B/x: the key "B/x" holds / or :, which only slugs made by the compiler may have`,
		}},
		{`nodes: {a: {service: s, depends_on: [b]}}`, []string{
			`1:38: nodes.a.depends_on[0]: unknown node "b"`,
		}},
		{`nodes: {a: {service: s, depends_on: [a]}}`, []string{
			`1:38: nodes.a.depends_on[0]: a node cannot wait for itself`,
		}},
		{`nodes: {a: {service: s}, b: {service: s, depends_on: [a, a]}}`, []string{
			`1:58: nodes.b.depends_on[1]: "a" is there twice`,
		}},
		{`nodes: {a: {service: s, depends_on: [b]}, b: {service: s, depends_on: [a]}}`, []string{
			`1:1: nodes: nodes wait for each other in a circle: a → b → a`,
		}},
		{`nodes: {a: {service: s, depends_on: ['']}}`, []string{
			`1:38: nodes.a.depends_on[0]: unknown node ""`,
		}},
		{`nodes: {a: {route: direct, service: s}}`, []string{
			`1:20: nodes.a.route: a direct node has no handler: leave out its service, func or script, or choose another route`,
		}},
		{`nodes: {a: {route: queue}}`, []string{
			`1:9: nodes.a.service: is missing: say whose queue the job waits in`,
		}},
		{`nodes: {a: {route: push}}`, []string{
			`1:9: nodes.a: has nothing to do: give it a service, a func, a script or route: direct`,
		}},
		{`nodes: {a: {}}`, []string{
			`1:9: nodes.a: has nothing to do: give it a service, a func, a script or route: direct`,
		}},
		{`nodes: {a: {kind: fanout, service: s}}`, []string{
			`1:9: nodes.a.each.items: is missing: say where the items come from`,
		}},
		{`nodes: {a: {kind: fanout, service: s, each: {}}}`, []string{
			`1:39: nodes.a.each.items: is missing: say where the items come from`,
		}},
		{`nodes: {a: {service: s, each: {items: 3}}}`, []string{
			`1:39: nodes.a.each.items: must be a reference or a handler: for a number of units write count`,
		}},
		{`nodes: {a: {service: s, each: {items: []}}}`, []string{
			`1:39: nodes.a.each.items: must be a reference such as $deps.fetch.rows or a handler such as {service: rows}, is an array`,
		}},
		{`nodes: {a: {service: s, each: {items: $deps.b}}}`, []string{
			`1:39: nodes.a.each.items: "$deps.b" refers to "b", which is not among depends_on`,
		}},
		{`nodes: {a: {service: s, each: {count: 0}}}`, []string{
			`1:39: nodes.a.each.count: must be 1 at least`,
		}},
		{`nodes: {a: {service: s, each: {count: -1}}}`, []string{
			`1:39: nodes.a.each.count: must be 1 at least`,
		}},
		{`nodes: {a: {service: s, each: {count: 1.5}}}`, []string{
			`1:25: nodes.a.each.items: is missing: say where the items come from`,
			`1:39: nodes.a.each.count: must be a whole number, is 1.5`,
		}},
		{`nodes: {a: {service: s, each: {count: 3, concurrency: -1}}}`, []string{
			`1:55: nodes.a.each.concurrency: must not be negative`,
		}},
		{`nodes: {a: {service: s, each: {count: {service: x}}}}`, []string{
			`1:32: nodes.a.each.count: must be a number or a reference`,
		}},
		{`nodes: {a: {service: s, each: {count: 200000}}}`, []string{
			`1:39: nodes.a.each.count: is more than the 100000 units a step may have`,
		}},
		{`nodes: {a: {service: s, each: {count: 2, on_error: explode}}}`, []string{
			`1:52: nodes.a.each.on_error: unknown word "explode": write fail_fast, collect or continue`,
		}},
		{`nodes: {B: {kind: branch, flow: {embedded: x, nodes: {a: {service: s}}}}}`, []string{
			`1:9: nodes.B.prep: is missing: an embedded flow gets its input from it`,
		}},
		{`nodes: {B: {kind: branch, flow: x}}`, []string{
			`1:33: nodes.B.flow: unknown flow "x": publish it first`,
		}},
		{`nodes: {B: {kind: branch}}`, []string{
			`1:9: nodes.B.flow: is missing: say what the branch consists of`,
		}},
		{`nodes: {B: {kind: subflow}}`, []string{
			`1:9: nodes.B.flow: is missing: say what the branch consists of`,
		}},
		{`nodes: {a: {kind: output}, b: {kind: output}}`, []string{
			`1:28: nodes.b: a scope has one output at most: output is another one`,
		}},
		{`nodes: {a: {service: s}, o: {kind: output, depends_on: [a]}}`, []string{
			`1:44: nodes.o.depends_on: has no effect on this output: an output waits for all leaves: leave it out`,
		}},
		{`nodes: {a: {service: s, depends_on: [o]}, o: {kind: output}}`, []string{
			`1:38: nodes.a.depends_on[0]: unknown node "o"`,
		}},
		{`nodes: {o: {kind: output, when: {if: {a: 1}}}}`, []string{
			`1:27: nodes.o.when: has no effect on this output: an output has no condition`,
		}},
		{`nodes: {o: {kind: output, each: {count: 2}}}`, []string{
			`1:27: nodes.o.each: has no effect on this output: only an executor has units`,
		}},
		{`nodes: {o: {kind: output, run_on: always, skip_mode: optional, compensate: x}, x: {service: s}}`, []string{
			`1:35: nodes.o.run_on: has no effect on this output: an output runs however the leaves end: leave it out`,
			`1:54: nodes.o.skip_mode: has no effect on this output: without a condition nothing is skipped: add when, or leave it out`,
			`1:76: nodes.o.compensate: has no effect on this output: nothing undoes an output`,
		}},
		{`nodes: {a: {service: s}, b: {service: s}, m: {kind: map, service: s, depends_on: [a, b]}}`, []string{
			`1:70: nodes.m.depends_on: a map works on one list: it has one dependency at most`,
		}},
		{`nodes: {a: {service: s, when: {if: 3}}}`, []string{
			`1:36: nodes.a.when.if: a pattern is an object, such as {"run": {"plan": "free"}}`,
		}},
		{`nodes: {a: {service: s, when: {if_not: [1]}}}`, []string{
			`1:32: nodes.a.when.if_not: a pattern is an object, such as {"run": {"plan": "free"}}`,
		}},
		{`nodes: {a: {service: s, when: {if: null}}}`, []string{
			`1:25: nodes.a.when: says nothing: write if, if_not, expr or cond`,
		}},
		{`nodes: {a: {service: s, when: {}}}`, []string{
			`1:25: nodes.a.when: says nothing: write if, if_not, expr or cond`,
		}},
		{`nodes: {a: {service: s, when: {cond: {}}}}`, []string{
			`1:32: nodes.a.when.cond: has nothing to do: give it a service, a func, a script or route: direct`,
		}},
		{`nodes: {a: {service: s, skip_mode: optional}}`, []string{
			`1:36: nodes.a.skip_mode: has no effect on this executor: without a condition nothing is skipped: add when, or leave it out`,
		}},
		{`nodes: {a: {service: s, when: {if: {}}, skip_mode: no}}`, []string{
			`1:52: nodes.a.skip_mode: unknown word "no": write propagate, optional or fail`,
		}},
		{`nodes: {a: {service: s, when: {if: {}}, whenUnmet: skip, skip_mode: optional}}`, []string{
			`1:52: nodes.a.whenUnmet: says the same as skip_mode: give one of them`,
		}},
		{`nodes: {a: {service: s, when: {if: {}}, whenUnmet: maybe}}`, []string{
			`1:52: nodes.a.whenUnmet: unknown word "maybe": write propagate, optional or fail`,
		}},
		{`nodes: {a: {service: s, whenUnmet: skip}}`, []string{
			`1:36: nodes.a.whenUnmet: has no effect on this executor: without a condition nothing is skipped: add when, or leave it out`,
		}},
		{`nodes: {a: {service: s, on_exhausted: no}}`, []string{
			`1:39: nodes.a.on_exhausted: unknown word "no": write fail, skip or skip-cascade`,
		}},
		{`nodes: {a: {service: s, run_on: never}}`, []string{
			`1:33: nodes.a.run_on: unknown word "never": write success or always`,
		}},
		{`nodes: {a: {service: s, route: train}}`, []string{
			`1:32: nodes.a.route: unknown word "train": write push, queue or direct`,
		}},
		{`nodes: {a: {service: s, retry: {max_attempts: -1}}}`, []string{
			`1:47: nodes.a.retry.max_attempts: must not be negative`,
		}},
		{`nodes: {a: {service: s, retry: {delay: -1s}}}`, []string{
			`1:25: nodes.a.retry.max_attempts: is missing: without it, nothing is retried`,
			`1:40: nodes.a.retry.delay: "-1s" is negative: write a duration from 0 on, such as 30s`,
		}},
		{`nodes: {a: {service: s, retry: {delay: soon}}}`, []string{
			`1:25: nodes.a.retry.max_attempts: is missing: without it, nothing is retried`,
			`1:40: nodes.a.retry.delay: "soon" is no duration: write it like 250ms, 90s, 1h30m, 1d12h or 2w`,
		}},
		{`nodes: {a: {service: s, retry: {delay: 5}}}`, []string{
			`1:25: nodes.a.retry.max_attempts: is missing: without it, nothing is retried`,
			`1:40: nodes.a.retry.delay: a number has no unit here: write for example 30s or 250ms`,
		}},
		{`nodes: {a: {service: s, retry: {backoff: linear}}}`, []string{
			`1:25: nodes.a.retry.max_attempts: is missing: without it, nothing is retried`,
			`1:42: nodes.a.retry.backoff: unknown word "linear": write fixed or exponential`,
		}},
		{`nodes: {a: {service: s, retry: {jitter: 2}}}`, []string{
			`1:25: nodes.a.retry.max_attempts: is missing: without it, nothing is retried`,
			`1:41: nodes.a.retry.jitter: has no effect without a pause: write delay, or backoff: exponential`,
		}},
		{`nodes: {a: {service: s, retry: {max_attempts: 2}, max_retries: 3}}`, []string{
			`1:64: nodes.a.max_retries: has no effect on this executor: write retry: ` +
				`{max_attempts: …}, which counts the first attempt, too`,
		}},
		{`nodes: {a: {service: s, start_delay: -3s}}`, []string{
			`1:38: nodes.a.start_delay: "-3s" is negative: write a duration from 0 on, such as 30s`,
		}},
		{`nodes: {a: {kind: timer, start_delay: 3s, params: {delay_ms: 1}}}`, []string{
			`1:39: nodes.a.start_delay: has no effect on this timer: only the units of an executor can begin later`,
		}},
		{`nodes: {B: {kind: branch, start_delay: 3s, flow: {nodes: {a: {service: s}}}}}`, []string{
			`1:40: nodes.B.start_delay: has no effect on this branch: only the units of an executor can begin later`,
		}},
		{"start_delay: 3s\nnodes: {a: {service: s}}", []string{
			`1:1: warning: start_delay: unknown field, ignored`,
		}},
		{`nodes: {a: {service: s, start_timeout: 3s}}`, []string{
			`1:40: nodes.a.start_timeout: has no effect on this executor: it is for jobs of a ` +
				`queue, and for workers that report by an object store: set route: queue, or ` +
				`exec: {report: object_store}`,
		}},
		{`nodes: {x: {service: s}, B: {kind: branch, flow: {nodes: {a: {service: s, depends_on: [x]}}}}}`, []string{
			`1:88: nodes.B.flow.nodes.a.depends_on[0]: unknown node "x"`,
		}},
		{`nodes: {x: {service: s, depends_on: [B/a]}, B: {kind: branch, flow: {nodes: {a: {service: s}}}}}`, []string{
			`1:38: nodes.x.depends_on[0]: "B/a" is in another scope: a node waits only for nodes beside it`,
		}},
		{`nodes: {x: {service: s, depends_on: [a]}, B: {kind: branch, flow: {nodes: {a: {service: s}}}}}`, []string{
			`1:38: nodes.x.depends_on[0]: unknown node "a"`,
		}},
		{`nodes: {a: {service: s, inputs: {x: {const: 1, ref: $run}}}}`, []string{
			`1:34: nodes.a.inputs.x: needs exactly one of const and ref`,
		}},
		{`nodes: {a: {service: s, inputs: {x: {}}}}`, []string{
			`1:34: nodes.a.inputs.x: needs exactly one of const and ref`,
		}},
		{`nodes: {a: {service: s, inputs: {x: {ref: b.y}}}}`, []string{
			`1:43: nodes.a.inputs.x.ref: "b.y" refers to "b", which is not among depends_on`,
		}},
		{`nodes: {a: {service: s, inputs: {x: {ref: $foo.y}}}}`, []string{
			`1:43: nodes.a.inputs.x.ref: "$foo.y" begins with "$foo": references begin with $run, $deps, $shared or $params`,
		}},
		{`nodes: {a: {service: s, input: {x: 1}}}`, []string{
			`1:25: nodes.a.input: has no effect on this executor: it is a part of a merged ` +
				`input: set input_shape: merged, or write inputs or prep`,
		}},
		{"input_shape: merged\nnodes: {a: {service: s, input: 3}}", []string{
			`2:32: nodes.a.input: must be an object, is a number`,
		}},
		{"input_shape: odd\nnodes: {a: {service: s}}", []string{
			`1:14: input_shape: unknown word "odd": write run_deps, deps, merged or mapped`,
		}},
		{`nodes: {a: {service: s, prep: {service: t}}}`, []string{
			`1:41: nodes.a.prep.service: has no effect on this executor: only a branch has a ` +
				`handler in prep: a fanout names one in each.items`,
		}},
		{"on_error: maybe\nnodes: {a: {service: s}}", []string{
			`1:11: on_error: unknown word "maybe": write continue or fail_fast`,
		}},
		{"profile: x\nnodes: {a: {service: s}}", []string{
			`1:10: profile: unknown profile "x": write troupe, pocketflow, ork or pgflow, or leave it out`,
		}},
		{"mode: dag\nstart: a\nnodes: {a: {service: s}}", []string{
			`2:8: start: has no effect in a dag: leave it out, or set mode: graph`,
		}},
		{"mode: dag\nedges: [{from: a, action: x, to: a}]\nnodes: {a: {service: s}}", []string{
			`2:1: edges: has no effect in a dag: write depends_on, or set mode: graph`,
		}},
		{"mode: dag\nnodes: {a: {kind: choice}}", []string{
			`2:9: nodes.a: has nothing to do: give it a service, a func, a script or route: direct`,
			`2:19: nodes.a.kind: a dag has no choice: give the nodes a when`,
		}},
		{"mode: dag\nnodes: {a: {kind: zip}}", []string{
			`2:9: nodes.a: has nothing to do: give it a service, a func, a script or route: direct`,
			`2:19: nodes.a.kind: unknown kind "zip": write executor, fanout, branch, output, timer, wait_event or approval`,
		}},
		{`nodes: {a: {service: s, compensate: b}}`, []string{
			`1:37: nodes.a.compensate: unknown node "b"`,
		}},
		{`nodes: {a: {service: s, compensate: a}}`, []string{
			`1:37: nodes.a.compensate: node "a" has a compensate itself: nothing undoes what undoes`,
		}},
		{`nodes: {a: {service: s, compensate: b}, b: {service: s, depends_on: [a]}}`, []string{
			`1:57: nodes.b.depends_on: has no effect on this executor: it only runs when the task is over: leave it out`,
		}},
		{`nodes: {a: {service: s, compensate: b}, b: {service: s}, c: {service: s, depends_on: [b]}}`, []string{
			`1:87: nodes.c.depends_on[0]: "b" compensates or runs finally: nobody can wait for it`,
		}},
		{"finally: z\nnodes: {a: {service: s}}", []string{
			`1:10: finally: unknown node "z"`,
		}},
		{`nodes: {B: {kind: branch, flow: {finally: a, nodes: {a: {service: s}}}}}`, []string{
			`1:43: nodes.B.flow.finally: has no effect in a flow inside another one: write it in the whole flow`,
		}},
		{`nodes: {a: {service: s, each: {items: $run.x, count: 2}}, b: {service: s, each: {count: $deps.a.n}}}`, []string{
			`1:89: nodes.b.each.count: "$deps.a.n" refers to "a", which is not among depends_on`,
		}},
		{`nodes: {a: {service: s, params: 3}}`, []string{
			`1:33: nodes.a.params: must be an object, is a number`,
		}},
		{`nodes: {a: {service: s, depends_on: a}}`, []string{
			`1:37: nodes.a.depends_on: must be an array, is a string`,
		}},
		{`nodes: {B: {kind: branch, flow: {nodes: {a: {service: s}}}, route: queue, service: x, each: {count: 2}}}`, []string{
			`1:68: nodes.B.route: has no effect on this branch: only jobs travel: give it to the nodes inside`,
			`1:84: nodes.B.service: has no effect on this branch: it has no jobs of its own: give it to the nodes inside`,
			`1:87: nodes.B.each: has no effect on this branch: only an executor has units`,
		}},
		{`nodes: {a: {kind: timer, each: {count: 2}, params: {delay_ms: 1}}}`, []string{
			`1:26: nodes.a.each: has no effect on this timer: only an executor has units`,
		}},
		{`nodes: {a: {service: s, flow: {nodes: {b: {service: s}}}}}`, []string{
			`1:25: nodes.a.flow: has no effect on this executor: only a branch has a flow inside: set kind: branch`,
		}},
		{"mode: dag\nnodes: {'': {service: s}}", []string{
			`2:9: nodes.: the key "" is no slug: it begins with a letter or _ and has up to 128 letters, digits and _`,
		}},
		{`nodes: {a: {service: s, timeout: 1s, timeout_ms: 5}}`, []string{
			`1:34: nodes.a.timeout: says the same as timeout_ms: give one of them`,
		}},
		{`nodes: {a: {service: s}, b: {service: s, depends_on: [a], input_shape: merged, input: {a: 1}}}`, []string{
			`1:91: warning: nodes.b.input.a: is never seen: the output of the dependency lies over it`,
		}},
		{"mode: dag\nnodes: {a: {service: s, post: {output_key: x}, failure_strategy: continue, " +
			"max_parallel: 2, on_error: fail, skip_mode: fail}}", []string{
			`2:44: nodes.a.post.output_key: has no effect on this executor: the nodes that depend on it get its output`,
			`2:66: nodes.a.failure_strategy: has no effect on this executor: write on_exhausted, or each: {on_error: …}`,
			`2:90: nodes.a.max_parallel: has no effect on this executor: write each: {concurrency: …}`,
			`2:103: nodes.a.on_error: has no effect on this executor: write on_exhausted, or on_error of the flow`,
			`2:120: nodes.a.skip_mode: has no effect on this executor: without a condition nothing is skipped: add when, or leave it out`,
		}},
		{"start: a\nnodes: {a: {service: s}, b: {service: s, depends_on: [a], when: {if: {}}, start_delay: 1s}}", []string{
			`2:42: nodes.b.depends_on: has no effect on this executor: write edges, or leave ` +
				`out start and edges, which make the flow a graph`,
			`2:59: nodes.b.when: has no effect on this executor: write kind: choice`,
			`2:88: nodes.b.start_delay: has no effect on this executor: write a node of kind timer`,
		}},
		{"mode: dag\nresult: x\nnodes:\n  a: {service: s, exec_type: queue, route: push}\n  b: " +
			"{service: s, inputs: {x: {const: 1}}, prep: {input_key: $run.x}}\n" +
			"  c: {service: s, prep: {input_key: $run.x}, input_shape: deps}\n  d: {route: " +
			"direct, heartbeat_timeout: 1s}\n  e: {service: s, when: {cond: {service: c, route: direct}}}",
			[]string{
				`2:9: result: has no effect in a dag: write a node of kind output`,
				`4:44: nodes.a.route: says otherwise than exec_type: give one of them`,
				`5:44: nodes.b.prep: the input is said by inputs already: give one of them`,
				`6:59: nodes.c.input_shape: has no effect on this executor: inputs or prep make the ` +
					`input, or neither a handler nor a pattern of when gets one`,
				`7:41: nodes.d.heartbeat_timeout: has no effect on this executor: it is for jobs of ` +
					`a queue, and for workers that report by an object store: set route: queue, or ` +
					`exec: {report: object_store}`,
				`8:52: nodes.e.when.cond.route: a direct node has no handler: leave out its ` +
					`service, func or script, or choose another route`,
			}},
		{"nodes:\n  B: {kind: branch, service: s, on_exhausted: skip, params: {a: 1}, input: " +
			"{a: 1}, inputs: {x: {const: 1}}, retry: {max_attempts: 2},\n" +
			"    labels: [x], timeout: 3s, flow: {nodes: {x: {service: s}}}}", []string{
			`2:30: nodes.B.service: has no effect on this branch: it has no jobs of its own: give it to the nodes inside`,
			`2:47: nodes.B.on_exhausted: has no effect on this branch: nothing of it can fail ` +
				`by itself: leave it out, or give it to the nodes inside`,
			`2:53: nodes.B.params: has no effect on this branch: give it to the nodes inside, or write prep`,
			`2:69: nodes.B.input: has no effect on this branch: it is a part of a merged input: ` +
				`set input_shape: merged, or write inputs or prep`,
			`2:84: nodes.B.inputs: has no effect on this branch: a unit gets its item, with ` +
				`input_shape: merged beside the rest; of a branch write prep`,
			`2:109: nodes.B.retry: has no effect on this branch: it has no attempts to repeat: give it to the nodes that do the work`,
			`3:5: nodes.B.labels: has no effect on this branch: no worker carries it out: give it to the nodes inside, or choose workers`,
			`3:27: nodes.B.timeout: has no effect on this branch: nothing in it can be late: give it to the nodes inside`,
		}},
		{"mode: dag\nnodes:\n  t: {kind: timer, params: {delay_ms: 1}, service: s, retry: " +
			"{max_attempts: 2}, on_exhausted: skip, inputs: {x: {const: 1}}}\n" +
			"  w: {kind: wait_event, params: {signal_key: $shared.k}, func: f, labels: [x], " +
			"prep: {input_key: $run}, on_exhausted: skip}", []string{
			`3:52: nodes.t.service: has no effect on this timer: it has no jobs of its own: give it to the nodes inside`,
			`3:55: nodes.t.retry: has no effect on this timer: it has no attempts to repeat: give it to the nodes that do the work`,
			`3:95: nodes.t.on_exhausted: has no effect on this timer: nothing of it can fail by ` +
				`itself: leave it out, or give it to the nodes inside`,
			`3:101: nodes.t.inputs: has no effect on this timer: a unit gets its item, with ` +
				`input_shape: merged beside the rest; of a branch write prep`,
			`4:64: nodes.w.func: has no effect on this wait_event: a function is called with exec_type: local_func and without a service`,
			`4:67: nodes.w.labels: has no effect on this wait_event: no worker carries it out: ` +
				`give it to the nodes inside, or choose workers`,
			`4:98: nodes.w.prep.input_key: has no effect on this wait_event: a unit gets its ` +
				`item, with input_shape: merged beside the rest`,
		}},
		{"mode: dag\nnodes:\n  a: {exec: {service: s}, service: t}\n  b: {exec: {type: " +
			"shell}}\n  c: {exec: {service: s, func: f}}\n  d: {exec: {service: s}, delay: 3s}\n" +
			"  e: {exec: {service: s}, signal: {key: k}}\n  t: {kind: timer, delay: 3, params: " +
			"{delay_ms: 5}}\n  w: {kind: wait_event, signal: {key: k}, params: {signal_key: x}}", []string{
			`3:7: nodes.a.exec: says the same as service, func, script and exec_type: give one of them`,
			`4:20: nodes.b.exec.type: unknown word "shell": write service, func, process, python, library, container or worker`,
			`5:7: nodes.c.exec: is a service or a func, not both`,
			`6:34: nodes.d.delay: has no effect on this executor: it is for a timer: units of other nodes wait by start_delay`,
			`7:27: nodes.e.signal: has no effect on this executor: it is for a wait_event or an approval`,
			`8:27: nodes.t.delay: a number has no unit here: write for example 30s or 250ms`,
			`9:39: nodes.w.signal.key: says the same as params.signal_key: give one of them`,
		}},
		{"profile: ork\nsteps: {}\nnodes: {a: {service: s, maxAttempts: 2, baseDelay: 1, ifNot: " +
			"{}, whenExhausted: skip, dependsOn: []}}", []string{
			`2:1: warning: steps: unknown field, ignored: did you mean nodes?`,
			`3:25: warning: nodes.a.maxAttempts: unknown field, ignored: did you mean retry: {max_attempts: …}?`,
			`3:41: warning: nodes.a.baseDelay: unknown field, ignored: did you mean retry: {delay: …}?`,
			`3:55: warning: nodes.a.ifNot: unknown field, ignored: did you mean when: {if_not: …}?`,
			`3:66: warning: nodes.a.whenExhausted: unknown field, ignored: did you mean on_exhausted?`,
			`3:87: warning: nodes.a.dependsOn: unknown field, ignored: did you mean depends_on?`,
		}},
		{"mode: dag\nnodes:\n  a: {service: s, each: {items: $run}, inputs: {x: {const: 1}}}\n  " +
			"b: {service: s, each: {items: $run}, prep: {input_key: $run.x}}\n" +
			"  c: {service: s, each: {items: $run}, inputs: {x: {ref: $item.id}}}\n  d: " +
			"{service: s, each: {count: 2}, inputs: {x: {const: 1}}}", []string{
			`3:40: nodes.a.inputs: has no effect on this fanout: a unit gets its item, with ` +
				`input_shape: merged beside the rest; of a branch write prep`,
			`4:58: nodes.b.prep.input_key: has no effect on this fanout: a unit gets its item, with input_shape: merged beside the rest`,
			`5:40: nodes.c.inputs: has no effect on this fanout: a unit gets its item, with ` +
				`input_shape: merged beside the rest; of a branch write prep`,
			`5:58: nodes.c.inputs.x.ref: "$item.id" cannot be referred to: a unit gets its item as it is`,
		}},
		{"profile: ork\nnodes: {}", []string{
			`2:1: nodes: there are none: an Ork workflow has one at least`,
		}},
		{"mode: dag\ndefaults: {retry: {max_attempts: 0, delay: 3, backoff: linear, jitter: 2}, " +
			"timeout: 5, exec_type: ftp, route: pigeon, skip_mode: hop}\n" +
			"nodes: {a: {service: s}, b: {service: s, when: {cond: {service: c}}}}", []string{
			`2:34: defaults.retry.max_attempts: must be 1 at least: the first attempt is one of them`,
			`2:44: defaults.retry.delay: a number has no unit here: write for example 30s or 250ms`,
			`2:56: defaults.retry.backoff: unknown word "linear": write fixed or exponential`,
			`2:72: defaults.retry.jitter: must be between 0 and 1, is 2`,
			`2:85: defaults.timeout: a number has no unit here: write for example 30s or 250ms`,
			`2:99: defaults.exec_type: unsupported exec "ftp": write push, remote, queue, local_func, local_script or external`,
			`2:111: defaults.route: unknown word "pigeon": write push, queue or direct`,
			`2:130: defaults.skip_mode: unknown word "hop": write propagate, optional or fail`,
		}},
		{"nodes: {a: {service: s, retry: {max_attempts: 0}}}", []string{
			`1:47: nodes.a.retry.max_attempts: must be 1 at least: the first attempt is one of them`,
		}},
		{"profile: pgflow\ndefaults: {timeout: 1}\nnodes: {a: {timeout: 2500ms, retry: {delay: 0}}}", []string{
			`2:21: warning: defaults.timeout: is less than pgflow itself takes, which is 3s at least`,
			`2:21: warning: defaults.timeout: has no effect: no node without its own has attempts that can be late: ` +
				"give it to a node, or leave it out",
			`3:22: warning: nodes.a.timeout: is less than pgflow itself takes, which is 3s at least`,
			`3:45: warning: nodes.a.retry.delay: is less than pgflow itself takes, which is 1s at least`,
		}},
	} {
		_, problems := compile.Text([]byte(tt.definition), flow.Limits{})
		var texts []string
		for _, p := range problems {
			texts = append(texts, p.String())
		}
		require.Equal(t, tt.problems, texts, tt.definition)
	}
}

// TestAllProblemsAreReportedAtOnce has one definition that violates many rules.
func TestAllProblemsAreReportedAtOnce(t *testing.T) {
	_, problems := compile.Text([]byte(`
mode: dag
on_error: maybe
nodes:
  run: {service: s}
  a: {service: s, depends_on: [b, nobody]}
  b: {service: s, depends_on: [a], retry: {backoff: linear}}
  B:
    kind: branch
    flow:
      nodes:
        x: {depends_on: [a]}
        o: {kind: output, depends_on: [x]}
        p: {kind: output}
`), flow.Limits{})
	var texts []string
	for _, p := range problems {
		texts = append(texts, p.String())
	}
	require.Equal(t, []string{
		`3:11: on_error: unknown word "maybe": write continue or fail_fast`,
		`4:1: nodes: nodes wait for each other in a circle: a → b → a`,
		`5:3: nodes.run: the key run is reserved for the run's input`,
		`6:35: nodes.a.depends_on[1]: unknown node "nobody"`,
		`7:36: nodes.b.retry.max_attempts: is missing: without it, nothing is retried`,
		`7:53: nodes.b.retry.backoff: unknown word "linear": write fixed or exponential`,
		`12:9: nodes.B.flow.nodes.x: has nothing to do: give it a service, a func, a script or route: direct`,
		`12:26: nodes.B.flow.nodes.x.depends_on[0]: unknown node "a"`,
		`13:27: nodes.B.flow.nodes.o.depends_on: has no effect on this output: an output waits for all leaves: leave it out`,
		`14:9: nodes.B.flow.nodes.p: a scope has one output at most: B/output is another one`,
	}, texts)
}

func TestAKeyHas128Letters(t *testing.T) {
	key := strings.Repeat("x", 128)
	_, problems := compile.Text([]byte("nodes: {"+key+": {service: s}}"), flow.Limits{})
	require.Empty(t, problems)
	_, problems = compile.Text([]byte("nodes: {"+key+"x: {service: s}}"), flow.Limits{})
	require.ErrorContains(t, problems.Err(), "is no slug")
}
