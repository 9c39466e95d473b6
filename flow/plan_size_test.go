package flow_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/definition"
	"github.com/troupe-engine/troupe/definition/compile"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/testing/flowtest"
)

// heldBy returns the heap size of a plan, without the definition from which it was compiled.
func heldBy(t *testing.T, text string) (plan *flow.Plan, bytes int) {
	t.Helper()
	heap := func() int {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc)
	}
	before := heap()
	d, _ := definition.ParsePublished([]byte(text))
	plan = compile.Lower(d, flow.Limits{})
	after := heap()
	runtime.KeepAlive(text)
	runtime.KeepAlive(plan)
	return plan, after - before
}

func TestTheSizeOfAPlanIsAboutItsMemory(t *testing.T) {
	many := func(n int, node func(i int) string) string {
		nodes := make([]string, n)
		for i := range nodes {
			nodes[i] = fmt.Sprintf(`"n%d":%s`, i, node(i))
		}
		return strings.Join(nodes, ",")
	}
	// creates the data that is only allocated once
	heldBy(t, `{"nodes":{"a":{"kind":"timer","params":{"delay_ms":0},"when":{"expr":"true"}}}}`)
	for name, text := range map[string]string{
		"a chain": flowtest.LargeDag(2_122, func(i int) string {
			return strings.Repeat(
				fmt.Sprintf(`"n%d"`, i-1), min(i, 1))
		}),
		"a graph": string(flowtest.Chain(2_122)),
		"fan-outs": `{"mode":"dag","nodes":{` + many(2_000,
			func(int) string { return `{"service":"s","each":{"items":"$run.list"}}` }) + `}}`,
		"long params": `{"mode":"dag","nodes":{` + many(20,
			func(int) string {
				return `{"service":"s","params":{"x":"` + strings.Repeat("y",
					100_000) + `"}}`
			}) + `}}`,
		"expressions": `{"mode":"dag","nodes":{` + many(300,
			func(i int) string {
				return fmt.Sprintf(`{"service":"s","when":{"expr":"run.x > %d"}}`,
					i)
			}) + `}}`,
		"long expressions": `{"mode":"dag","nodes":{` + many(100, func(i int) string {
			return fmt.Sprintf(`{"service":"s","when":{"expr":"run.x > %d%s"}}`, i, strings.Repeat(" && run.y < 10", 20))
		}) + `}}`,
		"conditions": `{"start":"n0","nodes":{` + many(500, func(int) string {
			return `{"kind":"choice","choice_cases":[{"action":"a","expr":{"and":[{"gt":["$params.n",10]},{"eq":["$shared.x","y"]}]}}]}`
		}) + `}}`,
		"patterns": `{"mode":"dag","nodes":{` + many(500,
			func(int) string { return `{"service":"s","when":{"if":{"run":{"plan":"free","list":[1,2,3]}}}}` }) +
			`}}`,
		"flows inside": `{"mode":"dag","nodes":{` + many(500,
			func(int) string { return `{"kind":"branch","flow":{"start":"x","nodes":{"x":{"service":"s"}}}}` }) +
			`}}`,
		"branches of graph": `{"start":"n0","nodes":{` + many(500,
			func(int) string { return `{"kind":"parallel","parallel_services":["a","b","c"]}` }) + `}}`,
	} {
		t.Run(name, func(t *testing.T) {
			plan, bytes := heldBy(t, text)
			size := plan.Size()
			t.Logf("%d bytes of text, %d of the heap, %d as it says", len(text), bytes, size)
			require.InDelta(t, 1, float64(size)/float64(bytes), 0.5)
		})
	}
}
