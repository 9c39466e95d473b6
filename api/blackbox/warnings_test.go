package blackbox

import (
	"maps"
	"strings"

	"github.com/stretchr/testify/require"
)

// warned requires that a strict publication is rejected, and that another one returns one warning.
func (c *client) warned(path, text string, body obj) {
	c.Helper()
	ask := func(query string, strict any) (int, obj) {
		c.Helper()
		sent := maps.Clone(body)
		if strict != nil {
			sent["strict"] = strict
		}
		status, v := c.call("POST", path+query, sent)
		return status, v.(obj)
	}
	for query, strict := range map[string]any{"": true, "?strict=true": nil, "?strict=1": false} {
		status, answer := ask(query, strict)
		require.Equal(c, 400, status, "%v", answer)
		before, _, _ := strings.Cut(text, ", ignored")
		require.Contains(c, jsonText(c, answer), before)
		require.NotContains(c, answer, "id")
	}
	for query, strict := range map[string]any{"": "yes", "?strict=yes": nil} {
		status, answer := ask(query, strict)
		require.Equal(c, 400, status, "%v", answer)
		require.Contains(c, jsonText(c, answer), "strict must be true or false")
	}
	for range 2 {
		status, answer := ask("", nil)
		require.Equal(c, 200, status, "%v", answer)
		require.Len(c, answer["warnings"], 1, "%v", answer)
		warning := answer["warnings"].([]any)[0].(obj)
		require.Equal(c, "warning", warning["severity"])
		require.Contains(c, warning["message"], text)
		require.NotEmpty(c, warning["path"])
	}
}

func versionWarned(c *client) {
	flow := c.post("/flows", obj{"Name": unique("flow")})["id"]
	version := func(definition string) obj {
		return obj{"FlowID": flow, "DefinitionJSON": definition, "Status": "published"}
	}
	c.warned("/flows/version", "unknown field, ignored", version(`{"start":"a","nodes":{"a":{"service":"s","dalay":1}}}`))
	c.warned("/flows/version", "has no effect: no node without its own",
		version(`{"mode":"dag","defaults":{"timeout":"5s"},"nodes":{"a":{"service":"s","timeout":"1s"}}}`))
	answer := c.post("/flows/version", version(`{"start":"a","nodes":{"a":{"service":"s"}}}`))
	require.Len(c, answer, 1, "without a warning the answer is the id alone: %v", answer)
}

func orkWarned(c *client) {
	f := c.orkIn(c.TempDir())
	c.warned("/workflows", "troupe-cloud", obj{"yaml": f.yaml("a: {executor: kubernetes, image: busybox}"), "root": f.root})
}

func pgWarned(c *client) {
	definition := obj{"nodes": obj{"a": obj{"retry": obj{"max_attempts": 2, "delay": "100ms"}}}}
	const warning = "is less than pgflow itself takes"
	slug := func() string { return strings.ReplaceAll(unique("flow"), "-", "_") }
	c.warned("/flows/"+slug()+"/ensure", warning, obj{"definition": definition})
	c.warned("/flows", warning, obj{"slug": slug(), "definition": definition})
	unobeyed := obj{"timeout": 30, "nodes": obj{"a": obj{"timeout": 60}}}
	c.warned("/flows", "has no effect: no node without its own", obj{"slug": slug(), "definition": unobeyed})
}

// pgWords checks that fields under pgflow's own names work, and that fields unknown to both are
// rejected.
func pgWords(c *client) {
	f := c.pgflow("a: {maxAttempts: 1, whenExhausted: skip}",
		"b: {dependsOn: [a], max_attempts: 2, base_delay: 1}", "c: {ifNot: {run: {x: 1}}}")
	r := f.run(obj{"x": 1})
	c.fail(f.one("a"), "broken")
	first := f.one("b")
	r.is("started", "a skipped handler_failed", "b started", "c skipped condition_unmet")
	c.fail(first, "broken once")
	f.work("b", 1)
	r.is("completed", "b completed")

	for node, text := range map[string]string{
		"b: {depends: [a]}":    "nodes.b.depends: unknown field: did you mean depends_on?",
		"b: {retries: 2}":      "nodes.b.retries: unknown field: did you mean",
		"b: {max_attemps: 2}":  "nodes.b.max_attemps: unknown field: did you mean",
		"b: {dependsOn: [zz]}": `nodes.b.dependsOn[0]: unknown node "zz"`,
	} {
		require.Contains(c, c.notRegistered("", "a: {}", node), text)
	}
	require.Contains(c, c.notRegistered("startDelay: 1", "a: {}"), "startDelay: unknown field")
	status, v := c.call("POST", "/flows/x/ensure", obj{"definition": obj{"a": obj{}, "b": obj{"dependsOn": []string{"a"}}}})
	require.Equal(c, 400, status)
	require.Contains(c, v.(obj)["message"], "a: unknown field: a node stands below nodes")
	status, v = c.call("POST", "/flows/x/ensure", obj{"definition": obj{"nodes": obj{"a": obj{}}}, "allow_loss": false})
	require.Equal(c, 400, status)
	require.Contains(c, v.(obj)["message"], `no field "allowloss" beside definition`)
}
