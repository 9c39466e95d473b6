package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/api/wire"
)

func TestDefinitionsAreCheckedWithoutAServer(t *testing.T) {
	t.Setenv("TROUPE_SERVER", "http://127.0.0.1:1")
	bad := write(t, "bad.yaml", "start: a\nnodes:\n  b: {kind: exec}\n")
	got := call(t, "flow", "validate", bad, write(t, "double.yaml", double))
	require.Equal(t, exitFailed, got.code)
	require.Contains(t, got.stdout, bad+":1:8: error: start: unknown node \"a\"")
	require.Contains(t, got.stdout, bad+":3:13: error: nodes.b.kind: ")
	require.Contains(t, got.stdout, "double.yaml: valid")
}

func TestAllDefinitionsOfAFolderAreChecked(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"a.yaml": double, "b.json": "{",
		"notes.txt": "no flow", ".hidden.yaml": "no flow", "a.test.yaml": "cases"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	got := call(t, "flow", "validate", dir)
	require.Equal(t, exitFailed, got.code)
	require.Equal(t, filepath.Join(dir, "a.yaml")+": valid\n"+filepath.Join(dir,
		"b.json")+":1:1: error: invalid JSON: the { that begins here has no end\n"+
		filepath.Join(dir, "b.json")+":1:1: error: start: no start\n", got.stdout)

	got = call(t, "flow", "validate", t.TempDir())
	require.Equal(t, exitUsage, got.code)
	require.Contains(t, got.stderr, "has no definitions")
}

func TestADefinitionIsReadFromStdin(t *testing.T) {
	var stdout, stderr bytes.Buffer
	require.Equal(t, exitFailed, run(t.Context(), []string{"flow", "validate", "-"}, strings.NewReader("start: a\n"), &stdout, &stderr))
	require.Equal(t, "-:1:8: error: start: unknown node \"a\"\n", stdout.String())
}

func TestAFileThatCannotBeReadIsAMistakeInTheCommandLine(t *testing.T) {
	got := call(t, "flow", "validate", filepath.Join(t.TempDir(), "none.yaml"))
	require.Equal(t, exitUsage, got.code)
	require.Contains(t, got.stderr, "no such file")
}

func TestAFileOfCasesIsNoFlow(t *testing.T) {
	order := write(t, "order.yaml", double)
	file := filepath.Join(filepath.Dir(order), "order.test.yaml")
	require.NoError(t, os.WriteFile(file, []byte("cases: {it doubles: {}}\n"), 0o600))
	told, at := file+": error: this is a test case file: run troupe flow test "+file+"\n", server(t)

	got := call(t, "flow", "validate", file, order)
	require.Equal(t, exitFailed, got.code)
	require.Equal(t, told+order+": valid\n", got.stdout)
	require.Contains(t, call(t, "flow", "validate", "--output", "json", file).stdout, `"valid":false`)
	got = call(t, append([]string{"flow", "apply", file, order}, at...)...)
	require.Equal(t, exitFailed, got.code)
	require.Equal(t, told, got.stderr)
	require.Equal(t, "order version 1 published\n", got.stdout)
	got = call(t, append([]string{"flow", "run", file}, at...)...)
	require.Equal(t, exitFailed, got.code)
	require.Equal(t, told, got.stderr)
}

