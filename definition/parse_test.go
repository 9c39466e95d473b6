package definition_test

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/definition"
	"github.com/troupe-engine/troupe/definition/compile"
	"github.com/troupe-engine/troupe/flow"
)

func TestJSONAndYAMLGiveTheSameDefinition(t *testing.T) {
	fromJSON, err := definition.Parse([]byte(`  {
		"Start": "a", "TIMEOUT_MS": 5000, "on_error": "fail",
		"nodes": {"a": {"service": "s", "params": {"z": 1.50, "b": [1e3, 12345678901234567890]},
			"prep": {"input_map": {}}, "max_retries": 2, "weighted_by_load": true, "script": null,
			"choice_cases": [{"action": "x", "expr": {"eq": ["$params.n", "5"]}}]}},
		"edges": [{"from": "a", "action": "default", "to": ""}]}`))
	require.NoError(t, err)
	fromYAML, err := definition.Parse([]byte(`
start: a
timeout_ms: 5000
on_error: fail
nodes:
  a:
    service: s
    params: {z: 1.50, b: [1e3, 12345678901234567890]}
    prep: {input_map: {}}
    max_retries: 2
    weighted_by_load: true
    script:
    choice_cases:
      - action: x
        expr: {eq: [$params.n, "5"]}
edges:
  - {from: a, action: default, to: ""}
`))
	require.NoError(t, err)
	fromJSON.ForgetText()
	fromYAML.ForgetText()
	require.Equal(t, fromJSON, fromYAML)
	require.Equal(t, `{"z":1.50,"b":[1e3,12345678901234567890]}`, string(fromYAML.Nodes["a"].Params), "order and digits survive")
	require.NotNil(t, fromYAML.Nodes["a"].Prep.InputMap, "an empty map is a present map")
}

// problemsOf parses and compiles a text and returns its problems as texts.
func problemsOf(text string) []string {
	_, problems := compile.Text([]byte(text), flow.Limits{})
	out := []string{}
	for _, p := range problems {
		out = append(out, p.String())
	}
	return out
}

// encodeUTF16 returns a text in UTF-16.
func encodeUTF16(text string, order binary.AppendByteOrder) []byte {
	var b []byte
	for _, unit := range utf16.Encode([]rune(text)) {
		b = order.AppendUint16(b, unit)
	}
	return b
}

func TestTextsInUTF16AreRefused(t *testing.T) {
	const want = "1:1: the text is in UTF-16: save it as UTF-8"
	for _, text := range []string{"start: a\nnodes: {a: {service: s}}\n", `{"start": "a", "nodes": {"a": {"service": "s"}}}`} {
		for _, mark := range []string{"\ufeff", ""} {
			for _, order := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
				in16 := encodeUTF16(mark+text, order)
				for name, parse := range map[string]func([]byte) (*definition.Definition, error){
					"any": definition.Parse, "JSON": definition.ParseJSON, "YAML": definition.ParseYAML,
					"published": definition.ParsePublished, "pgflow": definition.Reading{Pgflow: true, Known: true}.Parse,
				} {
					d, err := parse(in16)
					require.Nil(t, d, name)
					require.EqualError(t, err, want, name)
				}
				_, err := definition.YAMLToJSON(in16)
				require.EqualError(t, err, want)
				read, r := definition.Read(in16)
				require.Nil(t, read)
				require.EqualError(t, r.All().Err(), want)
				require.Equal(t, []string{want}, problemsOf(string(in16)))
			}
		}
	}
}

