package flowtest

import (
	"fmt"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/definition/compile"
	"github.com/troupe-engine/troupe/flow"
)

// Plan compiles a definition.
func Plan(t require.TestingT, text string) *flow.Plan {
	plan, problems := compile.Text([]byte(text), flow.Limits{})
	require.NoError(t, problems.Err())
	return plan
}

// LargeDag returns a dag of n nodes with the (quoted) dependencies given by deps.
func LargeDag(n int, deps func(i int) string) string {
	var b strings.Builder
	b.WriteString(`{"mode":"dag","nodes":{`)
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `"n%d":{"service":"s","depends_on":[%s]}`, i, deps(i))
	}
	b.WriteString(`}}`)
	return b.String()
}

// Chain returns a flow of n nodes with typical kinds of nodes.
func Chain(n int) []byte {
	var b strings.Builder
	b.WriteString("start: n0\nnodes:\n")
	for i := range n {
		fmt.Fprintf(&b, "  n%d:\n    service: transform\n    retry: {max_attempts: 3}\n    params: {mul: %d, note: some text}\n", i, i)
		fmt.Fprintf(&b, "    prep: {input_key: $shared.v%d}\n    post: {output_key: v%d}\n", i, i+1)
	}
	b.WriteString("edges:\n")
	for i := range n - 1 {
		fmt.Fprintf(&b, "- {from: n%d, action: default, to: n%d}\n", i, i+1)
	}
	return []byte(b.String())
}
