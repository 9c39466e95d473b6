package definition_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/definition"
	"github.com/troupe-engine/troupe/definition/compile"
	"github.com/troupe-engine/troupe/flow"
)

// library holds published flows by name.
type library map[string]string

func (s library) embed(t *testing.T, self, text string) (string, definition.Problems) {
	t.Helper()
	d, err := definition.Parse([]byte(text))
	require.NotNil(t, d, "%v", err)
	kept := []byte(text)
	if !json.Valid(kept) {
		kept, err = definition.YAMLToJSON(kept)
		require.NoError(t, err)
	}
	kept, err = definition.Embedding{Self: self, Lookup: func(name string) ([]byte, error) {
		if text, ok := s[name]; ok {
			return []byte(text), nil
		}
		return nil, nil
	}}.Embed(d, kept)
	require.NoError(t, err)
	_, problems := compile.Definition(d, flow.Limits{})
	return string(kept), problems
}

const step = `{ "mode": "dag", "nodes": { "z": {"service": "s"}, "a": {"service": "s", "depends_on": ["z"]} } }`

func TestAnEmbeddedFlowIsPutWhereItsNameWas(t *testing.T) {
	text := `{"mode": "dag", "nodes": {"b" : {"flow":  "step" , ` +
		`"kind":"branch","prep":{"service":"p"}}, "a": ` +
		`{"kind":"subflow","flow":"step","prep":{"service":"p"}}}}`
	kept, problems := library{"step": step}.embed(t, "mine", text)
	require.NoError(t, problems.Err())
	whole := strings.TrimSuffix(step, "}") + `,"embedded":"step"}`
	require.Equal(t, strings.ReplaceAll(text, `"step"`, whole), kept, "the rest stays byte for byte")
	again, problems := library{}.embed(t, "mine", kept)
	require.NoError(t, problems.Err())
	require.Equal(t, kept, again, "it says all by itself")
	plan, problems := compile.Text([]byte(kept), flow.Limits{})
	require.NoError(t, problems.Err())
	require.NotNil(t, plan.Root.Nodes["b/z"])
	require.NotNil(t, plan.Root.Nodes["a/z"])
}

func TestAnEmbeddedFlowGetsTheNameOfItsEmbedding(t *testing.T) {
	for _, text := range []string{`{"embedded":"x","mode":"dag","nodes":{"z":{"service":"s"}}}`,
		`{"mode":"dag","nodes":{"z":{"service":"s"}} , "Embedded" : "x" }`, `{"embedded":"x"}`} {
		kept, _ := library{"step": text}.embed(t, "mine",
			`{"mode":"dag","nodes":{"a":{"kind":"subflow","flow":"step","prep":{"service":"p"}}}}`)
		require.Contains(t, kept, `"embedded":"step"}`)
		_, err := definition.Parse([]byte(kept))
		require.NoError(t, err, kept)
	}
}

func TestFlowsAreEmbeddedInSubflowsAndInsideOthers(t *testing.T) {
	kept, problems := library{"step": step}.embed(t, "", `
start: s
nodes:
  s: {kind: subflow, subflow: {start: x, nodes: {x: {kind: subflow, flow: {nodes: {y: {kind: subflow, flow: step, prep: {service: p}}}}}}}}
`)
	require.NoError(t, problems.Err())
	require.Contains(t, kept, `"embedded":"step"`)
}

func TestAMissingFlowIsAProblemAtItsName(t *testing.T) {
	text := "mode: dag\nnodes:\n  a:\n    kind: subflow\n    flow: nobody\n  b: {kind: subflow, " +
		"flow: {nodes: {c: {kind: subflow, flow: no one}}}}\n"
	kept, problems := library{}.embed(t, "", text)
	require.Equal(t, []string{
		`5:11: nodes.a.flow: unknown flow "nobody": publish it first`,
		`6:62: nodes.b.flow.nodes.c.flow: unknown flow "no one": publish it first`,
	}, problemTexts(problems))
	require.NotContains(t, kept, "embedded")
}

func problemTexts(problems definition.Problems) (list []string) {
	for _, p := range problems {
		list = append(list, p.String())
	}
	return list
}

func TestAFlowThatEmbedsItselfIsRejectedWithItsCycle(t *testing.T) {
	flows := library{}
	flows["a"] = `{"mode":"dag","nodes":{"x":{"service":"s"}}}`
	flows["b"], _ = flows.embed(t, "b", `{"mode":"dag","nodes":{"x":{"kind":"subflow","flow":"a"}}}`)
	flows["c"], _ = flows.embed(t, "c",
		`{"mode":"dag","nodes":{"x":{"kind":"subflow","flow":{"mode":"dag","nodes":{"y":{"kind":"subflow","flow":"b"}}}}}}`)
	_, problems := flows.embed(t, "a", `{"mode":"dag","nodes":{"x":{"kind":"subflow","flow":"c"},"y":{"kind":"subflow","flow":"a"}}}`)
	require.Equal(t, []string{
		"1:53: nodes.x.flow: a flow cannot embed itself: a → c → b → a",
		"1:87: nodes.y.flow: a flow cannot embed itself: a → a",
	}, problemTexts(problems))
}