func TestProblemsOfATextHavePositions(t *testing.T) {
	for name, tt := range map[string]struct {
		text string
		want []string
	}{
		"wrong types are all told, in the order of the text": {
			"start: a\nnodes:\n  a:\n    service: 5\n    max_retries: \"2\"\n    wait_ms: 2.5\n    prep: [x]\nedges: {}\n",
			[]string{
				"4:14: nodes.a.service: must be a string, is a number",
				"5:18: nodes.a.max_retries: must be an integer, is a string",
				"6:14: nodes.a.wait_ms: must be an integer, is 2.5",
				"7:11: nodes.a.prep: must be an object, is an array",
				"8:8: edges: must be an array, is an object",
			},
		},
		"the same in JSON": {
			"{\"start\": \"a\",\n \"nodes\": {\"a\": {\"service\": \"s\",\n  \"größe\": 0, \"max_retries\": \"2\"}}}",
			[]string{
				"3:3: warning: nodes.a.größe: unknown field, ignored",
				"3:30: nodes.a.max_retries: must be an integer, is a string",
			},
		},
		"problems of text and meaning are told together": {
			"start: b\nnodes:\n  a: {service: s, max_retries: x}\n",
			[]string{"1:8: start: unknown node \"b\"", "3:32: nodes.a.max_retries: must be an integer, is a string"},
		},
		"one cause is told once": {
			"start: 5\nnodes: {}\n", []string{"1:8: start: must be a string, is a number"},
		},
		"no start":         {"nodes: {}\n", []string{"1:1: start: no start"}},
		"no start in JSON": {" {}", []string{"1:2: start: no start"}},
		"empty text":       {" \n", []string{"1:1: the text is empty"}},
		"only a comment":   {"# nothing\n", []string{"1:1: the text is empty"}},
		"no object":        {"- a\n", []string{"1:1: a definition must be an object, is an array"}},
		"two documents": {"start: a\nnodes: {a: {kind: timer, params: {delay_ms: " +
			"0}}}\n---\nstart: b\n", []string{"3:1: the text has more than one document: write " +
			"each flow into a file of its own"}},
		"broken JSON": {"{\"start\":\n  x}",
			[]string{`2:3: invalid JSON: texts are in double quotes: write "x"`,
				`2:3: start: unknown node "x"`}},
		"half of a JSON": {"{\"start\"", []string{"1:1: invalid JSON: the { that begins here has no end"}},
		"bytes that are no text": {
			"{\"start\": \"\xff\"}", []string{"1:12: the text is not valid UTF-8"},
		},
		"keys must be strings": {
			"start: a\nnodes:\n  1: {}\n  a: {service: s, params: {true: 1}}\n",
			[]string{"3:3: nodes.1: keys must be strings: put this one in quotes",
				"4:28: nodes.a.params.true: keys must be strings: put this one in quotes"},
		},
		"a key twice in YAML": {
			"start: a\nnodes:\n  a: {service: s}\n  a: {service: t}\n",
			[]string{"4:3: nodes.a: the key is there twice, first in line 3"},
		},
		"a key twice in JSON, also in another case": {
			"{\"start\": \"b\", \"START\": \"a\", \"nodes\": {\"a\": {\"service\": \"s\"},\n\"a\": {\"service\": \"t\"}}}",
			[]string{"1:16: START: the key is there twice, first in line 1", "2:1: nodes.a: the key is there twice, first in line 1"},
		},
		"a key twice in YAML, in another case": {
			"start: a\nStart: b\nnodes: {b: {service: s}}\n",
			[]string{"2:1: Start: the key is there twice, first in line 1"},
		},
		"a key twice in what is only passed on, in JSON": {
			`{"start": "a", "nodes": {"a": {"service": "s", "params": {"x": [1, {"y": 1, "y": 2}]}}}}`,
			[]string{"1:77: nodes.a.params.x[1].y: the key is there twice, first in line 1"},
		},
		"the same in YAML": {
			"start: a\nnodes: {a: {service: s, params: {x: [1, {y: 1, y: 2}]}}}\n",
			[]string{"2:48: nodes.a.params.x[1].y: the key is there twice, first in line 2"},
		},
		"no form in JSON": {
			"start: a\nnodes:\n  a: {service: s, params: {x: .inf}}\n",
			[]string{`3:31: nodes.a.params.x: ".inf" is no number that JSON has: write a text, or null`},
		},
		"likely typos": {
			"start: a\nnodes:\n  a: {service: s, max_retrys: 2, kindd: x, frobnicate: 1, x-note: mine}\nedge: []\n.shared: 1\n",
			[]string{
				"3:19: warning: nodes.a.max_retrys: unknown field, ignored: did you mean max_retries?",
				"3:34: warning: nodes.a.kindd: unknown field, ignored: did you mean kind?",
				"3:44: warning: nodes.a.frobnicate: unknown field, ignored",
				"4:1: warning: edge: unknown field, ignored: did you mean edges?",
			},
		},
		"an expression": {
			"start: c\nnodes:\n  c:\n    kind: choice\n    choice_cases:\n    - action: x\n     " +
				" expr: {and: [true, {equals: [1, 2]}]}\n    - action: y\n",
			[]string{
				"7:27: nodes.c.choice_cases[0].expr.and[1].equals: unknown operator \"equals\"",
				"8:7: nodes.c.choice_cases[1].expr: is missing",
			},
		},
		"params that are no object": {
			"start: a\nnodes:\n  a: {service: s, params: [1]}\n",
			[]string{"3:19: nodes.a.params: must be an object, is an array"},
		},
		"numbers out of range": {
			"start: a\nnodes:\n  a: {service: s, max_retries: 1e300, wait_ms: 99999999999999999999, workers_per_attempt: 3.0}\n",
			[]string{
				"3:32: nodes.a.max_retries: is too large: 1e300",
				"3:48: nodes.a.wait_ms: is too large: 99999999999999999999",
			},
		},
		"an alias inside its own value": {
			"start: a\nnodes: {a: {service: s, params: &p {x: *p}}}\n",
			[]string{"2:40: nodes.a.params.x: the alias *p is a part of what it stands for"},
		},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, tt.want, problemsOf(tt.text)) })
	}
}

