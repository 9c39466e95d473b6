package definition_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/definition"
)

func TestYAMLSyntaxErrorsHavePlainTextsAndPositions(t *testing.T) {
	for name, tt := range map[string]struct {
		text string
		want []string
	}{
		"a line that is indented like none above": {
			"start: a\nnodes:\n  a:\n    service: s\n   func: f\n    wait_ms: 1\n",
			[]string{"5:4: invalid YAML: the line is indented by 3 spaces, like none of those " +
				"that it could be beside: write 4 spaces as in line 4, or 2 spaces as in line 3"},
		},
		"a line that is indented below a value": {
			"start: a\nnodes:\n  a:\n    service: s\n      func: f\n",
			[]string{"5:7: invalid YAML: the line is indented by 6 spaces, like none of those " +
				"that it could be beside: write 4 spaces as in line 4, or 2 spaces as in line 3"},
		},
		"tabs": {
			"start: a\nnodes:\n\ta:\n\t\tservice: s\n",
			[]string{"3:1: invalid YAML: a tab in the indentation: YAML takes spaces (so does it in the lines up to 4)"},
		},
		"a tab behind a value": {
			"start: a\nnodes:\n  a:\n    service: s\n\tfunc: f\n",
			[]string{"5:1: invalid YAML: a tab in the indentation: YAML takes spaces"},
		},
		"a second colon in a line": {
			"start: a\nnodes:\n  a:\n    service: b: c\n",
			[]string{`4:15: invalid YAML: a second ": " in the line: put the value in quotes`},
		},
		"a second colon in the first line": {"a: b: c\n",
			[]string{`1:5: invalid YAML: a second ": " in the line: put the value in quotes`}},
		"a key without a colon": {
			"start: a\nnodes:\n  a:\n    service s\n    func: f\n",
			[]string{`4:5: invalid YAML: "service s" is no key with a value, and this one goes on with it: write service: …`},
		},
		"a last key without a colon": {
			"start: a\nnodes:\n  a: {service: s}\nedges []\n",
			[]string{`4:1: invalid YAML: "edges []" is no key with a value: write edges: …`},
		},
		"a colon without a space": {
			"start: a\nnodes:\n  a:\n    service: s\n    func:f\n",
			[]string{`5:10: invalid YAML: a space is missing behind the colon: write func: …`},
		},
		"a bracket that is not closed": {
			"start: a\nnodes: {a: {service: s}}\nedges: [{from: a, action: x, to: \"\"}\n",
			[]string{"3:8: invalid YAML: the [ that begins here has no end: write ]"},
		},
		"a bracket that is not closed and lines behind it": {
			"start: a\nedges: [{from: a, action: x, to: \"\"}\nnodes:\n  a: {service: s}\n",
			[]string{"2:8: invalid YAML: the [ that begins here has no end: write ]"},
		},
		"a comma that is missing": {
			"start: a\nnodes: {a: {service: s}}\nedges:\n  - {from: a action: x, to: \"\"}\n",
			[]string{"4:14: invalid YAML: a comma is missing before this entry"},
		},
		"quotes that are not closed": {
			"start: a\nnodes:\n  a: {service: \"s}\n",
			[]string{`3:16: invalid YAML: the text in quotes that begins here has no end: write " behind it`},
		},
		"a text that begins with a mark": {
			"start: a\nnodes:\n  a: {service: @s}\n",
			[]string{`3:16: invalid YAML: no text begins with "@": put it in quotes`},
		},
		"an alias of nothing": {
			"start: a\nnodes:\n  a: *b\n",
			[]string{"3:6: invalid YAML: the alias *b stands for nothing: write &b before what is meant, or put the text in quotes"},
		},
		"a key among the entries of a list": {
			"start: a\nnodes: {a: {service: s}}\nedges:\n- {from: a, action: error, to: \"\"}\nfrom: b\n- {from: b}\n",
			[]string{"6:1: invalid YAML: a key with its value is expected here, as in the lines above"},
		},
		"a key in the place of an entry": {
			"start: a\nedges:\n  - {from: a, action: error, to: \"\"}\n  from: b\n",
			[]string{"4:3: invalid YAML: an entry of the list above is expected here: write - before it, or indent it otherwise"},
		},
		"a backslash in double quotes": {
			"start: a\nnodes:\n  a: {service: s, func: \"\\d\"}\n",
			[]string{`3:26: invalid YAML: in double quotes a \ begins an escape such as \n: ` +
				`write \\ for the character itself, or use single quotes`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, p := range problemsOf(tt.text) {
				if strings.Contains(p, "invalid YAML") {
					got = append(got, p)
				}
			}
			require.Equal(t, tt.want, got)
		})
	}
}

func TestProblemsAfterAYAMLSyntaxErrorAreReported(t *testing.T) {
	require.Equal(t, []string{
		"3:1: invalid YAML: a tab in the indentation: YAML takes spaces",
		"4:5: warning: nodes.a.servise: unknown field, ignored: did you mean service?",
		"5:4: invalid YAML: the line is indented by 3 spaces, like none of those that it could " +
			"be beside: write 4 spaces as in line 4, or 2 spaces as in line 3",
		"5:13: nodes.a.wait_ms: must be an integer, is a string",
		`6:15: invalid YAML: a second ": " in the line: put the value in quotes`,
		"7:1: start: the key is there twice, first in line 1",
	}, withoutIdle(problemsOf("start: a\nnodes:\n\ta:\n    servise: s\n   wait_ms: \"1\"\n    service: b: c\nstart: b\n")))
}

