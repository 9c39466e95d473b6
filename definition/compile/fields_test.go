package compile_test

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/definition"
	"github.com/troupe-engine/troupe/definition/compile"
	"github.com/troupe-engine/troupe/flow"
)

// fieldValues maps fields of nodes to YAML values that change a node.
var fieldValues = map[string]string{
	"kind": "", "service": "other", "exec_type": "queue", "exec_mode": "queue", "route": "queue",
	"func": "g", "script": "{cmd: other}",
	"exec": "{type: process, command: other}", "params": "{delay_ms: 5, extra: 1}",
	"prep.input_key": "$params.other", "prep.input_map": "{a: $params.other}",
	"prep.expr": "'1 + 1'", "prep.service": "p", "prep.exec_type": "queue", "prep.func": "p",
	"prep.script": "{cmd: p}", "prep.route": "queue",
	"post.output_key": "o", "post.output_map": "{o: f}", "post.action_static": "x",
	"post.action_key": "k",
	"retry":           "{max_attempts: 4}", "max_retries": "3", "wait_ms": "7", "max_attempts": "3",
	"attempt_delay_ms": "7", "workers_per_attempt": "3", "worker_delay": "7ms", "weighted_by_load": "true", "visibility_ms": "5000",
	"labels": "[gpu]", "deferred": "true", "timeout_ms": "9000", "timeout": "9s",
	"on_error": "follow", "compensate": "u",
	"choice_cases": "[{action: x, expr: {exists: $params.a}}]", "default_action": "y",
	"choice_key":        "k",
	"parallel_services": "[y]", "parallel_execs": "[{service: y}]", "parallel_mode": "concurrent",
	"max_parallel": "3", "failure_strategy": "continue",
	"foreach_execs": "[{index: 1, params: {a: 1}}]",
	"subflow":       "{start: c, nodes: {c: {service: other}}}",
	"subflow_execs": "[{node: b, params: {a: 1}}]",
	"flow":          "{mode: graph, start: c, nodes: {c: {service: other}}}", "concurrency": "{limit: 1}",
	"rate": "{limit: 1, per: 1s}", "priority": "5",
	"depends_on": "[z]", "run_on": "always", "each": "{count: 3}", "when": "{if: {a: 1}}",
	"skip_mode": "optional", "whenUnmet": "skip", "on_exhausted": "skip",
	"input_shape": "merged", "name": "called-so", "output_type": "int", "input": "{a: 1}",
	"inputs": "{a: {const: 1}}", "delay": "3s", "signal": "{key: $shared.other}",
	"start_delay": "3s", "start_timeout": "3s", "heartbeat_timeout": "3s",
}

// kindBases maps kinds to minimal nodes in YAML.
var kindBases = map[string]map[string]string{
	"graph executor": {"service": "s"}, "graph choice": {"kind": "choice"},
	"graph parallel":   {"kind": "parallel", "parallel_services": "[x]"},
	"graph foreach":    {"kind": "foreach", "service": "s", "prep": "{input_key: $params.items}"},
	"graph subflow":    {"kind": "subflow", "subflow": "{start: b, nodes: {b: {service: s}}}"},
	"graph timer":      {"kind": "timer"},
	"graph wait_event": {"kind": "wait_event", "params": "{signal_key: $shared.s}"},
	"graph approval":   {"kind": "approval", "params": "{approval_key: $shared.s}"},
	"dag executor":     {"service": "s"},
	"dag fanout":       {"kind": "fanout", "service": "s", "each": "{items: $run.items}"},
	"dag branch":       {"kind": "branch", "flow": "{mode: dag, nodes: {b: {service: s}}}"},
	"dag timer":        {"kind": "timer", "params": "{delay_ms: 1}"},
	"dag wait_event":   {"kind": "wait_event", "params": "{signal_key: $shared.s}"},
	"dag approval":     {"kind": "approval", "params": "{approval_key: $shared.s}"},
	"dag output":       {"kind": "output"},
}

