package cli

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/api/wire"
)

const declares = `name: declares
inputs:
  sku: text (what is ordered)
  amount: int = 3
  note: optional text
start: a
nodes:
  a: {exec_type: local_func, func: upper, prep: {input_key: $params.sku}}
`

func TestDeclaredTypesDecideHowParamsAreParsed(t *testing.T) {
	at := server(t)
	cmd := func(args ...string) result { return call(t, append(args, at...)...) }
	file := write(t, "declares.yaml", declares)
	params := func(got result) string {
		require.Equal(t, 0, got.code, got.stderr)
		return string(parse[wire.Task](t, got.stdout).Params)
	}
	run := func(flags ...string) result {
		return cmd(append([]string{"flow", "run", file, "-o", "json"}, flags...)...)
	}
	require.JSONEq(t, `{"sku":"1","amount":2}`, params(run("-p", "sku=1", "-p", "amount=2")))
	require.JSONEq(t, `{"sku":"1","amount":3}`, params(run("-p", `sku="1"`)))
	require.JSONEq(t, `{"sku":"1","amount":3}`, params(run("-p", `sku:="1"`)))
	start := func(flags ...string) result {
		return cmd(append([]string{"task", "start", "declares", "--wait", "-o", "json"}, flags...)...)
	}
	require.JSONEq(t, `{"sku":"true","amount":4,"note":"null"}`, params(start("-p", "sku=true", "-p", "amount:=4", "-p", "note=null")))

	got := start("-p", `sku:=x`)
	require.Equal(t, 2, got.code)
	require.Contains(t, got.stderr, "-p sku:=x is not valid JSON: quote strings, or write sku=x")
	require.JSONEq(t, `{"n":1,"text":"1"}`,
		params(cmd("task", "start", "double", "--wait", "-o", "json", "-p", "n=1", "-p",
			`text:="1"`)), "without a declaration all JSON is JSON")
}

func TestInvalidInputsAreReportedOnePerLine(t *testing.T) {
	at := server(t)
	file := write(t, "declares.yaml", declares)
	got := call(t, append([]string{"flow", "run", file, "-p", "amount=x", "-p", "skuu=1"}, at...)...)
	require.Equal(t, 1, got.code)
	require.Equal(t, `troupe: the params do not match the inputs that the flow declares
  $params.sku: is missing: text was declared (what is ordered)
  $params.amount: is text "x", an int was declared
  $params.skuu: is not declared: did you mean sku?
hint: troupe flow show declares lists its inputs
`, got.stderr)
}

func TestAFlowShowsWhatItTakes(t *testing.T) {
	at := server(t)
	require.Zero(t, call(t, append([]string{"flow", "apply", write(t, "declares.yaml", declares)}, at...)...).code)
	got := call(t, append([]string{"flow", "show", "declares"}, at...)...)
	require.Contains(t, got.stdout, `INPUT   TYPE  DEFAULT   DESCRIPTION
sku     text  required  what is ordered
amount  int   = 3
note    text  optional
`)
	got = call(t, append([]string{"flow", "show", "declares", "--plan"}, at...)...)
	require.Contains(t, got.stdout, "  takes sku: text (what is ordered)\n  takes amount: int = 3\n  takes note: optional text\n")
}

func TestTheNamesOfInputsAreCompleted(t *testing.T) {
	at := server(t)
	file := write(t, "declares.yaml", declares)
	require.Zero(t, call(t, append([]string{"flow", "apply", file}, at...)...).code)
	t.Setenv("TROUPE_SERVER", at[1])
	const want = "sku=\ttext (what is ordered)\namount=\tint = 3\nnote=\toptional text\n"
	for _, words := range [][]string{{"task", "start", "declares", "-p", ""},
		{"task", "start", "declares", "-p", "sku=1", "--param", "a"}, {"flow", "run", file, "-p", ""}} {
		got := call(t, append([]string{"__complete", "--"}, words...)...)
		require.Equal(t, result{0, want, ""}, got, words)
	}
	require.Equal(t, result{}, call(t, "__complete", "--", "task", "start", "double", "-p", ""), "nothing is declared")
	require.Equal(t, result{}, call(t, "__complete", "--", "task", "start", "-p", ""), "of which flow nobody knows")

	bash, err := exec.LookPath("bash")
	if err != nil {
		return // there is no bash on this machine
	}
	out, err := exec.Command(bash, "-c", call(t, "completion", "bash").stdout+`
COMP_WORDS=("$0" task start declares -p "a"); COMP_CWORD=5; _troupe; echo "${COMPREPLY[*]}"`, binary).CombinedOutput()
	require.NoError(t, err, string(out))
	require.Equal(t, "amount=", strings.TrimSpace(string(out)))
}