func TestProblemsAfterAJSONSyntaxErrorAreReported(t *testing.T) {
	require.Equal(t, []string{
		`1:10: invalid JSON: texts are in double quotes: write "a"`,
		`2:33: invalid JSON: a comma before }: leave it out`,
		"3:2: invalid JSON: keys are in double quotes: write \"edges\"",
		`3:9: edges: must be an array, is an object`,
		`3:11: invalid JSON: a comma is missing behind this`,
	}, problemsOf("{\"start\":a,\n \"nodes\": {\"a\": {\"service\": \"s\"},},\n edges: {}\n \"timeout_ms\": 5}"))
}

func TestAStrayWordInJSONIsOneErrorAndHidesNoOther(t *testing.T) {
	for text, want := range map[string][]string{
		`{"start":"a","nodes":{"a":{"service":"s"},"a":{"service":"s"}}, x}`: {
			"1:43: nodes.a: the key is there twice, first in line 1",
			`1:65: invalid JSON: the key has no value: write "x": …, or leave it out`,
		},
		`{"nodes":{"a":{"service":"s", "x", "depends_on":5},"b":{"service":"s","servise":"s","\" x"}}}` + "\n x\n y": {
			`1:31: invalid JSON: the key has no value: write "x": …, or leave it out`,
			"1:49: nodes.a.depends_on: must be an array, is a number",
			"1:71: warning: nodes.b.servise: unknown field, ignored: did you mean service?",
			`1:85: invalid JSON: the key has no value: write "\" x": …, or leave it out`,
			"2:2: invalid JSON: the definition has ended before this: leave it out, or see which bracket closes too early",
		},
		`{"nodes":{"a":{x, "service":"s",, "func": , "depends_on":5}}} more`: {
			`1:16: invalid JSON: the key has no value: write "x": …, or leave it out`,
			`1:33: invalid JSON: a value or a key is expected here, not ","`,
			`1:43: invalid JSON: a value or a key is expected here, not ","`,
			"1:58: nodes.a.depends_on: must be an array, is a number",
			"1:63: invalid JSON: the definition has ended before this: leave it out, or see which bracket closes too early",
		},
	} {
		require.Equal(t, want, withoutIdle(problemsOf(text)), text)
	}
}

func TestSeveralErrorsInOneLineOfJSONAreReported(t *testing.T) {
	require.Equal(t, []string{
		"1:1: invalid JSON: the { that begins here has no end",
		"1:46: invalid JSON: a comma is missing behind this",
		"1:55: nodes.a.func: must be a string, is a number",
	}, problemsOf(`{"start": "a", "nodes": {"a": {"service": "x" "func": 1}}`))
}

func TestJSONSyntaxErrorsHavePlainTexts(t *testing.T) {
	for text, want := range map[string]string{
		`{"start": "a" "nodes": {}}`: "1:14: invalid JSON: a comma is missing behind this",
		`{"start" "a"}`:              "1:9: invalid JSON: a colon is missing behind the key",
		`{"start": "a",}`:            "1:14: invalid JSON: a comma before }: leave it out",
		`{'start': "a"}`: "1:2: invalid JSON: keys are in double quotes, not " +
			"in single ones",
		"{\"start\": \"a\nb\"}": `1:13: invalid JSON: a text does not go on in the ` +
			`next line: close it with ", or write \n`,
		`{"nodes": {"a": {"service": "s"}`: "1:11: invalid JSON: the { that begins here has no end",
		"{\"start\": \"a\" // here\n}": `1:15: invalid JSON: JSON has no comments: ` +
			`write the note under a key such as "x-note", or the definition in YAML`,
		`{"nodes": [}`: `1:12: invalid JSON: a value or a key is expected here, not "}"`,
		"{start: x, nodes: {x: {kind: timer}}}": `1:2: invalid JSON: a text that begins with { ` +
			`is read as JSON: put keys and texts into double quotes, or put a line "---" before YAML`,
	} {
		_, err := definition.Parse([]byte(text))
		var problems definition.Problems
		require.ErrorAs(t, err, &problems, text)
		require.Equal(t, want, problems[0].String(), text)
	}
}

func TestAnErrorInALargeTextHasItsLine(t *testing.T) {
	text := strings.Repeat("# a comment\n", 30_000) + "start: a\nnodes:\n  a: [\n"
	_, err := definition.Parse([]byte(text))
	require.ErrorContains(t, err, "30003:3: invalid YAML: ")
}

// withoutIdle removes the problems that result from the flow being shortened for the test.
func withoutIdle(problems []string) (rest []string) {
	for _, p := range problems {
		if !strings.Contains(p, "is missing: no worker") {
			rest = append(rest, p)
		}
	}
	return rest
}