// conditionFields maps conditions to the YAML fields that meet them; "" removes a field.
var conditionFields = map[string]map[string]string{
	"": {}, "inline": {}, "unnamed": {"flow": ""},
	"function": {"service": "", "exec_type": "local_func", "func": "f"},
	"script":   {"service": "", "exec_type": "local_script", "script": "{cmd: c}"},
	"jobs":     {}, "inner": {"exec_type": "push"}, "push": {"exec_type": "push"},
	"queue": {"exec_type": "queue"}, "workers": {"exec_type": "queue"},
	"files":   {"service": "", "exec": "{type: process, command: c, report: object_store}"},
	"claimed": {"exec_type": "queue"}, "retried": {"failure_strategy": "retry", "max_retries": "2"},
	"root": {}, "concurrent": {"parallel_mode": "concurrent"}, "unlisted": {}, "unmapped": {},
	"keyed": {"concurrency": "{limit: 2}"}, "when": {"when": "{if: {b: 1}}"}, "unbound": {},
	"merged": {"input_shape": "merged"}, "counted": {"each": "{count: 2}"},
	"asked":   {"when": "{cond: {route: queue, service: q}}"},
	"untyped": {}, "edged": {}, "program": {}, "pocketflow": {}, "repeated": {"max_retries": "2"}, "limited": {},
	"undone":  {"compensate": "u"},
	"closing": {"exec_type": "queue"},
	"dag":     {"subflow": "", "flow": "{mode: dag, nodes: {b: {service: s}}}"},
	"graph":   {"flow": "{mode: graph, start: b, nodes: {b: {service: s}}}"}, "mapping": {},
	"handler":   {"service": "s"},
	"patterned": {"when": "{if: {b: 1}}"},
	"compared":  {"when": "{if: {b: 1}}", "input_shape": "merged"},
}

// node is a node in YAML by its fields; fields of prep and post are prefixed with the object.
type node map[string]string

func (n node) with(fields map[string]string) node {
	n = maps.Clone(n)
	for name, value := range fields {
		n[name] = value
		if value == "" {
			delete(n, name)
		}
	}
	return n
}

// set sets a field, or the object that contains it.
func (n node) set(name, value string) node {
	if object, field, nested := strings.Cut(name, "."); nested {
		name, value = object, fmt.Sprintf("{%s: %s}", field, value)
		if have := n[object]; have != "" && !strings.Contains(have, field+":") && field != "input_map" && field != "expr" {
			value = strings.TrimSuffix(have, "}") + ", " + strings.TrimPrefix(value, "{")
		}
	}
	return n.with(map[string]string{name: value})
}

func (n node) String() string {
	var fields []string
	for _, name := range slices.Sorted(maps.Keys(n)) {
		fields = append(fields, name+": "+n[name])
	}
	return "{" + strings.Join(fields, ", ") + "}"
}

// definition returns a flow with the node as a.
func (n node) definition(dag bool, profile string) string {
	if dag {
		return fmt.Sprintf("mode: dag\nnodes:\n  a: %s\n  z: {service: z}\n  u: {service: u}\n  w: {service: w, compensate: u}\n", n)
	}
	return fmt.Sprintf("mode: graph\n%sstart: a\nnodes:\n  a: %s\n  u: {service: u}\n  w: "+
		"{service: w, compensate: u}\nedges: [{from: a, to: w}, {from: a, action: error, to: w}]\n",
		profile, n)
}

// loweredPlan lowers a definition, even if it has problems.
func loweredPlan(t *testing.T, text string) *flow.Plan {
	d, err := definition.Parse([]byte(text))
	require.NotNil(t, d, "%v\n%s", err, text)
	return compile.Lower(d, flow.Limits{})
}

// forEachField calls a function for each field and each kind of node in both modes.
func forEachField(do func(f *definition.NodeField, dag bool, kind string)) {
	for i := range definition.NodeFields {
		for _, kind := range definition.KindsOfGraph {
			do(&definition.NodeFields[i], false, kind)
		}
		for _, kind := range definition.KindsOfDag {
			do(&definition.NodeFields[i], true, kind)
		}
	}
}

func modeName(dag bool) string {
	if dag {
		return "dag"
	}
	return "graph"
}