func TestAliasesAndMergesReuseParts(t *testing.T) {
	d, err := definition.ParseYAML([]byte(`
.defaults: &d {service: s, max_retries: 3, params: {b: 1, a: 2}}
start: a
nodes:
  a: *d
  b: {<<: *d, max_retries: 1}
  c: {<<: [{wait_ms: 5}, *d], service: t}
`))
	require.NoError(t, err)
	require.Equal(t, d.Nodes["a"].Params, d.Nodes["b"].Params)
	require.Equal(t, 3, d.Nodes["a"].MaxRetries)
	require.Equal(t, 1, d.Nodes["b"].MaxRetries)
	require.Equal(t, "t", d.Nodes["c"].Service)
	require.Equal(t, int64(5), d.Nodes["c"].WaitMS)
}

func TestTextsThatGrowAreRefused(t *testing.T) {
	bomb := "start: a\nx0: &x0 [lol, lol, lol, lol, lol, lol, lol, lol, lol, lol]\n"
	for i := 1; i < 12; i++ {
		part := strings.Repeat(fmt.Sprintf("*x%d, ", i-1), 10)
		bomb += fmt.Sprintf("x%d: &x%d [%s]\n", i, i, part)
	}
	deep := "start: a\nd0: &d0 1\n"
	for i := 1; i < 500; i++ {
		deep += fmt.Sprintf("d%d: &d%d [[[*d%d]]]\n", i, i, i-1)
	}
	nodes := "start: a\ns0: &s0 {service: s}\n"
	for i := 1; i < 20; i++ {
		nodes += fmt.Sprintf("s%d: &s%d {kind: subflow, subflow: {start: a, nodes: {a: *s%d, b: *s%d, c: *s%d}}}\n", i, i, i-1, i-1, i-1)
	}
	merges := "start: a\nm: &m {" + manyKeys(5000) + "}\nnodes: {a: {params: {list: ["
	merges += strings.Repeat("{<<: *m}, ", 1000) + "]}}}\n"
	for name, text := range map[string]string{
		"values": bomb, "nesting": deep, "subflows": nodes, "merges": merges,
		"brackets": strings.Repeat("[", 1<<20), "dashes": strings.Repeat("- ", 1<<19),
		"brackets in JSON": `{"start":` + strings.Repeat("[", 1<<20),
		"subflows in JSON": strings.Repeat(`{"nodes":{"a":{"subflow":`,
			3000) + `"` + strings.Repeat("x", 1<<20) + `"` + strings.Repeat("}}}", 3000),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := definition.Parse([]byte(text))
			require.Error(t, err)
			require.Len(t, err.(definition.Problems), 1)
		})
	}
}

func manyKeys(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "key-number-%d: 1, ", i)
	}
	return b.String()
}

func TestYAMLScalarsKeepTheirType(t *testing.T) {
	for text, want := range map[string]string{
		"2": `2`, "2.50": `2.50`, "1e3": `1e3`, "0x1F": `31`, "0o17": `15`,
		"0xFFFFFFFFFFFFFFFFFF": `4722366482869645213695`, "-3": `-3`, "+3": `3`,
		".5": `0.5`, "-.50": `-0.50`, "3.": `3`, "3.e2": `3e2`,
		"+12345678901234567890":    `12345678901234567890`,
		".12345678901234567890123": `0.12345678901234567890123`,
		"'012'":                    `"012"`, "!!str 012": `"012"`, "1:30": `"1:30"`, "!!int '12'": `12`,
		"!!map {a: 1}": `{"a":1}`, "!!seq [1]": `[1]`, "!!null ~": `null`, "true": `true`, "True": `true`, "yes": `"yes"`, "~": `null`,
		"": `null`, "null": `null`,
		"'2'": `"2"`, `"a\tb"`: `"a\tb"`, "!!str 2": `"2"`, "2001-01-01": `"2001-01-01"`, "$params.x": `"$params.x"`,
		"12345678901234567890123": `12345678901234567890123`, "1e400": `1e400`,
		"-2.5E+999": `-2.5E+999`, "'1e400'": `"1e400"`, "!!str 1e400": `"1e400"`,
		"1e400x": `"1e400x"`, "|\n  a\n  b\n": `"a\nb\n"`, "a  b": `"a  b"`,
		"{b: 1, a: [x, {d: 1}]}": `{"b":1,"a":["x",{"d":1}]}`,
	} {
		got, err := definition.YAMLToJSON([]byte("v: " + text))
		require.NoError(t, err, text)
		require.Equal(t, `{"v":`+want+`}`, string(got), text)
	}
}

