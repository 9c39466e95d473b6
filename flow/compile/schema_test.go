package compile_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/compile"
	"github.com/troupe-engine/troupe/flow/define"
)

// schemaWords are the words that the schema allows in fields which take only some, as Type.field.
func schemaWords(t *testing.T) map[string][]string {
	var schema struct {
		Defs map[string]struct {
			Properties map[string]struct{ Enum []string }
		} `json:"$defs"`
	}
	require.NoError(t, json.Unmarshal(define.Schema, &schema))
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

func TestTheWordsOfTheSchemaAreThoseThatAreTaken(t *testing.T) {
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
	also := map[string]string{ // graph mode, or where other fields would decide
		"Defaults.route":        `{"mode":"dag","defaults":{%s},"nodes":{"a":{"service":"s"}}}`,
		"ExecOf.type":           `{"mode":"dag","nodes":{"a":{"exec":{"command":"c",%s}}}}`,
		"ExecOf.pull":           `{"mode":"dag","nodes":{"a":{"exec":{"type":"container","image":"x",%s}}}}`,
		"Definition.on_error":   `{"start":"a","nodes":{"a":{"service":"s"}},%s}`,
		"Definition.on_missing": `{"start":"a","nodes":{"a":{"service":"s"}},%s}`,
		"Node.on_error":         `{"start":"a","nodes":{"a":{"service":"s",%s}}}`,
		"Node.parallel_mode":    `{"start":"a","nodes":{"a":{"kind":"foreach","service":"s",%s}}}`,
		"Node.failure_strategy": `{"start":"a","nodes":{"a":{"kind":"subflow","subflow":{},"service":"s",%s}}}`,
	}
	taken := func(definition, name, word string) bool {
		_, field, _ := strings.Cut(name, ".")
		_, problems := compile.Text(fmt.Appendf(nil, definition, fmt.Sprintf("%q:%q", field, word)), flow.Limits{})
		return !slices.ContainsFunc(problems, func(p define.Problem) bool {
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
			require.True(t, slices.ContainsFunc(texts, func(text string) bool { return taken(text, name, word) }), "%s: %s is refused", name, word)
		}
		require.False(t, taken(texts[len(texts)-1], name, "nonsense"), "%s takes any word", name)
	}
}
