package compile_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/definition/compile"
	"github.com/troupe-engine/troupe/flow"
)

func TestFanOutsOverInputsOfOtherTypesAreRejected(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"inputs: {n: int}\nstart: f\nnodes: {f: {kind: foreach, service: s, prep: {input_key: " +
			"$params.n}}}", `nodes.f.prep.input_key: "$params.n" is declared as an int: it must be an array`},
		{"inputs: {n: int}\nmode: dag\nnodes: {f: {service: s, each: {items: $run.n}}}",
			`nodes.f.each.items: "$run.n" is declared as an int: it must be an array`},
		{"inputs: {n: text}\nmode: dag\nnodes: {f: {service: s, each: {count: $run.n}}}",
			`nodes.f.each.count: "$run.n" is declared as text: it must be`},
	} {
		_, problems := compile.Text([]byte(tt.text), flow.Limits{})
		require.ErrorContains(t, problems.Err(), tt.want, tt.text)
	}
	_, problems := compile.Text([]byte("profile: pocketflow\ninputs: {n: int}\nstart: f\nnodes: "+
		"{f: {kind: foreach, service: s, prep: {input_key: $params.n}}}"), flow.Limits{})
	require.NoError(t, problems.Err())
	require.Contains(t, problems.Error(), `warning: nodes.f.prep.input_key: "$params.n" is declared as an int`)
	_, problems = compile.Text([]byte("inputs: {n: list of int}\nstart: f\nnodes: {f: {kind: "+
		"foreach, service: s, prep: {input_key: $params.n}}}"), flow.Limits{})
	require.NoError(t, problems.Err())
}