func TestFieldsThatTheTableAllowsChangeThePlan(t *testing.T) {
	forEachField(func(f *definition.NodeField, dag bool, kind string) {
		if f.Name == "kind" {
			return
		}
		for _, condition := range f.Rule(dag).ConditionsOf(kind) {
			base := node(kindBases[modeName(dag)+" "+kind]).with(conditionFields[condition])
			if condition == "handler" || kind == "output" &&
				slices.Contains([]string{"inner", "push", "queue", "workers", "claimed", "keyed",
					"function", "script"}, condition) {
				base = base.with(map[string]string{"service": "s"})
			}
			if kind == "parallel" && condition == "files" {
				base = base.with(map[string]string{"parallel_services": ""})
			}
			switch f.Name {
			case "prep.exec_type":
				base = base.with(map[string]string{"prep": "{service: q}"})
			case "delay", "signal": // other notations for params
				base = base.with(map[string]string{"params": ""})
			}
			if kind == "branch" && (condition == "patterned" || condition == "compared") {
				base = base.with(conditionFields["graph"])
			}
			if condition == "closing" {
				return // see TestClosingNodesOfADagUseTheTimesOfAQueue
			}
			if f.Name == "wait_ms" && condition != "retried" {
				base = base.with(map[string]string{"max_retries": "2"})
			}
			without := base.definition(dag, "")
			with := base.set(f.Name, fieldValues[f.Name]).definition(dag, "")
			require.NotEqual(t, loweredPlan(t, without), loweredPlan(t, with),
				"%s is to change a %s of a %s (%s):\n%s", f.Name, kind, modeName(dag), condition, with)
		}
	})
}

// metByBase lists conditions that the nodes of kindBases, or the field itself, meet.
var metByBase = []string{"dag", "edged", "function", "push", "inline", "inner", "jobs", "limited", "mapping", "pocketflow",
	"program", "root",
	"script", "unbound", "unlisted", "unmapped", "unnamed", "untyped", "workers"}

func TestFieldsThatTheTableDoesNotAllowAreRejected(t *testing.T) {
	forEachField(func(f *definition.NodeField, dag bool, kind string) {
		obeyed := f.Rule(dag).ConditionsOf(kind)
		if slices.Contains(obeyed, "") || f.Name == "kind" {
			return
		}
		for _, condition := range obeyed {
			if slices.Contains(metByBase, condition) {
				return // see TestConditionsOfFields
			}
		}
		base := node(kindBases[modeName(dag)+" "+kind])
		with := base.set(f.Name, fieldValues[f.Name])
		found := problemAt(t, with.definition(dag, ""), f.Name)
		require.NotNil(t, found, "%s is to be refused on a %s of a %s:\n%s", f.Name, kind, modeName(dag), with)
		require.Equal(t, definition.SeverityError, found.Severity, found)
		require.NotZero(t, found.Line, found)
		if dag {
			return
		}
		found = problemAt(t, with.definition(dag, "profile: pocketflow\n"), f.Name)
		require.NotNil(t, found, "%s is to be warned of on a %s with the profile pocketflow:\n%s", f.Name, kind, with)
		require.Equal(t, definition.SeverityWarning, found.Severity, found)
	})
}

// problemAt returns the problem that a field of node a has no effect, or nil.
func problemAt(t *testing.T, text, field string) *definition.Problem {
	d, err := definition.Parse([]byte(text))
	require.NotNil(t, d, "%v\n%s", err, text)
	for _, p := range compile.Check(d, flow.Limits{}) {
		if p.Path == "nodes.a."+field && strings.Contains(p.Msg, "has no effect on this") {
			return &p
		}
	}
	return nil
}

