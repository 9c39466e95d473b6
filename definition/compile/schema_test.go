package compile_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/troupe-engine/troupe/definition"
	"github.com/troupe-engine/troupe/definition/compile"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/testing/flowtest"
)

// fitsSchema returns the error of the JSON schema for a definition.
func fitsSchema(t require.TestingT, s *jsonschema.Schema, text string) error {
	asJSON := []byte(text)
	if !json.Valid(asJSON) {
		var err error
		asJSON, err = definition.YAMLToJSON(asJSON)
		require.NoError(t, err)
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(asJSON))
	require.NoError(t, err)
	return s.Validate(v)
}

func compiledSchema(t *testing.T) *jsonschema.Schema {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(definition.Schema))
	require.NoError(t, err)
	c := jsonschema.NewCompiler()
	require.NoError(t, c.AddResource("flow.json", doc))
	s, err := c.Compile("flow.json")
	require.NoError(t, err)
	return s
}

func TestTheSchemaAcceptsWhatCompiles(t *testing.T) {
	s := compiledSchema(t)
	rapid.Check(t, func(t *rapid.T) {
		var drawn any
		require.NoError(t, json.Unmarshal([]byte(flowtest.RandomDefinition(flowtest.Rapid{T: t})), &drawn))
		text, err := json.Marshal(withoutEmpty(drawn))
		require.NoError(t, err)
		require.NoError(t, fitsSchema(t, s, string(text)), string(text))
	})
}

// withoutEmpty removes the fields that are equivalent to absent ones.
func withoutEmpty(part any) any {
	if object, ok := part.(map[string]any); ok {
		maps.DeleteFunc(object, func(_ string, v any) bool { return v == nil || v == "" || v == 0.0 })
		for key, v := range object {
			object[key] = withoutEmpty(v)
		}
	}
	return part
}

func TestTheSchemaRejectsFieldsThatAKindNeverUses(t *testing.T) {
	s := compiledSchema(t)
	refused := 0
	forEachField(func(f *definition.NodeField, dag bool, kind string) {
		base := node(kindBases[modeName(dag)+" "+kind])
		text := base.set(f.Name, fieldValues[f.Name]).definition(dag, "")
		closing := dag && len(f.Graph.ConditionsOf(kind)) > 0 && slices.Contains(definition.KindsOfGraph, kind)
		switch {
		case f.Name == "kind" || kind == "fanout" && strings.Contains(base["each"], "items"):
		// a closing node of a dag may have it
		case len(f.Rule(dag).ConditionsOf(kind)) > 0 || closing:
			require.NoError(t, fitsSchema(t, s, text), text)
		default:
			refused++
			require.Error(t, fitsSchema(t, s, text), text)
			if !dag {
				pocketflow := base.set(f.Name, fieldValues[f.Name]).definition(dag, "profile: pocketflow\n")
				require.NoError(t, fitsSchema(t, s, pocketflow), pocketflow)
			}
		}
	})
	require.Greater(t, refused, 200)
}

func TestTheSchemaKnowsTheModeOfAFlow(t *testing.T) {
	s := compiledSchema(t)
	for text, fits := range map[string]bool{
		"start: a\nnodes: {a: {service: s, run_on: always}}":                                                   false,
		"nodes: {a: {service: s}}\nedges: [{from: a, to: a}]\ndefaults: {route: queue}":                        false,
		"nodes: {a: {service: s}, b: {service: s, depends_on: [a]}}\nresult: x":                                false,
		"profile: ork\nnodes: {a: {service: s, default_action: x}}":                                            false,
		"profile: pgflow\nnodes: {a: {kind: branch, flow: {nodes: {b: {}}}, service: s}}":                      false,
		"mode: graph\nstart: a\nnodes: {a: {kind: subflow, subflow: {nodes: {b: {service: s, when: {}}}}}}":    false,
		"start: a\nnodes: {a: {kind: foreach, service: s, foreach_execs: [{index: 1, service: t}]}}":           false,
		"start: a\nnodes: {a: {kind: parallel, parallel_execs: [{service: t}]}}":                               true,
		"nodes: {a: {service: s, compensate: b}, b: {service: s, post: {output_key: o}}}\nfinally: b":          true,
		"profile: pocketflow\nstart: a\nnodes: {a: {kind: subflow, subflow: {nodes: {b: {max_parallel: 3}}}}}": true,
	} {
		if err := fitsSchema(t, s, text); fits {
			require.NoError(t, err, text)
		} else {
			require.Error(t, err, text)
		}
	}
}