func TestStrictMakesWarningsErrors(t *testing.T) {
	path := write(t, "warned.yaml", "start: a\nnodes:\n  a: {kind: timer, params: {delay_ms: "+
		"1}}\n  b: {kind: timer, params: {delay_ms: 1}}\n")
	got := call(t, "flow", "validate", path)
	require.Equal(t, exitOK, got.code)
	require.Contains(t, got.stdout, path+":4:3: warning: nodes.b: is never reached")
	got = call(t, "flow", "validate", "--strict", path)
	require.Equal(t, exitFailed, got.code)
	require.Contains(t, got.stdout, path+":4:3: error: nodes.b: is never reached")

	at := server(t)
	got = call(t, append([]string{"flow", "apply", "--strict", path}, at...)...)
	require.Equal(t, exitFailed, got.code)
	require.Contains(t, got.stderr, path+":4:3: error: nodes.b: is never reached")
	got = call(t, append([]string{"flow", "apply", path}, at...)...)
	require.Equal(t, exitOK, got.code)
	require.Contains(t, got.stderr, path+":4:3: warning: nodes.b: is never reached")
	for _, command := range []string{"run", "try"} {
		got = call(t, append([]string{"flow", command, "--strict", path}, at...)...)
		require.Equal(t, exitFailed, got.code, command)
		require.Contains(t, got.stderr, path+":4:3: error: nodes.b: is never reached", command)
		got = call(t, append([]string{"flow", command, path}, at...)...)
		require.Equal(t, exitOK, got.code, command)
		require.Contains(t, got.stderr, path+":4:3: warning: nodes.b: is never reached", command)
	}
}

func TestEmbeddedFlowsAreFoundAmongTheFiles(t *testing.T) {
	outer := write(t, "outer.yaml", "nodes:\n  a:\n    kind: branch\n    flow: inner\n    prep: {input_key: $run}\n")
	got := call(t, "flow", "validate", outer)
	require.Equal(t, exitOK, got.code, "whether there is another flow is known to a member alone")
	require.Equal(t, outer+":4:11: note: nodes.a.flow: not checked: whether there is a flow "+
		"\"inner\", and what is in it\n"+outer+": valid\n", got.stdout)

	inner := filepath.Join(filepath.Dir(outer), "inner.yaml")
	require.NoError(t, os.WriteFile(inner, []byte("nodes:\n  x: {service: s}\n"), 0o600))
	require.Equal(t, outer+": valid\n"+inner+": valid\n", call(t, "flow", "validate", outer, inner).stdout)

	got = call(t, append([]string{"flow", "validate", outer}, server(t)...)...)
	require.Equal(t, exitFailed, got.code)
	require.Contains(t, got.stdout, `error: nodes.a.flow: unknown flow "inner": publish it first`)
}

// order is the flow of an order, into which each fault below is inserted.
const order = `name: order
start: reserve
result: parcel
timeout: 1h
nodes:
  reserve:
    service: stock
    prep: {input_map: {sku: $params.sku, count: $params.count}}
    post: {output_key: reservation}
    compensate: release
  size:
    kind: choice
    choice_cases:
      - {action: large, expr: "params.count > 100"}
    default_action: small
  approve:
    kind: approval
    params: {approval_key: $shared.decision}
  charge:
    service: payments
    retry: {max_attempts: 3, delay: 1s}
    prep: {input_key: $shared.reservation}
    post: {output_key: payment}
  ship:
    service: parcels
    prep: {input_key: $shared.payment}
    post: {output_key: parcel}
  release:
    service: stock
    prep: {input_key: $input.output}
edges:
  - {from: reserve, action: default, to: size}
  - {from: size, action: large, to: approve}
  - {from: size, action: small, to: charge}
  - {from: approve, action: approved, to: charge}
  - {from: charge, action: default, to: ship}
`

