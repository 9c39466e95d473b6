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

// place is a place of an object in a definition.
type place struct {
	of   reflect.Type      // its type
	text string            // definition with a verb for the object
	at   string            // path of the object
	base map[string]string // fields that it always has, in YAML
	// values of all fields; with or between alternatives, one of which differs from the absent
	// field
	values map[string]string
}

// programValues maps the fields of exec to values.
var programValues = map[string]string{
	"type": "process or container", "service": "other", "func": "other", "command": "other",
	"file": "x.py", "module": "n", "function": "g", "python": "python3.11", "warm": "3",
	"root": "sub", "env": "{A: b}", "stdin_mode": "none", "output_mode": "marker", "grace": "3s",
	"upstream_env": "true", "url": "http://127.0.0.1:8082",
	"executor": "python", "report": "object_store", "secrets": "{S: t}", "image": "other",
	"pull": "always", "network": "none", "user": "app", "gpus": "1",
	"mounts": "[{source: a, target: /b}]", "resources": "{memory: 1Gi}", "to_file": "/in",
	"from_file": "/out",
}

// handlerValues maps the fields of a handler to values.
var handlerValues = map[string]string{
	"service": "other", "exec_type": "queue or http", "route": "queue or push", "func": "g",
	"script": "{cmd: other}",
}

// keyValues maps the fields of a limit to values.
var keyValues = map[string]string{
	"name": "n", "key": "$params.k", "limit": "7", "per": "2s", "when_full": "refuse or queue",
	"fair": "$params.user",
}

// scheduleValues maps the fields of a schedule to values.
var scheduleValues = map[string]string{
	"cron": "'0 1 * * *'", "every": "1h", "timezone": "Europe/Berlin", "dst": "'once,shift'",
	"enabled": "false", "catchup": "all", "overlap": "skip",
	"params": "{a: 1}", "jitter": "5s", "start": "2026-01-31", "end": "2027-01-31",
}

// places returns the objects of definitions, in all variants that decide which of their fields
// apply.
func places() []place {
	const dag, graph = "mode: dag\nnodes: {a: {%s}}", "start: a\nnodes: {a: {%s}}"
	in := func(mode, field, rest string) string { return fmt.Sprintf(mode, field+": %s"+rest) }
	out := []place{
		{reflect.TypeFor[definition.RetrySpec](), in(graph, "retry", ", service: s"), "nodes.a.retry",
			map[string]string{"max_attempts": "3"}, retryValues},
		{reflect.TypeFor[definition.RetrySpec](), in(graph, "retry", ", service: s"), "nodes.a.retry",
			map[string]string{"max_attempts": "3", "delay": "1s"}, retryValues},
		{reflect.TypeFor[definition.RetrySpec](), in(dag, "retry", ", service: s"), "nodes.a.retry",
			map[string]string{"max_attempts": "3", "backoff": "exponential"}, retryValues},
		{reflect.TypeFor[definition.EachOf](), in(dag, "each", ", service: s"), "nodes.a.each",
			map[string]string{"items": "$run.l"}, eachValues},
		{reflect.TypeFor[definition.EachOf](), in(dag, "each", ", service: s"), "nodes.a.each",
			map[string]string{"count": "2"}, eachValues},
		{reflect.TypeFor[definition.When](), in(dag, "when", ", service: s"), "nodes.a.when",
			map[string]string{"if": "{b: 1}"}, whenValues},
		{reflect.TypeFor[definition.SignalOf](), in(dag, "signal", ", kind: wait_event"),
			"nodes.a.signal", map[string]string{"key": "$shared.s"}, signalValues},
		{reflect.TypeFor[definition.SignalOf](), in(dag, "signal", ", kind: approval"),
			"nodes.a.signal", map[string]string{"key": "$shared.s"}, signalValues},
		{reflect.TypeFor[definition.Schedule](), "schedule: %s\nstart: a\nnodes: {a: {service: s}}",
			"schedule", map[string]string{"cron": "'0 2 * * *'"}, scheduleValues},
		{reflect.TypeFor[definition.Schedule](), "schedule: %s\nstart: a\nnodes: {a: {service: s}}",
			"schedule", map[string]string{"every": "10m"}, scheduleValues},
		{reflect.TypeFor[definition.KeySpec](), "concurrency: %s\nmode: dag\nnodes: {a: {service: s}}",
			"concurrency", map[string]string{"limit": "1"}, keyValues},
		{reflect.TypeFor[definition.KeySpec](), in(graph, "concurrency", ", service: s"),
			"nodes.a.concurrency", map[string]string{"limit": "1"}, keyValues},
		{reflect.TypeFor[definition.KeySpec](), in(graph, "concurrency", ", service: s"),
			"nodes.a.concurrency", map[string]string{"limit": "1", "when_full": "refuse"}, keyValues},
		{reflect.TypeFor[definition.KeySpec](), in(dag, "rate", ", service: s"), "nodes.a.rate",
			map[string]string{"limit": "1", "per": "1s"}, keyValues},
		{reflect.TypeFor[definition.KeySpec](), in(dag, "rate", ", service: s"), "nodes.a.rate",
			map[string]string{"limit": "1", "per": "1s", "when_full": "refuse"}, keyValues},
		{reflect.TypeFor[definition.Defaults](),
			"mode: dag\ndefaults: %s\nnodes: {a: {service: s, when: {if: {b: 1}}}}", "defaults",
			map[string]string{}, defaultValues},
	}
	for _, program := range []map[string]string{
		{"type": "process", "command": "c"}, {"type": "python", "file": "a.py"}, {"type": "python", "module": "m"},
		{"type": "library", "file": "a.so"}, {"type": "container", "image": "i"},
		{"type": "service", "service": "s"}, {"type": "func", "func": "f"},
		{"type": "worker", "url": "http://127.0.0.1:8081", "command": "c"},
	} {
		out = append(out, place{reflect.TypeFor[definition.ExecOf](), in(dag, "exec", ""), "nodes.a.exec", program, programValues},
			place{reflect.TypeFor[definition.Resources](),
				"mode: dag\nnodes: {a: {exec: " + node(program).with(
					map[string]string{"resources": "%s"}).String() + "}}",
				"nodes.a.exec", map[string]string{}, resourceValues})
	}
	for _, script := range []map[string]string{{"cmd": "c"}, {"code": "x"}} {
		out = append(out, place{reflect.TypeFor[flow.Script](),
			"mode: dag\nnodes: {a: {script: %s}}", "nodes.a.script", script, scriptValues},
			place{reflect.TypeFor[flow.Script](),
				"start: a\nnodes: {a: {exec_type: local_script, script: %s}}", "nodes.a.script",
				script, scriptValues})
	}
	for _, handler := range []map[string]string{
		{"service": "s"}, {"exec_type": "local_func", "func": "f"},
		{"exec_type": "local_script", "script": "{cmd: c}"}, {"service": "s", "exec_type": "queue"},
		{"route": "direct"},
	} {
		for at, text := range map[string]string{
			"nodes.a.when.cond":  "mode: dag\nnodes: {a: {service: s, when: {cond: %s}}}",
			"nodes.a.each.items": "mode: dag\nnodes: {a: {service: s, each: {items: %s}}}",
			"nodes.a.prep":       "mode: dag\nnodes: {a: {kind: branch, prep: %s, flow: {nodes: {b: {service: s}}}}}",
		} {
			out = append(out, place{reflect.TypeFor[definition.Handler](), text, at, handler, handlerValues})
		}
	}
	return out
}

