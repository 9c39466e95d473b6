package definition_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/definition"
)

// TestFieldsOfPgflowMeanWhatOursDo compares definitions in pgflow's words with the same ones in
// ours.
func TestFieldsOfPgflowMeanWhatOursDo(t *testing.T) {
	for theirs, ours := range map[string]string{
		"nodes: {a: {}, b: {dependsOn: [a]}}": "nodes: {a: {}, b: {depends_on: [a]}}",
		"nodes: {a: {maxAttempts: 2}}":        "nodes: {a: {retry: {max_attempts: 2}}}",
		"nodes: {a: {max_attempts: 1}}":       "nodes: {a: {retry: {max_attempts: 1}}}",
		"nodes: {a: {max_attempts: 2, base_delay: 3}}": "nodes: {a: {retry: " +
			"{max_attempts: 2, delay: 3}}}",
		"nodes: {a: {baseDelay: 3, retry: {max_attempts: 2}}}": "nodes: {a: {retry: " +
			"{max_attempts: 2, delay: 3}}}",
		"nodes: {a: {retry: {max_attempts: 2}, baseDelay: 3}}": "nodes: {a: {retry: " +
			"{max_attempts: 2, delay: 3}}}",
		"nodes: {a: {timeout: 4, startDelay: 5}}": "nodes: {a: {timeout: 4, start_delay: 5}}",
		"nodes: {a: {if: {x: 1}}}":                "nodes: {a: {when: {if: {x: 1}}}}",
		"nodes: {a: {if: {x: 1}, ifNot: {y: 1}, whenUnmet: skip}}": "nodes: {a: {when: " +
			"{if: {x: 1}, if_not: {y: 1}}, whenUnmet: skip}}",
		"nodes: {a: {ifNot: {y: 1}, when: {if: {x: 1}}}}": "nodes: {a: {when: " +
			"{if: {x: 1}, if_not: {y: 1}}}}",
		"nodes: {a: {whenExhausted: skip-cascade}}":                    "nodes: {a: {on_exhausted: skip-cascade}}",
		"nodes: {a: {when_exhausted: skip, when_unmet: fail, if: {}}}": "nodes: {a: {on_exhausted: skip, whenUnmet: fail, when: {if: {}}}}",
		"nodes: {a: {stepType: map}}":                                  "nodes: {a: {kind: map}}",
		"nodes: {a: {runner: gpu}, b: {runner: [gpu, big]}}": "nodes: {a: {labels: " +
			"[gpu]}, b: {labels: [gpu, big]}}",
		"nodes: {a: {maxAttempts: null, dependsOn: null}}": "nodes: {a: {}}",
		"{slug: x, maxAttempts: 2, baseDelay: 3, timeout: 4, nodes: {}}": "{name: x, defaults: " +
			"{retry: {max_attempts: 2, delay: 3}, timeout: 4}, nodes: {}}",
		"{maxAttempts: 2, defaults: {retry: {delay: 3}}, nodes: {}}": "{defaults: {retry: " +
			"{max_attempts: 2, delay: 3}}, nodes: {}}",
		"{defaults: {retry: {delay: 3}}, maxAttempts: 2, nodes: {}}": "{defaults: {retry: " +
			"{max_attempts: 2, delay: 3}}, nodes: {}}",
		"nodes: {b: {kind: branch, flow: {nodes: {c: {dependsOn: [d]}}}}}": "nodes: {b: {kind: " +
			"branch, flow: {nodes: {c: {depends_on: [d]}}}}}",
	} {
		d, err := definition.Parse([]byte("---\nprofile: pgflow\n" + blockOf(theirs)))
		require.NoError(t, err, theirs)
		want, err := definition.Parse([]byte("---\nprofile: pgflow\n" + blockOf(ours)))
		require.NoError(t, err, ours)
		require.JSONEq(t, jsonOf(t, want), jsonOf(t, d), theirs)
		require.Empty(t, d.Reporter().All(), theirs)

		unnamed, err := definition.Reading{Pgflow: true, Known: true}.Parse([]byte("---\n" + blockOf(theirs)))
		require.NoError(t, err, theirs)
		require.JSONEq(t, jsonOf(t, want), jsonOf(t, unnamed), "by pgflow's route: "+theirs)
	}
}

