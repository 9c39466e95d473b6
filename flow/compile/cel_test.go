package compile_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/compile"
)

func TestExpressionsInCELAreChecked(t *testing.T) {
	_, problems := compile.Text([]byte(`
start: a
nodes:
  a:
    kind: choice
    choice_cases:
      - {action: x, expr: params.n > 1 && input == null && shared.s != ""}
      - {action: x, expr: parms.n > 1}
      - {action: x, expr: params.n >}
      - {action: x, expr: size(params)}
      - {action: x, expr: ""}
      - {action: x, expr: parms.n > 1}
      - {action: x, expr: deps.a}
`), flow.Limits{})
	var told []string
	for _, p := range problems {
		msg, _, _ := strings.Cut(p.Msg, ", expecting")
		msg, _, _ = strings.Cut(msg, " expecting")
		msg, _, _ = strings.Cut(msg, " (in container")
		told = append(told, fmt.Sprintf("%d %s %s: %s", p.Line, p.Severity, p.Path, msg))
	}
	require.Equal(t, []string{
		`8 error nodes.a.choice_cases[1].expr: column 1: undeclared reference to 'parms'`,
		`9 error nodes.a.choice_cases[2].expr: column 11: mismatched input '<EOF>'`,
		`10 error nodes.a.choice_cases[3].expr: the expression gives int: it has to be true or false`,
		`11 error nodes.a.choice_cases[4].expr: the expression is empty`,
		`12 error nodes.a.choice_cases[5].expr: column 1: undeclared reference to 'parms'`,
		`13 error nodes.a.choice_cases[6].expr: column 1: undeclared reference to 'deps'`,
	}, told)
}

func TestExpressionsInCELAreBounded(t *testing.T) {
	cases := func(n int, expr func(i int) string) string {
		var b strings.Builder
		b.WriteString("start: a\nnodes:\n  a:\n    kind: choice\n    choice_cases:\n")
		for i := range n {
			fmt.Fprintf(&b, "      - {action: x, expr: %s}\n", expr(i))
		}
		return b.String()
	}
	long := strings.Repeat("a", 1_900)
	_, problems := compile.Text([]byte(cases(139, func(i int) string { return fmt.Sprintf("params.n == '%s%d'", long, i) })), flow.Limits{})
	require.Len(t, problems, 1)
	require.Equal(t, "the flow has more than 5000 different expressions, or more than 256 KiB of them", problems[0].Msg)

	plan, problems := compile.Text([]byte(cases(6_000, func(int) string { return "params.n == 1" })), flow.Limits{})
	require.Empty(t, problems)
	of := plan.Root.Nodes["a"].Cases
	require.Same(t, of[0].CEL, of[5_999].CEL, "the same expression is compiled once")
}