// schemaWords returns the allowed values of fields with fixed values, as Type.field.
func schemaWords(t *testing.T) map[string][]string {
	var schema struct {
		Defs map[string]struct {
			Properties map[string]struct{ Enum []string }
		} `json:"$defs"`
	}
	require.NoError(t, json.Unmarshal(definition.Schema, &schema))
	words := map[string][]string{}
	for name, def := range schema.Defs {
		for field, p := range def.Properties {
			if p.Enum != nil {
				words[name+"."+field] = p.Enum
			}
		}
	}
	require.NotEmpty(t, words)
	return words
}

func TestTheWordsOfTheSchemaAreAccepted(t *testing.T) {
	places := map[string]string{
		"Definition": `{%s,"nodes":{"a":{"service":"s"}}}`,
		"Node":       `{"mode":"dag","nodes":{"a":{"service":"s","func":"f","script":{"code":"x"},%s,"when":{"if":{}}}}}`,
		"ExecSpec":   `{"start":"a","nodes":{"a":{"kind":"parallel","parallel_execs":[{"service":"s","func":"f","script":{"code":"x"},%s}]}}}`,
		"Handler":    `{"mode":"dag","nodes":{"a":{"service":"s","when":{"cond":{"service":"s","func":"f","script":{"code":"x"},%s}}}}}`,
		"Prep":       `{"mode":"dag","nodes":{"b":{"kind":"branch","flow":{"nodes":{}},"prep":{"service":"s","func":"f","script":{"code":"x"},%s}}}}`,
		"ExecOf":     `{"mode":"dag","nodes":{"a":{"exec":{"type":"process","command":"c",%s}}}}`,
		"EachOf":     `{"mode":"dag","nodes":{"a":{"service":"s","each":{"count":1,%s}}}}`,
		"RetrySpec":  `{"mode":"dag","nodes":{"a":{"service":"s","retry":{%s}}}}`,
		"KeySpec":    `{"mode":"dag","nodes":{"a":{"service":"s","concurrency":{"limit":1,%s}}}}`,
		"Defaults":   `{"mode":"dag","defaults":{%s},"nodes":{"a":{"func":"f","script":{"code":"x"},"service":"s","when":{"if":{}}}}}`,
	}
	also := map[string]string{ // in graph mode, or where other fields would decide
		"Defaults.route":        `{"mode":"dag","defaults":{%s},"nodes":{"a":{"service":"s"}}}`,
		"ExecOf.type":           `{"mode":"dag","nodes":{"a":{"exec":{"command":"c",%s}}}}`,
		"ExecOf.pull":           `{"mode":"dag","nodes":{"a":{"exec":{"type":"container","image":"x",%s}}}}`,
		"Definition.on_error":   `{"start":"a","nodes":{"a":{"service":"s"}},%s}`,
		"Definition.on_missing": `{"start":"a","nodes":{"a":{"service":"s"}},%s}`,
		"Node.on_error":         `{"start":"a","nodes":{"a":{"service":"s",%s}}}`,
		"Node.parallel_mode":    `{"start":"a","nodes":{"a":{"kind":"foreach","service":"s",%s}}}`,
		"Node.failure_strategy": `{"start":"a","nodes":{"a":{"kind":"subflow","subflow":{},"service":"s",%s}}}`,
	}
	taken := func(format, name, word string) bool {
		_, field, _ := strings.Cut(name, ".")
		_, problems := compile.Text(fmt.Appendf(nil, format, fmt.Sprintf("%q:%q", field, word)), flow.Limits{})
		return !slices.ContainsFunc(problems, func(p definition.Problem) bool {
			return strings.HasPrefix(p.Msg, "unknown") || strings.HasPrefix(p.Msg, "unsupported")
		})
	}
	words := schemaWords(t)
	for _, name := range slices.Sorted(maps.Keys(words)) {
		holder, _, _ := strings.Cut(name, ".")
		texts := []string{places[holder]}
		if also[name] != "" {
			texts = append(texts, also[name])
		}
		if name == "Node.kind" {
			texts = append(texts, `{"start":"a","nodes":{"a":{"service":"s",%s}}}`)
		}
		for _, word := range words[name] {
			require.True(t, slices.ContainsFunc(texts,
				func(text string) bool { return taken(text, name, word) }), "%s: %s is refused", name, word)
		}
		require.False(t, taken(texts[len(texts)-1], name, "nonsense"), "%s takes any word", name)
	}
}
