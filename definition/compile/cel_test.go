package compile_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/definition/compile"
	"github.com/troupe-engine/troupe/flow"
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
    post: {output_key: s}
`), flow.Limits{})
	var told []string
	for _, p := range problems {
		if strings.Contains(p.Path, ".expr") {
			told = append(told, fmt.Sprintf("%d:%d %s %s: %s", p.Line, p.Column, p.Severity, p.Path, p.Msg))
		}
	}
	require.Equal(t, []string{
		`8:27 error nodes.a.choice_cases[1].expr: unknown name parms: an expression sees params, input and shared`,
		`9:37 error nodes.a.choice_cases[2].expr: the expression ends too early: a value or a closing bracket is missing`,
		`10:27 error nodes.a.choice_cases[3].expr: the expression gives int: it has to be true or false`,
		`11:28 error nodes.a.choice_cases[4].expr: the expression is empty`,
		`12:27 error nodes.a.choice_cases[5].expr: unknown name parms: an expression sees params, input and shared`,
		`13:27 error nodes.a.choice_cases[6].expr: unknown name deps: an expression sees params, input and shared`,
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

func TestAnErrorInAnExpressionIsReportedAtItsCharacter(t *testing.T) {
	for text, want := range map[string]string{
		"expr: params.n >= nn":                                  "7:27",
		"expr: \"params.s == \\\"ü\\\" && nn\"":                 "7:37",
		"expr: 'params.s == ''x'' && nn'":                       "7:37",
		"expr: |\n          params.n > 1 &&\n            nn":    "9:13",
		"expr: >-\n          params.n > 1 &&\n          nn > 1": "9:11",
		"expr: params.n > 1 &&\n          nn > 1":               "8:11",
		"expr: &x  params.n > nn":                               "7:30",
	} {
		_, problems := compile.Text([]byte("start: a\nnodes:\n  a:\n    kind: choice\n    "+
			"choice_cases:\n      - action: x\n        "+text+"\n"), flow.Limits{})
		require.Contains(t, problems.Error(), want+": nodes.a.choice_cases[0].expr: unknown name nn", text)
	}
	_, problems := compile.Text([]byte("{\"start\": \"a\", \"nodes\": {\"a\": {\"kind\": "+
		"\"choice\", \"choice_cases\": [\n{\"action\": \"x\", \"expr\": \"params.s == \\\"ü\\\" "+
		"&& nn\"}]}}}"), flow.Limits{})
	require.Contains(t, problems.Error(), "2:47: nodes.a.choice_cases[0].expr: unknown name nn")
}

func TestAReferenceInAnExpressionIsReportedAtItsPosition(t *testing.T) {
	for definition, want := range map[string][]string{
		"inputs: {amount: int}\nstart: a\nnodes:\n  a:\n    kind: choice\n    choice_cases: " +
			"[{action: x, expr: params.amount > 1 && params.amuont < 3 || params.amuont > 9}]\n": {
			`6:59: nodes.a.choice_cases[0].expr: "params.amuont" leads nowhere`,
			`6:80: nodes.a.choice_cases[0].expr: "params.amuont" leads nowhere`},
		"inputs: {amount: int}\nnodes:\n  a: {service: s}\n  b:\n    service: s\n    " +
			"depends_on: [a]\n    when:\n      expr: |\n        run.amount > 1 &&\n          " +
			"(has(deps.aa) || run.amuont > deps.a.least)\n": {
			`10:16: nodes.b.when.expr: "deps.aa" refers to "aa", which is not among depends_on`,
			`10:28: nodes.b.when.expr: "run.amuont" leads nowhere`},
		"nodes:\n  a: {service: s}\n  b: {service: s, depends_on: [a], prep: {expr: \"{'x': deps['a'].x, 'y': deps['b']}\"}}\n": {
			`3:74: nodes.b.prep.expr: "deps.b" refers to "b", which is not among depends_on`},
	} {
		_, problems := compile.Text([]byte(definition), flow.Limits{})
		require.Len(t, problems, len(want), "%v", problems)
		for i, w := range want {
			require.Contains(t, problems[i].String(), w)
		}
	}
}

func TestErrorsInExpressionsHavePlainTexts(t *testing.T) {
	for source, want := range map[string]string{
		"params.n > 1 and params.m": "write && in the place of and",
		"not params.n":              "write ! in the place of not",
		"params.n = 1":              "write == in the place of =",
		"$params.n > 1":             "names have no $ in an expression: write params.n",
		"params.n > 1)":             `")" is not expected here`,
		"(params.n > 1":             "the expression ends too early: a value or a closing bracket is missing",
		"params.s == 'x":            "the text in quotes that begins here has no end",
		"params.n & 1":              "write && in the place of &",
		"params.n 1":                `"1" is not expected here: an operator or a comma may be missing before it`,
		"sizes(params.n) > 1":       "there is no function sizes",
	} {
		_, problems := compile.Text(fmt.Appendf(nil,
			"start: a\nnodes: {a: {kind: choice, choice_cases: [{action: x, expr: %q}]}}\n",
			source), flow.Limits{})
		require.Contains(t, problems.Error(), want, source)
		require.NotContains(t, problems.Error(), "expecting", source)
	}
}