func TestAmbiguousYAMLIsAnError(t *testing.T) {
	const two = " is one number in YAML 1.1 and another one, or a text, in YAML 1.2"
	for text, want := range map[string]string{
		"012": `1:4: v: "012"` + two, "0777": `"0777"` + two, "-012": `"-012"` + two,
		"1_000": `"1_000"` + two, "0b11": `"0b11"` + two, "08": `"08"` + two, "007.5": `"007.5"` + two,
		".inf": `".inf" is no number that JSON has`, "-.INF": `"-.INF" is no number`, ".nan": `".nan" is no number`,
		"!!binary aGk=":   "the tag !!binary has no meaning here",
		"!custom x":       "the tag !custom has no meaning here",
		"!point {x: 1}":   "the tag !point has no meaning here",
		"!!set {a: null}": "the tag !!set has no meaning here", "!!int abc": `"abc" is one number`, "!!bool maybe": `"maybe" is no !!bool`,
		"!!null none": `"none" is no !!null`, "!!map x": "the tag !!map does not fit the value: leave it out",
		"!!seq {a: 1}": "the tag !!seq does not fit", "!!str [a]": "the tag !!str does not fit",
		"[1, {b: 012}]": `v[1].b: "012"` + two,
	} {
		_, err := definition.YAMLToJSON([]byte("v: " + text))
		require.ErrorContains(t, err, want, text)
	}
}

func TestVariablesOfAnEnvironmentAreTheTextAsWritten(t *testing.T) {
	d, err := definition.ParseYAML([]byte("mode: dag\nnodes:\n  a:\n    params: {n: 7}\n    exec:\n " +
		"     type: process\n      command: \"true\"\n" +
		"      env: {OCTAL: 022, GROUPS: 1_000, HEX: 0x1F, PLUS: +5, YES: True, PLAIN: 1.50, ON: true, TEXT: \"9\"}\n"))
	require.NoError(t, err)
	require.Equal(t, map[string]string{"OCTAL": "022", "GROUPS": "1_000", "HEX": "0x1F",
		"PLUS": "+5", "YES": "True", "PLAIN": "1.50", "ON": "true", "TEXT": "9"},
		d.Nodes["a"].Exec.Program().Env)
}

func TestYAMLToJSONReportsPositions(t *testing.T) {
	_, err := definition.YAMLToJSON([]byte("a: 1\n2: b\n"))
	require.EqualError(t, err, "2:1: 2: keys must be strings: put this one in quotes")
	_, err = definition.YAMLToJSON([]byte("a: [\n"))
	require.ErrorContains(t, err, "invalid YAML: ")
}

func TestProblemsAreAnErrorTheCallerCanActOn(t *testing.T) {
	_, err := definition.Parse([]byte("{"))
	require.Equal(t, flow.Invalid, flow.ErrorKindOf(err))
	var problems definition.Problems
	require.True(t, errors.As(err, &problems))
	require.NoError(t, definition.Problems{{Severity: definition.SeverityWarning}}.Err())
}

func TestManyProblemsAreCut(t *testing.T) {
	d := definition.Definition{Start: "n0", Nodes: map[string]*definition.Node{}}
	for i := range 500 {
		d.Nodes[fmt.Sprintf("n%d", i)] = &definition.Node{Kind: "nonsense"}
	}
	_, problems := compile.Definition(&d, flow.Limits{})
	require.Len(t, problems, 2*definition.MaxProblems+2)
	require.Equal(t, "there are 300 more of severity error", problems[2*definition.MaxProblems].Msg)
	require.Equal(t, "there are 299 more of severity warning", problems[2*definition.MaxProblems+1].Msg)
}

func TestParamsOfJSONAreNotRewritten(t *testing.T) {
	d, err := definition.ParseJSON([]byte(`{"start":"a","nodes":{"a":{"service":"s","params":{"b": 1.0, "a" : "\u00e9\/"}}}}`))
	require.NoError(t, err)
	require.Equal(t, json.RawMessage(`{"b":1.0,"a":"\u00e9\/"}`), d.Nodes["a"].Params)
}

func TestALargeTextHasToBeJSON(t *testing.T) {
	large := strings.Repeat("# a comment\n", definition.MaxYAMLText/12+1) + "start: a\nnodes: {a: {service: s}}\n"
	d, err := definition.Parse([]byte(large))
	require.Nil(t, d)
	require.ErrorContains(t, err, "more than the limit of 4194304 for YAML: send it as JSON")
	_, err = definition.YAMLToJSON([]byte(large))
	require.ErrorContains(t, err, "send it as JSON")
}