var (
	resourceValues = map[string]string{"cpu": "2", "memory": "1Gi"}
	scriptValues   = map[string]string{"cmd": "d", "args": "[a]", "code": "y", "language": "python",
		"timeout_ms": "5", "env": "{A: b}", "work_dir": "w",
		"stdin_mode": "json", "output_mode": "json", "stderr_mode": "log"}
	retryValues = map[string]string{"max_attempts": "4", "delay": "2s",
		"backoff": "exponential or fixed", "max_delay": "9s", "jitter": "0.5"}
	eachValues    = map[string]string{"items": "$run.m", "count": "3", "concurrency": "2", "on_error": "fail_fast"}
	whenValues    = map[string]string{"if": "{c: 1}", "if_not": "{d: 1}", "expr": "'1 == 1'", "cond": "{service: q}"}
	signalValues  = map[string]string{"key": "$shared.other", "timeout": "3s"}
	defaultValues = map[string]string{"retry": "{max_attempts: 4}", "timeout": "3s",
		"exec_type": "queue", "route": "queue", "skip_mode": "optional"}
)

// fieldNames returns the names of the fields of an object.
func fieldNames(of reflect.Type) (names []string) {
	for _, f := range reflect.VisibleFields(of) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); f.IsExported() && name != "" {
			names = append(names, name)
		}
	}
	return names
}

// compileText returns the plan and schedule of a definition.
func compileText(t *testing.T, text string) (any, definition.Problems) {
	d, err := definition.Parse([]byte(text))
	require.NotNil(t, d, "%v\n%s", err, text)
	var schedule definition.Schedule
	if d.Schedule != nil {
		schedule = *d.Schedule
	}
	return []any{compile.Lower(d, flow.Limits{}), schedule}, compile.Check(d, flow.Limits{})
}

func TestEachFieldOfAnObjectAppliesOrIsRejected(t *testing.T) {
	for _, p := range places() {
		base, _ := compileText(t, fmt.Sprintf(p.text, node(p.base)))
		require.ElementsMatch(t, slices.Collect(maps.Keys(p.values)), fieldNames(p.of), "fields of %s", p.of)
		for _, name := range fieldNames(p.of) {
			obeyed := false
			for value := range strings.SplitSeq(p.values[name], " or ") {
				with, problems := compileText(t, fmt.Sprintf(p.text, node(p.base).set(name, value)))
				refused := slices.ContainsFunc(problems, func(found definition.Problem) bool {
					return found.Severity == definition.SeverityError && strings.HasPrefix(found.Path, p.at)
				})
				obeyed = obeyed || refused || !reflect.DeepEqual(base, with)
			}
			require.True(t, obeyed, "%s.%s is ignored: "+p.text, p.at, name, node(p.base))
		}
	}
}