// mistakes holds typical faults and the expected problems.
var mistakes = map[string]struct{ right, wrong, want string }{
	"a duplicate key": {"    compensate: release\n", "    compensate: release\n    service: shop\n",
		":11:5: error: nodes.reserve.service: the key is there twice, first in line 7"},
	"a tab": {"    service: payments\n", "\tservice: payments\n",
		":20:1: error: invalid YAML: a tab in the indentation: YAML takes spaces"},
	"a line indented otherwise": {"    service: parcels\n    prep", "    service: parcels\n   prep",
		":26:4: error: invalid YAML: the line is indented by 3 spaces, like none of those that " +
			"it could be beside: write 4 spaces as in line 25, or 2 spaces as in line 24"},
	"a misspelled node in an edge": {"to: ship}", "to: shp}",
		`:36:41: error: edges[4].to: unknown node "shp": did you mean ship?`},
	"an edge that is missing": {"  - {from: size, action: large, to: approve}\n", "",
		`:16:3: error: nodes.approve: is never reached from "reserve": add an edge to it, or leave it out`},
	"a field of the wrong type": {"max_attempts: 3", `max_attempts: "3"`,
		":21:27: error: nodes.charge.retry.max_attempts: must be an integer, is a string"},
	"an unknown field": {"    compensate: release", "    compensat: release",
		":10:5: error: nodes.reserve.compensat: unknown field, ignored: did you mean compensate?"},
	"a mistake in an expression": {"params.count > 100", "params.count > and 100",
		":14:47: error: nodes.size.choice_cases[0].expr: write && in the place of and"},
	"an action that nothing ends with": {"action: approved", "action: aproved",
		`:35:29: error: edges[3].action: node "approve" does not end with the action "aproved": did you mean approved?`},
	"a compensation that is not there": {"compensate: release", "compensate: relaese",
		`:10:17: error: nodes.reserve.compensate: unknown node "relaese": did you mean release?`},
	"a key of shared that nobody writes": {"$shared.payment}", "$shared.paymnet}",
		`:26:23: error: nodes.ship.prep.input_key: no node writes the key "paymnet" of shared: did you mean $shared.payment?`},
	"a result that nobody writes": {"result: parcel", "result: parcels",
		`:3:9: error: result: no node writes the key "parcels" of shared: did you mean parcel?`},
	"a bare word in the place of a reference": {"input_key: $shared.reservation", "input_key: reservatoin",
		`:22:23: error: nodes.charge.prep.input_key: "reservatoin" is read as the key ` +
			`"reservatoin" of shared, which no node writes: did you mean reservation?`},
	"a misspelled setting of a wait": {"approval_key:", "aproval_key:",
		":18:27: error: nodes.approve.params.aproval_key: no approval reads this: did you mean approval_key?"},
	"a time without a unit": {"timeout: 1h", "timeout: 60",
		":4:10: error: timeout: a number has no unit here: write for example 30s or 250ms"},
	"a second document": {"edges:\n", "---\nedges:\n",
		":31:1: error: the text has more than one document: write each flow into a file of its own"},
}

func TestEachFaultIsReportedWithItsPlaceAndAdvice(t *testing.T) {
	require.Equal(t, result{stdout: "order.yaml: valid\n"}, validateOrder(t, order))
	for name, m := range mistakes {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, 1, strings.Count(order, m.right), "the mistake has one place")
			got := validateOrder(t, strings.Replace(order, m.right, m.wrong, 1))
			require.Equal(t, exitFailed, got.code)
			require.Contains(t, strings.Split(got.stdout, "\n"), "order.yaml"+m.want)
		})
	}
}

func TestFaultsAreReportedTogether(t *testing.T) {
	together := []string{"a duplicate key", "a tab", "a misspelled node in an edge",
		"a field of the wrong type", "a mistake in an expression",
		"an action that nothing ends with", "a compensation that is not there", "a result that nobody writes",
		"a bare word in the place of a reference", "a misspelled setting of a wait"}
	text := order
	for _, name := range together {
		text = strings.Replace(text, mistakes[name].right, mistakes[name].wrong, 1)
	}
	got := validateOrder(t, text)
	require.Equal(t, exitFailed, got.code)
	for _, name := range together {
		_, msg, _ := strings.Cut(mistakes[name].want, ": error: ")
		require.Contains(t, got.stdout, msg, name)
	}
	require.Len(t, strings.Split(strings.TrimSpace(got.stdout), "\n"), len(together), got.stdout)
}

// validateOrder checks a text in a file of this name, with --strict and without a server.
func validateOrder(t *testing.T, text string) result {
	t.Chdir(t.TempDir())
	require.NoError(t, os.WriteFile("order.yaml", []byte(text), 0o600))
	return call(t, "flow", "validate", "--strict", "order.yaml")
}

func TestProblemsAreJSONWhenAsked(t *testing.T) {
	got := call(t, "flow", "validate", "-o", "json", write(t, "bad.yaml", "start: a\n"))
	require.Equal(t, exitFailed, got.code)
	v := parse[struct {
		File string
		wire.Validation
	}](t, got.stdout)
	require.False(t, v.Valid)
	require.Equal(t, []wire.DefinitionProblem{{Path: "start", Line: 1, Column: 8, Severity: "error",
		Message: `unknown node "a"`}}, v.Problems)
}