func TestConditionsOfFields(t *testing.T) {
	for _, tt := range []struct {
		dag          bool
		node, field  string
		withoutCause string
	}{
		{false, "{kind: subflow, flow: {mode: graph, start: b, nodes: {b: {service: s}}}, func: f}",
			"func", "only a subflow written in place hands it on"},
		{false, "{kind: subflow, flow: {mode: graph, start: b, nodes: {b: {service: s}}}, " +
			"subflow: {start: c, nodes: {c: {service: s}}}}", "subflow", "flow goes before it"},
		{false, "{service: s, func: f}", "func", "a worker carries it out"},
		{false, "{service: s, script: {cmd: c}}", "script", "a worker carries it out"},
		{false, "{service: s, exec_type: queue, max_attempts: 2}", "max_attempts", "one worker claims it"},
		{false, "{service: s, exec_type: queue, workers_per_attempt: 2}", "workers_per_attempt", "one worker claims it"},
		{false, "{service: s, max_retries: 2}", "max_retries", "it is a word of the profile pocketflow"},
		{true, "{service: s, max_retries: 2}", "max_retries", "it is a word of the profile pocketflow"},
		{false, "{service: s, max_attempts: 2}", "max_attempts", "it is a word of the profile pocketflow"},
		{false, "{service: s, exec_type: queue, weighted_by_load: true}", "weighted_by_load", "the first worker that polls gets it"},
		{false, "{exec_type: local_func, func: f, labels: [a]}", "labels", "the member carries it out"},
		{false, "{kind: parallel, parallel_services: [x], parallel_execs: [{service: x}]}",
			"parallel_services", "parallel_execs goes before it"},
		{false, "{service: s, prep: {input_key: $params.a, input_map: {a: b}}}", "prep.input_key", "input_map goes before it"},
		{true, "{route: direct, retry: {max_attempts: 2}}", "retry", "an answer finishes it"},
		{true, "{route: direct, concurrency: {limit: 1}}", "concurrency", "it has no jobs"},
		{true, "{service: s, prep: {expr: '1'}, input_shape: deps}", "input_shape", "prep says what it is"},
		{true, "{kind: output, service: s, inputs: {a: {const: 1}}}", "inputs", "its handler gets the leaves"},
		{true, "{kind: fanout, service: s, each: {items: $run.l}, inputs: {a: {const: 1}}}", "inputs", "a unit gets its item"},
		{true, "{kind: branch, flow: {mode: dag, nodes: {b: {service: s}}}, retry: {max_attempts: 2}}", "retry", "its nodes are repeated"},
	} {
		found := problemAt(t, fmt.Sprintf("mode: %s\n%snodes:\n  a: %s\n", modeName(tt.dag),
			map[bool]string{false: "start: a\n"}[tt.dag], tt.node), tt.field)
		require.NotNil(t, found, "%s: %s", tt.node, tt.withoutCause)
	}
	found := problemAt(t, "start: a\nnodes: {a: {kind: subflow, subflow: {start: b, nodes: {b: "+
		"{service: s, on_error: follow}}}}}", "subflow.nodes.b.on_error")
	require.NotNil(t, found)
}