// blockOf returns the members of an object in braces, one per line.
func blockOf(flow string) string {
	if flow[0] != '{' {
		return flow + "\n"
	}
	var d map[string]any
	if err := json.Unmarshal(must(definition.YAMLToJSON([]byte("---\n"+flow))), &d); err != nil {
		panic(err)
	}
	block := ""
	for key, value := range d {
		text, _ := json.Marshal(value)
		block += key + ": " + string(text) + "\n"
	}
	return block
}

func must(text []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return text
}

func jsonOf(t *testing.T, d *definition.Definition) string {
	text, err := json.Marshal(d)
	require.NoError(t, err)
	return string(text)
}

// TestFieldsOfPgflowAreKnownInDagsOfItsProfileAlone checks that other definitions reject the words
// of pgflow.
func TestFieldsOfPgflowAreKnownInDagsOfItsProfileAlone(t *testing.T) {
	for _, text := range []string{
		"nodes: {a: {dependsOn: []}}",
		"profile: ork\nnodes: {a: {dependsOn: []}}",
		"profile: pgflow\nnodes: {a: {kind: branch, flow: {profile: ork, nodes: {b: {dependsOn: []}}}}}",
		"profile: pgflow\nnodes: {a: {kind: branch, flow: {start: b, nodes: {b: {dependsOn: []}}}}}",
		"profile: pgflow\nnodes: {a: {kind: branch, subflow: {start: b, nodes: {b: {dependsOn: []}}}}}",
	} {
		d, err := definition.Parse([]byte(text))
		require.NoError(t, err, text)
		require.Len(t, d.Reporter().All(), 1, text)
		require.Contains(t, d.Reporter().All()[0].String(), "dependsOn: unknown field, ignored: did you mean depends_on?", text)
	}
	for text, field := range map[string]string{
		"start: a\nnodes: {a: {dependsOn: []}}":                                                   "nodes.a.dependsOn",
		"mode: graph\nnodes: {a: {dependsOn: []}}":                                                "nodes.a.dependsOn",
		"start: a\nnodes: {a: {kind: subflow, flow: {profile: pgflow, nodes: {b: {nope: 1}}}}}":   "nodes.a.flow.nodes.b.nope",
		"mode: dag\nnodes: {a: {kind: branch, flow: {mode: graph, nodes: {b: {dependsOn: []}}}}}": "nodes.a.flow.nodes.b.dependsOn",
	} {
		_, err := definition.Reading{Pgflow: true, Known: true}.Parse([]byte(text))
		require.ErrorContains(t, err, field+": unknown field", text)
	}
}

// TestProblemsOfFieldsOfPgflowNameThem checks positions and paths.
func TestProblemsOfFieldsOfPgflowNameThem(t *testing.T) {
	for text, want := range map[string]string{
		"nodes:\n  a:\n    maxAttempts: x\n":                               "3:18: nodes.a.maxAttempts: must be an integer, is a string",
		"nodes:\n  a: {}\n  b:\n    dependsOn: [1]\n":                      "4:17: nodes.b.dependsOn[0]: must be a string, is a number",
		"nodes:\n  a: {maxAttempts: 1, retry: {max_attempts: 2}}\n":        "2:31: nodes.a.maxAttempts: the key is there twice, first in line 2",
		"nodes:\n  a: {dependsOn: [], depends_on: []}\n":                   "2:22: nodes.a.depends_on: the key is there twice, first in line 2",
		"nodes:\n  a: {retry: 3, maxAttempts: 2}\n":                        "2:14: nodes.a.retry: must be an object, is a number",
		"baseDelay: x y\nnodes: {}\n":                                      "1:12: baseDelay: ",
		"nodes:\n  a: {handler: f}\n":                                      "2:7: nodes.a.handler: unknown field: did you mean service?",
		"nodes:\n  a: {requiredInputPattern: {}}\n":                        "2:7: nodes.a.requiredInputPattern: unknown field: did you mean when: {if: …}?",
		"startDelay: 3\nnodes: {}\n":                                       "1:1: startDelay: unknown field",
		"a: {}\nb: {dependsOn: [a]}\n":                                     "2:1: b: unknown field: a node stands below nodes",
		"steps: {}\n":                                                      "1:1: steps: unknown field: did you mean nodes?",
		"nodes: {a: {kind: branch, flow: {nodes: {b: {maxAttempts: x}}}}}": "1:59: nodes.a.flow.nodes.b.maxAttempts: must be an integer, is a string",
	} {
		_, err := definition.Reading{Pgflow: true, Known: true}.Parse([]byte(text))
		require.ErrorContains(t, err, want, text)
	}
}
