package compile_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/definition/compile"
	"github.com/troupe-engine/troupe/flow"
)

func TestRulesOfVariables(t *testing.T) {
	for text, want := range map[string]string{
		"${HOME}":           "${HOME} begins with none of params, run, deps, shared, input and item: write $${HOME} for the text itself",
		"${}":               "${} begins with none of params, run, deps, shared, input and item: write $${} for the text itself",
		"x ${params.x":      "a ${ without its }: write $${ for the text itself",
		"${params}":         "${params} leads nowhere: write for example ${params.day}, or $${params} for the text itself",
		"${params.a[x]}":    "${params.a[x]} leads nowhere: write for example ${params.day}, or $${params.a[x]} for the text itself",
		"${params.dya}":     `"$params.dya" leads nowhere: dya is not declared among the inputs: did you mean day?`,
		"${item.x}":         "${item.x}: the node has no items",
		"${params.day}":     "",
		"${shared.x:-}":     "",
		"$${x} $x ${run}":   "",
		"${input.x:-${y}":   "",
		"a ${deps.b.x}":     "",
		"${deps.c.x}":       `${deps.c.x} refers to "c", which is not among depends_on`,
		"${deps.b.x} ${no}": "${no} begins with none of params, run, deps, shared, input and item: write $${no} for the text itself",
	} {
		for form, definition := range map[string]string{
			"dag": "inputs: {day: text}\nnodes:\n  b: {service: s}\n  a:\n    depends_on: " +
				"[b]\n    exec:\n      type: process\n      command: x\n      env: {A: '" + text + "'}\n",
			"worker": "inputs: {day: text}\nnodes:\n  b: {service: s}\n  a:\n    depends_on: " +
				"[b]\n    exec:\n      type: process\n      service: w\n      command: x\n      env: {A: '" +
				text + "'}\n",
			"graph": "inputs: {day: text}\nstart: a\nnodes:\n  a:\n    exec:\n      type: " +
				"process\n      command: x\n      env: {A: '" + text + "'}\n",
		} {
			_, problems := compile.Text([]byte(definition), flow.Limits{})
			if form == "graph" && len(text) > 7 && (text[:7] == "${deps." || text[:4] == "a ${") {
				require.ErrorContains(t, problems.Err(), "there are no dependencies here", "%s: %s", form, text)
				continue
			}
			if want == "" {
				require.NoError(t, problems.Err(), "%s: %s", form, text)
				continue
			}
			require.ErrorContains(t, problems.Err(), "nodes.a.exec.env.A: "+want, "%s: %s", form, text)
			require.Positive(t, problems[0].Line, text)
		}
	}
}