func TestPartsOfNodesWithoutEffectAreRejected(t *testing.T) {
	for text, want := range map[string]string{
		// Overrides.
		"start: a\nnodes: {a: {kind: foreach, service: s, prep: {input_key: $params.l}, " +
			"foreach_execs: [{index: 1, service: t}]}}": "nodes.a.foreach_execs[0].service: has " +
			"no effect in foreach_execs: the service of an item is that of the node",
		"start: a\nnodes: {a: {kind: foreach, service: s, prep: {input_key: $params.l}, " +
			"foreach_execs: [{index: 1, node: b}]}}": "nodes.a.foreach_execs[0].node: has no " +
			"effect in foreach_execs: it is for subflow_execs",
		"start: a\nnodes: {a: {kind: parallel, parallel_execs: [{service: s, index: 1}]}}": "nodes.a.parallel_execs[0].index: has no effect in parallel_execs: it is for foreach_execs",
		"start: a\nnodes: {a: {kind: parallel, parallel_execs: [{service: s, func: f}]}}":  "nodes.a.parallel_execs[0].func: has no effect on this entry: a function is called with exec_type: local_func and without a service",
		"start: a\nnodes: {a: {kind: parallel, parallel_execs: [{service: s, exec_type: push, " +
			"exec_mode: queue}]}}": "nodes.a.parallel_execs[0].exec_mode: has no effect on this " +
			"entry: write exec_type, at a node that has jobs",
		"start: a\nnodes: {a: {kind: subflow, subflow: {start: b, nodes: {b: {kind: timer, " +
			"params: {delay_ms: 1}}}}, subflow_execs: [{node: b, exec_type: queue}]}}": "nodes.a.subflow_execs[0].exec_type: has no effect on this entry: it has no jobs of its own: give it to the nodes inside",
		"start: a\nnodes: {a: {kind: subflow, subflow: {start: b, nodes: {b: {service: s}}}, " +
			"subflow_execs: [{node: c, service: t}]}}": `nodes.a.subflow_execs[0].node: the ` +
			`subflow has no node "c": this entry is ignored`,
		// Programs.
		"start: a\nnodes: {a: {exec: {service: s}, service: s}}": "nodes.a.exec: has no effect " +
			"on this executor: write service or func at a node with jobs, or set exec.type to " +
			"process, python, library, container or worker",
		"mode: dag\nnodes: {a: {exec: {service: s, command: c}}}": "nodes.a.exec.command: is " +
			"for a program: set type to process, python, library, container or worker",
		"mode: dag\nnodes: {a: {exec: {func: f, warm: 3}}}": "nodes.a.exec.warm: is for a " +
			"program: set type to process, python, library, container or worker",
		// Handlers.
		"mode: dag\nnodes: {a: {service: s, when: {cond: {service: q, exec_type: queue, func: f}}}}": "nodes.a.when.cond.func: has no effect on this handler: a function is called with exec_type: local_func and without a service",
		"mode: dag\nnodes: {a: {service: s, each: {items: {service: q, script: {cmd: c}}}}}":         "nodes.a.each.items.script: has no effect on this handler: a script is started with exec_type: local_script and without a service",
		"mode: dag\nnodes: {a: {kind: branch, prep: {service: q, route: queue, func: f}, flow: " +
			"{nodes: {b: {service: s}}}}}": "nodes.a.prep.func: has no effect on this handler: " +
			"a function is called with exec_type: local_func and without a service",
		"mode: dag\nnodes: {a: {service: s, func: f}}": "nodes.a.service: has no effect beside " +
			"func, which is called: give one of them, or exec_type",
		// Retries and keys.
		"start: a\nnodes: {a: {service: s, retry: {max_attempts: 3, jitter: 0.5}}}":                "nodes.a.retry.jitter: has no effect without a pause: write delay, or backoff: exponential",
		"mode: dag\ndefaults: {retry: {max_attempts: 3, max_delay: 5s}}\nnodes: {a: {service: s}}": "defaults.retry.max_delay: has no effect without a pause: write delay, or backoff: exponential",
		"start: a\nnodes: {a: {service: s, concurrency: {limit: 1, when_full: refuse, fair: " +
			"$params.who}}}": "nodes.a.concurrency.fair: has no effect with when_full: refuse, " +
			"because nothing waits: leave it out",
		"start: a\nnodes: {a: {service: s, route: push, exec_type: queue}}": "nodes.a.route: says otherwise than exec_type: give one of them",
		"start: a\nnodes: {a: {kind: wait_event, failure_strategy: retry, params: {signal_key: " +
			"k, timeout_ms: 5}}}": "nodes.a.params.timeout_ms: has no effect with " +
			"failure_strategy: retry: leave one of them out",
		// Nodes of the closing.
		"start: a\nfinally: f\nnodes: {a: {service: s}, f: {service: s, post: {action_static: go}}}": "nodes.f.post.action_static: has no effect on this executor: it only runs when the task is over: leave it out",
		"start: a\nfinally: f\nnodes: {a: {service: s}, f: {service: s, on_error: follow}}":          "nodes.f.on_error: has no effect on this executor: it only runs when the task is over: leave it out",
		"mode: dag\nnodes: {a: {service: s, compensate: u}, u: {service: s, run_on: always}}":        "nodes.u.run_on: has no effect on this executor: it only runs when the task is over: leave it out",
		// Nested flows.
		"mode: dag\nnodes: {a: {kind: branch, flow: {nodes: {b: {service: s}}, timeout: 5s}}}": "nodes.a.flow.timeout: has no effect in a flow inside another one: write timeout of the node that holds the flow",
		"mode: dag\nnodes: {a: {kind: branch, flow: {nodes: {b: {service: s}}, finally: b}}}":  "nodes.a.flow.finally: has no effect in a flow inside another one: write it in the whole flow",
	} {
		_, problems := compile.Text([]byte(text), flow.Limits{})
		require.NotEmpty(t, problems, text)
		require.Equal(t, want, problems[0].Path+": "+problems[0].Msg, text)
		require.Equal(t, definition.SeverityError, problems[0].Severity, text)
		if !strings.HasPrefix(text, "start: a") || strings.Contains(want, ".retry.") || strings.Contains(want, ".fair:") {
			continue
		}
		_, problems = compile.Text([]byte("profile: pocketflow\n"+text), flow.Limits{})
		require.NoError(t, problems.Err(), "with the profile pocketflow it is a warning: %s", text)
	}
}

