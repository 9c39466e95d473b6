package v1_test

import (
	"encoding/json"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAFlowHasAnOpenAPIDocument(t *testing.T) {
	s := start(t)
	s.call(201, "PUT", "/v1/flows/declares", declares, "Content-Type", "application/yaml")
	d := s.get("/v1/flows/declares/versions/latest/openapi")
	require.Equal(t, []any{"declares", "1"}, []any{d["info"].(obj)["title"], d["info"].(obj)["version"]})
	require.Len(t, d["paths"], 4)
	schemas := d["components"].(obj)["schemas"].(obj)
	begin := schemas["StartRequest"].(obj)
	require.Equal(t, []any{"flow", "params"}, begin["required"])
	properties := begin["properties"].(obj)
	require.Equal(t, obj{"type": "string", "const": "declares"}, properties["flow"])
	want := obj{"$id": "urn:troupe:flow:declares:1"}
	for name, value := range declaredSchema {
		want[name] = value
	}
	require.Equal(t, want, properties["params"])
	require.NotContains(t, schemas, "Schedule", "what nothing refers to is left out")
	text, err := json.Marshal(d)
	require.NoError(t, err)
	for _, ref := range regexp.MustCompile(`"#/components/schemas/(\w+)"`).FindAllSubmatch(text, -1) {
		require.Contains(t, schemas, string(ref[1]))
	}

	undeclared := s.publish(atOnce)
	d = s.get("/v1/flows/" + undeclared + "/versions/latest/openapi")
	require.Equal(t, []any{"flow"}, d["components"].(obj)["schemas"].(obj)["StartRequest"].(obj)["required"])
	s.refused(404, "path.version", "GET", "/v1/flows/declares/versions/9/openapi", nil)
}

func TestNumbersInTheDescriptionOfAFlowKeepTheirDigits(t *testing.T) {
	s := start(t)
	got := s.send("PUT", "/v1/flows/numbers",
		`{"inputs":{"n":{"type":"int","max":9007199254740993},"x":{"type":"number","default":1e400}},"start":"a","nodes":{"a":{"kind":"choice","default_action":"done"}}}`,
		"Content-Type", "application/json")
	require.Equal(t, 201, got.status, string(got.body))
	got = s.send("GET", "/v1/flows/numbers/versions/1/openapi", nil)
	require.Equal(t, 200, got.status, string(got.body))
	require.Contains(t, string(got.body), `"maximum":9007199254740993`)
	require.Contains(t, string(got.body), `"default":1e400`)
}
