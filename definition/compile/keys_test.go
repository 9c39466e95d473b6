package compile_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/definition/compile"
	"github.com/troupe-engine/troupe/flow"
)

func TestProblemsOfKeysAreReported(t *testing.T) {
	const task = "start: a\nnodes: {a: {service: s}}\n"
	for _, tt := range []struct {
		definition string
		want       []string
	}{
		{"concurrency: {limit: 0}\n" + task, []string{"1:22: concurrency.limit: must be 1 at least"}},
		{"concurrency: {}\n" + task, []string{"1:1: concurrency.limit: must be 1 at least"}},
		{"concurrency: {name: \"a:b/c\", limit: 1}\n" + task,
			[]string{`1:21: concurrency.name: may not contain : or /, which separate it from ` +
				`the key, and flows from their nodes: write "a-b-c"`}},
		{"concurrency: 3\n" + task, []string{"1:14: concurrency: must be an object, is a number",
			"1:14: concurrency.limit: must be 1 at least"}},
		{"concurrency: {limit: 1, when_full: explode}\n" + task,
			[]string{`1:36: concurrency.when_full: unknown word "explode": write queue, refuse ` +
				`or cancel_running`}},
		{"concurrency: {limit: 1, per: 1s}\n" + task,
			[]string{"1:30: concurrency.per: belongs to rate: concurrency says how many at once"}},
		{"concurrency: {limit: 1, key: $shared.x}\n" + task,
			[]string{`1:30: concurrency.key: "$shared.x" is no reference that can be looked up ` +
				`here: write $params.…, $run…, or a text`}},
		{"rate: {limit: 1}\n" + task, []string{"1:1: rate.per: is missing: say in what time, such as 1s"}},
		{"rate: {limit: 1, per: 0s}\n" + task, []string{"1:23: rate.per: is missing: say in what time, such as 1s"}},
		{"rate: {limit: 1, per: 5}\n" + task, []string{"1:23: rate.per: a number has no unit here: write for example 30s or 250ms"}},
		{"rate: {limit: 1, per: 1s, when_full: cancel_running}\n" + task,
			[]string{"1:38: rate.when_full: what has begun is counted even if it is canceled: " +
				"write queue or refuse"}},
		{"priority: 101\n" + task, []string{"1:11: priority: must be a whole number from -100 to 100, or a reference to one"}},
		{"priority: high\n" + task, []string{"1:11: priority: must be a whole number from -100 to 100, or a reference to one"}},
		{"priority: 5\n" + task, []string{"1:11: priority: has no effect: it orders what waits " +
			"for a key: write concurrency or rate as well, here or at a node"}},
		{"priority: 5\nconcurrency: {limit: 1}\n" + task, nil},
		{"priority: 5\nnodes: {B: {kind: branch, flow: {nodes: {a: {service: s, rate: {limit: 1, per: 1s}}}}}}", nil},
		{"start: a\nnodes: {a: {service: s, priority: 3}}",
			[]string{"2:35: nodes.a.priority: has no effect on this executor: it orders what " +
				"waits for a key: write concurrency or rate as well"}},
		{"start: a\nnodes: {a: {service: s, concurrency: {limit: 1, key: $item.id}}}", []string{
			`2:54: nodes.a.concurrency.key: "$item.id" is no reference that can be looked up ` +
				`here: write $params.…, $shared.…, $input…, $run…, or a text`}},
		{"nodes: {a: {service: s}, b: {kind: timer, delay: 1s, concurrency: {limit: 1}}}", []string{
			"1:54: nodes.b.concurrency: has no effect on this timer: no attempt of it can wait: " +
				"give it to nodes that have jobs, or to the whole flow"}},
		{"nodes: {a: {route: direct, rate: {limit: 1, per: 1s}}}", []string{
			"1:28: nodes.a.rate: has no effect on this executor: no attempt of it can wait: " +
				"give it to nodes that have jobs, or to the whole flow"}},
		{"nodes: {B: {kind: branch, flow: {concurrency: {limit: 1}, nodes: {a: {service: s}}}}}", []string{
			"1:34: nodes.B.flow.concurrency: has no effect in a flow inside another one: give it to the nodes inside"}},
		{"nodes: {a: {service: s, each: {items: $run.x}, concurrency: {limit: 1, key: $item, " +
			"fair: $run.user}, rate: {limit: 9, per: 1m, key: $input.id}, priority: $params.p}}", nil},
	} {
		_, problems := compile.Text([]byte(tt.definition), flow.Limits{})
		var got []string
		for _, p := range problems {
			got = append(got, p.String())
		}
		require.Equal(t, tt.want, got, "%s", tt.definition)
	}
}