func TestClosingNodesOfADagUseTheTimesOfAQueue(t *testing.T) {
	plan, problems := compile.Text([]byte("mode: dag\nfinally: f\nnodes: {a: {service: s}, "+
		"f: {service: s, route: queue, start_timeout: 5s, heartbeat_timeout: 3s}}"), flow.Limits{})
	require.NoError(t, problems.Err())
	require.Equal(t, int64(5_000), plan.Closing.Nodes["f"].Exec.StartMS)
	require.Equal(t, int64(3_000), plan.Closing.Nodes["f"].Exec.HeartbeatMS)
}

func TestTheTableOfFieldsHasAllFieldsAndConditions(t *testing.T) {
	require.ElementsMatch(t, slices.Collect(maps.Keys(definition.Conditions)),
		slices.DeleteFunc(slices.Collect(maps.Keys(conditionFields)), func(c string) bool { return c == "" }))
	var names []string
	for _, f := range definition.NodeFields {
		require.Contains(t, fieldValues, f.Name)
		name, _, _ := strings.Cut(f.Name, ".")
		names = append(names, name)
	}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[definition.Node]()) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); f.IsExported() && name != "" {
			require.Contains(t, names, name, "say in define.NodeFields which nodes obey it")
		}
	}
}

// carriedFields lists the rejected fields that a plan still contains, by mode and kind, although
// they have no reader there.
var carriedFields = map[string][]string{
	// Only executors read output_map; units and timers have no output for action_key.
	"graph choice":     {"post.output_map", "timeout_ms", "timeout"},
	"graph parallel":   {"post.output_map", "post.action_key", "service"}, // each branch has its own service
	"graph foreach":    {"post.output_map", "post.action_key"},
	"graph subflow":    {"post.output_map", "exec"}, // only nodes with jobs start programs
	"graph timer":      {"post.output_map", "post.action_key", "timeout_ms", "timeout"},
	"graph wait_event": {"post.output_map"},
	"graph approval":   {"post.output_map"},
	// A wait has no use for an input, and ends with the value that ended it.
	"dag timer":      append([]string{"on_exhausted"}, carriedInputs...),
	"dag wait_event": append([]string{"delay"}, carriedInputs...),
	"dag approval":   append([]string{"delay"}, carriedInputs...),
	// delay becomes a param, which a handler might see.
	"dag executor": append([]string{"delay"}, carriedTries...),
	"dag fanout":   append([]string{"delay"}, carriedTries...),
	"dag output":   {"depends_on"},
}

// carriedTries are words of the profile pocketflow for the workers of one attempt.
var carriedTries = []string{"max_attempts", "attempt_delay_ms"}

var carriedInputs = []string{"prep.input_key", "prep.input_map", "prep.expr", "inputs", "output_type", "start_delay"}

func TestRejectedFieldsDoNotChangeThePlan(t *testing.T) {
	carried := map[string][]string{}
	forEachField(func(f *definition.NodeField, dag bool, kind string) {
		if f.Name == "kind" || len(f.Rule(dag).ConditionsOf(kind)) > 0 {
			return
		}
		name := modeName(dag) + " " + kind
		base := node(kindBases[name])
		if f.Name == "prep.expr" && !dag { // instead of an input_key
			base = base.with(map[string]string{"prep": ""})
		}
		without, with := base.definition(dag, ""), base.set(f.Name, fieldValues[f.Name]).definition(dag, "")
		if !reflect.DeepEqual(loweredPlan(t, without), loweredPlan(t, with)) {
			carried[name] = append(carried[name], f.Name)
		}
	})
	for name := range carriedFields {
		require.ElementsMatch(t, carriedFields[name], carried[name], name)
	}
	require.Len(t, carried, len(carriedFields))
}