func TestAFolderIsPublished(t *testing.T) {
	dir, at := t.TempDir(), server(t)
	apply := func(args ...string) result {
		return call(t, append(append([]string{"flow", "apply"}, args...), at...)...)
	}
	const legal = "mode: dag\nnodes: {sign: {service: s}}\n"
	for name, text := range map[string]string{
		// precedes the flow that it embeds
		"contract.yaml": "mode: dag\nnodes: {legal: {kind: branch, prep: {input_map: {x: $run.x}}, flow: legal}}\n",
		"legal.yaml":    legal, "legal.test.yaml": "cases: {}", "notes.txt": "no flow", "workers.yaml": "default: a\na: {}\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	require.Equal(t, result{0, "legal version 1 published\ncontract version 1 published\n", ""}, apply(dir))

	require.NoError(t, os.WriteFile(filepath.Join(dir, "wrong.yaml"), []byte("start: a\n"), 0o600))
	got := apply(dir)
	require.Equal(t, exitFailed, got.code)
	require.Equal(t, filepath.Join(dir, "wrong.yaml")+":1:8: error: start: unknown node \"a\"\n", got.stderr)
	require.Equal(t, exitUsage, apply(dir, "--slug", "x").code)
}

// oneService is the smallest definition.
const oneService = "start: a\nnodes: {a: {service: s}}\n"

func TestTwoFilesOfOneFlowAreRefused(t *testing.T) {
	dir, at := t.TempDir(), server(t)
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	yaml, json := file("order.yaml", oneService), file("order.json", `{"start":"a","nodes":{"a":{"service":"s"}}}`)
	workflow, same := file("w.yaml", orkWorkflow), file("Nightly.yaml", oneService)
	file("other.yaml", oneService)
	refused := func(file, slug, other string) string {
		return file + ": error: has the same slug " + slug + " as " + other + ": rename one of the files\n"
	}

	got := call(t, "flow", "validate", dir)
	require.Equal(t, exitFailed, got.code)
	for _, want := range []string{refused(yaml, "order", json), refused(json, "order", yaml),
		refused(same, "nightly", workflow), refused(workflow, "nightly", same)} {
		require.Contains(t, got.stdout, want)
	}
	require.Contains(t, got.stdout, "other.yaml: valid\n")
	require.NotContains(t, got.stdout, yaml+": valid")

	got = call(t, append([]string{"flow", "apply", dir}, at...)...)
	require.Equal(t, exitFailed, got.code)
	require.Equal(t, "other version 1 published\n", got.stdout)
	require.Contains(t, got.stderr, refused(yaml, "order", json))
	require.Contains(t, got.stderr, refused(workflow, "nightly", same))
	got = call(t, append([]string{"flow", "apply", yaml, filepath.Join(dir, ".", "order.yaml")}, at...)...)
	require.Equal(t, result{0, "order version 1 published\norder version 1 unchanged\n", ""}, got, "one file, though named twice")
}

func TestTwoFlowsOfOneNameAreWarnedOf(t *testing.T) {
	at := server(t)
	one, two := write(t, "one.yaml", "name: Order\n"+oneService), write(t, "two.yaml", "name: Order\n"+oneService)
	warning := one + ": warning: name: is also the name of the flow in " + two + "\n"
	got := call(t, "flow", "validate", one, two)
	require.Zero(t, got.code)
	require.Contains(t, got.stdout, warning)
	require.Equal(t, exitFailed, call(t, "flow", "validate", "--strict", one, two).code)
	got = call(t, append([]string{"flow", "apply", "--strict", one, two}, at...)...)
	require.Equal(t, exitFailed, got.code)
	require.Empty(t, got.stdout)
	got = call(t, append([]string{"flow", "apply", one, two}, at...)...)
	require.Zero(t, got.code)
	require.Contains(t, got.stderr, warning)
	require.Equal(t, "one version 1 published\ntwo version 1 published\n", got.stdout)
}