func TestProblemsInsideAnEmbeddedFlowAreReportedAtItsName(t *testing.T) {
	flows := library{"ends": `{"start":"a","finally":"f","nodes":{"a":{"service":"s"},"f":{"service":"s"}}}`}
	_, problems := flows.embed(t, "", "mode: dag\nnodes:\n  a:\n    kind: subflow\n    flow: ends\n    prep: {service: p}\n")
	require.Equal(t, []string{"5:11: nodes.a.flow.finally: has no effect in a flow inside " +
		"another one: write it in the whole flow"}, problemTexts(problems))
}

func TestTheDepthOfEmbeddingIsLimited(t *testing.T) {
	deep, next := step, `{"mode":"dag","nodes":{"n":{"kind":"subflow","flow":"deep","prep":{"service":"p"}}}}`
	var problems definition.Problems
	for range 16 {
		deep, problems = library{"deep": deep}.embed(t, "", next)
		require.NoError(t, problems.Err())
	}
	_, problems = library{"deep": deep}.embed(t, "", next)
	require.ErrorContains(t, problems.Err(), "nodes.n.flow: flows are embedded 17 deep, more than the limit of 16")
}

func TestGrowthByEmbeddingIsBounded(t *testing.T) {
	large := `{"mode":"dag","nodes":{"x":{"service":"s","params":{"p":"` + strings.Repeat("x", definition.MaxEmbedded/3) + `"}}}}`
	text := `{"mode":"dag","nodes":{"a":{"kind":"subflow","flow":"l"},"b":{"kind":"subflow","flow":"l"},"c":{"kind":"subflow","flow":"l"}}}`
	_, problems := library{"l": large}.embed(t, "", text)
	require.ErrorContains(t, problems.Err(), "with what it embeds the definition is larger than")
}

func TestAFailedLookupIsAnError(t *testing.T) {
	text := []byte(`{"mode":"dag","nodes":{"x":{"kind":"subflow","flow":"a"}}}`)
	d, err := definition.Parse(text)
	require.NoError(t, err)
	lost := errors.New("no store")
	_, err = definition.Embedding{Lookup: func(string) ([]byte, error) { return nil, lost }}.Embed(d, text)
	require.ErrorIs(t, err, lost)
}

func TestEmbeddingStopsBeforeItUsesMuchMemory(t *testing.T) {
	large := `{"mode":"dag","nodes":{"a":{"service":"s","params":{"text":"` + strings.Repeat("x", 120_000) + `"}}}}`
	many := `{"mode":"dag","nodes":{` + tiny(2_000, `{"service":"s"}`) + `}}`
	for name, tt := range map[string]struct {
		flow string
		uses int
		want string
	}{
		"bytes": {large, 100, "with what it embeds the definition is larger than 8388608 bytes"},
		"nodes": {many, 100, "with what it embeds the definition has more than 50000 nodes"},
	} {
		t.Run(name, func(t *testing.T) {
			names := make([]string, tt.uses)
			for i := range names {
				names[i] = fmt.Sprintf(`"u%d":{"kind":"branch","flow":"large","prep":{"service":"p"}}`, i)
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			kept, problems := library{"large": tt.flow}.embed(t, "mine", `{"mode":"dag","nodes":{`+strings.Join(names, ",")+`}}`)
			runtime.ReadMemStats(&after)
			require.Len(t, problems, 1, "told once, and early")
			require.Contains(t, problems[0].Msg, tt.want)
			require.Positive(t, problems[0].Line)
			require.Less(t, len(kept), 100_000, "nothing was put in")
			require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(30<<20))
		})
	}
}

func TestAFlowEmbeddedManyTimesIsReadOnce(t *testing.T) {
	names := make([]string, 20)
	for i := range names {
		names[i] = fmt.Sprintf(`"u%d":{"kind":"branch","flow":"step","prep":{"service":"p"}}`, i)
	}
	text := []byte(`{"mode":"dag","nodes":{` + strings.Join(names, ",") + `}}`)
	d, err := definition.Parse(text)
	require.NoError(t, err)
	asked := 0
	_, err = definition.Embedding{Lookup: func(string) ([]byte, error) { asked++; return []byte(step), nil }}.Embed(d, text)
	require.NoError(t, err)
	require.Equal(t, 1, asked)
	require.Same(t, d.Nodes["u0"].Flow.Definition, d.Nodes["u19"].Flow.Definition)
}

// tiny returns n copies of a node, as members of an object.
func tiny(n int, node string) string {
	nodes := make([]string, n)
	for i := range nodes {
		nodes[i] = fmt.Sprintf(`"n%d":%s`, i, node)
	}
	return strings.Join(nodes, ",")
}

func TestTheNumberOfNodesIsBounded(t *testing.T) {
	text := []byte(`{"nodes":{` + tiny(definition.MaxNodes+5, `{}`) + `}}`)
	d, err := definition.Parse(text)
	require.ErrorContains(t, err, "the flow has more than 50000 nodes")
	require.Len(t, d.Nodes, definition.MaxNodes, "no more are read")
	d, err = definition.ParsePublished(text)
	require.NoError(t, err)
	require.Len(t, d.Nodes, definition.MaxNodes+5, "what was published keeps its nodes")
	require.ErrorContains(t, compile.Check(d, flow.Limits{}).Err(), "has 50005 nodes, more than the limit of 50000")
}
