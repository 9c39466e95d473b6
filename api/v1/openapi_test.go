package v1_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"flag"
	"io"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write openapi.json anew")

// routes lists all routes. A new route must be added here, so that it gets a test.
var routes = []string{
	"DELETE /v1/cluster/members/{member}/drain",
	"DELETE /v1/flows/{flow}",
	"DELETE /v1/hooks/{hook}",
	"DELETE /v1/schedules/{schedule}",
	"DELETE /v1/session",
	"DELETE /v1/tokens/{token}",
	"DELETE /v1/views/{view}",
	"DELETE /v1/workers/{worker}",
	"GET /v1/approvals",
	"GET /v1/approvals/{approval}",
	"GET /v1/approve/{approval}",
	"GET /v1/cluster/members",
	"GET /v1/cluster/shards",
	"GET /v1/flows",
	"GET /v1/flows/{flow}",
	"GET /v1/flows/{flow}/diff",
	"GET /v1/flows/{flow}/stats",
	"GET /v1/flows/{flow}/versions",
	"GET /v1/flows/{flow}/versions/{version}",
	"GET /v1/flows/{flow}/versions/{version}/graph",
	"GET /v1/flows/{flow}/versions/{version}/openapi",
	"GET /v1/hooks",
	"GET /v1/hooks/{hook}",
	"GET /v1/info",
	"GET /v1/jobs",
	"GET /v1/jobs/{job}",
	"GET /v1/jobs/{job}/log",
	"GET /v1/jobs/{job}/params",
	"GET /v1/me",
	"GET /v1/overview",
	"GET /v1/queues",
	"GET /v1/schedules",
	"GET /v1/schedules/{schedule}",
	"GET /v1/schedules/{schedule}/next",
	"GET /v1/settings",
	"GET /v1/stats",
	"GET /v1/tasks",
	"GET /v1/tasks/count",
	"GET /v1/tasks/{task}",
	"GET /v1/tasks/{task}/compare/{other}",
	"GET /v1/tasks/{task}/digest",
	"GET /v1/tasks/{task}/events",
	"GET /v1/tasks/{task}/logs",
	"GET /v1/tasks/{task}/logs/stream",
	"GET /v1/tasks/{task}/runs",
	"GET /v1/tasks/{task}/steps",
	"GET /v1/tasks/{task}/stream",
	"GET /v1/tasks/{task}/streams",
	"GET /v1/tasks/{task}/streams/{stream}",
	"GET /v1/tasks/{task}/timeline",
	"GET /v1/tasks/{task}/trace",
	"GET /v1/tasks/{task}/units",
	"GET /v1/tasks/{task}/units/states",
	"GET /v1/tasks/{task}/value",
	"GET /v1/tasks/{task}/waiting",
	"GET /v1/tokens",
	"GET /v1/views",
	"GET /v1/workers",
	"GET /v1/workers/{worker}",
	"GET /v1/ws",
	"POST /v1/approvals/{approval}",
	"POST /v1/approvals/{approval}/link",
	"POST /v1/approve/{approval}",
	"POST /v1/cluster/members/{member}/drain",
	"POST /v1/flows",
	"POST /v1/hooks/{hook}",
	"POST /v1/jobs/{job}/claim",
	"POST /v1/jobs/{job}/complete",
	"POST /v1/jobs/{job}/fail",
	"POST /v1/jobs/{job}/release",
	"POST /v1/jobs/{job}/streams",
	"POST /v1/schedules-preview",
	"POST /v1/schedules/{schedule}/backfill",
	"POST /v1/schedules/{schedule}/disable",
	"POST /v1/schedules/{schedule}/enable",
	"POST /v1/schedules/{schedule}/trigger",
	"POST /v1/session",
	"POST /v1/tasks",
	"POST /v1/tasks/bulk",
	"POST /v1/tasks/starts",
	"POST /v1/tasks/{task}/append",
	"POST /v1/tasks/{task}/cancel",
	"POST /v1/tasks/{task}/complete",
	"POST /v1/tasks/{task}/fork",
	"POST /v1/tasks/{task}/hold",
	"POST /v1/tasks/{task}/pause",
	"POST /v1/tasks/{task}/release",
	"POST /v1/tasks/{task}/rerun",
	"POST /v1/tasks/{task}/resume",
	"POST /v1/tasks/{task}/retry",
	"POST /v1/tasks/{task}/signal",
	"POST /v1/tokens",
	"POST /v1/try",
	"POST /v1/validate",
	"POST /v1/workers/{worker}/heartbeat",
	"POST /v1/workers/{worker}/poll",
	"POST /v1/workers/{worker}/release",
	"POST /v1/workers/{worker}/reports",
	"PUT /v1/flows/{flow}",
	"PUT /v1/hooks/{hook}",
	"PUT /v1/schedules/{schedule}",
	"PUT /v1/views/{view}",
	"PUT /v1/workers/{worker}",
}

func TestTheDocumentIsUpToDate(t *testing.T) {
	sent := start(t).send("GET", "/v1/openapi.json", nil)
	require.Equal(t, "application/openapi+json", sent.header.Get("Content-Type"))
	if *update {
		require.NoError(t, os.WriteFile("openapi.json", sent.body, 0o644))
	}
	kept, err := os.ReadFile("openapi.json")
	require.NoError(t, err)
	require.Equal(t, string(kept), string(sent.body), "openapi.json is out of date: run go generate")
}

// openAPIDocument returns the stored document, decoded.
func openAPIDocument(t *testing.T) obj {
	t.Helper()
	b, err := os.ReadFile("openapi.json")
	require.NoError(t, err)
	var doc obj
	require.NoError(t, json.Unmarshal(b, &doc))
	return doc
}

// operations visits every operation of a document.
func operations(t *testing.T, doc obj, visit func(method, path string, op obj)) {
	t.Helper()
	paths := doc["paths"].(obj)
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		for method, op := range paths[path].(obj) {
			visit(strings.ToUpper(method), path, op.(obj))
		}
	}
}

func TestTheDocumentHasEveryRoute(t *testing.T) {
	s := start(t)
	var described []string
	operations(t, openAPIDocument(t), func(method, path string, _ obj) {
		described = append(described, method+" "+path)
		filled := strings.NewReplacer("{flow}", "x", "{task}", "x", "{version}", "1", "{job}", "x").Replace(path)
		sent := s.send(method, filled, nil)
		require.NotContains(t, string(sent.body), "no such route", "%s %s is described and not served", method, path)
		require.NotEqual(t, 405, sent.status)
	})
	slices.Sort(described)
	require.Equal(t, routes, described)
}

func TestPreflightAnswersListMethodsAndHeaders(t *testing.T) {
	s := start(t, func(set *settings) { set.Tokens = []string{"t"} })
	page := "http://localhost:5173"
	used := map[string]bool{"OPTIONS": true}
	doc := s.send("GET", "/v1/openapi.json", nil, "Origin", page)
	require.Equal(t, page, doc.header.Get("Access-Control-Allow-Origin"))
	operations(t, openAPIDocument(t), func(method, _ string, _ obj) { used[method] = true })
	before := s.send("OPTIONS", "/v1/tasks/x", nil, "Origin", page, "Access-Control-Request-Method", "PUT")
	require.Equal(t, 204, before.status, "browsers send no token beforehand")
	require.ElementsMatch(t, slices.Collect(maps.Keys(used)), strings.Split(before.header.Get("Access-Control-Allow-Methods"), ","))
	for _, header := range []string{"Authorization", "Content-Type", "Idempotency-Key", "Last-Event-ID"} {
		require.Contains(t, before.header.Get("Access-Control-Allow-Headers"), header)
	}
	for _, a := range []sent{before, s.send("GET", "/v1/info", nil, "Origin", page),
		s.send("GET", "/v1/info", nil, "Origin", page, "Authorization", "Bearer t")} {
		require.Equal(t, []string{page, "Origin"}, []string{a.header.Get("Access-Control-Allow-Origin"), a.header.Get("Vary")})
	}
	require.Empty(t, s.send("GET", "/v1/info", nil).header.Get("Access-Control-Allow-Origin"))
	foreign := s.send("OPTIONS", "/v1/tasks/x", nil, "Origin", "https://evil.example", "Access-Control-Request-Method", "PUT")
	require.Equal(t, 403, foreign.status)
	require.Empty(t, foreign.header.Get("Access-Control-Allow-Origin"))
}

var (
	inPath       = regexp.MustCompile(`\{(\w+)\}`)
	responseCode = regexp.MustCompile(`^([1-5]\d\d|default)$`)
	component    = regexp.MustCompile(`^[a-zA-Z0-9._-]+$`)
)

func TestTheDocumentIsValid(t *testing.T) {
	doc := openAPIDocument(t)
	require.Regexp(t, `^3\.1\.\d+$`, doc["openapi"])
	require.NotEmpty(t, doc["info"].(obj)["title"])
	require.NotEmpty(t, doc["info"].(obj)["version"])
	for name := range doc["components"].(obj)["schemas"].(obj) {
		require.Regexp(t, component, name)
	}
	tags, ids := values(obj{"items": doc["tags"]}, "name"), map[string]bool{}
	operations(t, doc, func(method, path string, op obj) {
		at := method + " " + path
		id := op["operationId"].(string)
		require.False(t, ids[id], "%s: the id %s is there twice", at, id)
		ids[id] = true
		require.NotEmpty(t, op["summary"], at)
		for _, tag := range op["tags"].([]any) {
			require.Contains(t, tags, tag, at)
		}
		validParameters(t, at, path, op)
		validResponses(t, at, op)
		if body, ok := op["requestBody"].(obj); ok {
			require.NotEmpty(t, body["content"], at)
		}
	})
	everySchema(t, doc, func(schema obj) { validSchema(t, doc, schema) })
}

// validParameters requires that each parameter in the path is described exactly once.
func validParameters(t *testing.T, at, path string, op obj) {
	want, got, seen := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, m := range inPath.FindAllStringSubmatch(path, -1) {
		want[m[1]] = true
	}
	list, _ := op["parameters"].([]any)
	for _, p := range list {
		p := p.(obj)
		name, place := p["name"].(string), p["in"].(string)
		require.False(t, seen[place+" "+name], "%s: %s %s is there twice", at, place, name)
		seen[place+" "+name] = true
		require.Contains(t, []string{"path", "query", "header"}, place, at)
		require.NotEmpty(t, p["schema"], "%s: %s", at, name)
		require.NotEmpty(t, p["description"], "%s: %s", at, name)
		if place == "path" {
			require.Equal(t, true, p["required"], at)
			got[name] = true
		}
	}
	require.Equal(t, want, got, at)
}

func validResponses(t *testing.T, at string, op obj) {
	responses := op["responses"].(obj)
	require.True(t, responses["200"] != nil || responses["204"] != nil || responses["101"] != nil, at)
	require.Contains(t, responses["default"].(obj)["content"], "application/problem+json", at)
	for code, r := range responses {
		require.Regexp(t, responseCode, code, at)
		require.NotEmpty(t, r.(obj)["description"], "%s: %s", at, code)
		require.Equal(t, code != "204", r.(obj)["content"] != nil, "%s: %s", at, code)
	}
}

// everySchema visits all schemas at any depth.
func everySchema(t *testing.T, v any, visit func(obj)) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			everySchema(t, e, visit)
		}
	case obj:
		for key, e := range v {
			switch key {
			case "schema", "items":
				if schema, ok := e.(obj); ok {
					visit(schema)
				}
			case "properties", "schemas":
				for _, schema := range e.(obj) {
					visit(schema.(obj))
				}
			}
			everySchema(t, e, visit)
		}
	}
}

func validSchema(t *testing.T, doc, schema obj) {
	if ref, ok := schema["$ref"].(string); ok {
		name, ok := strings.CutPrefix(ref, "#/components/schemas/")
		require.True(t, ok, ref)
		require.Contains(t, doc["components"].(obj)["schemas"], name)
		return
	}
	switch kind := schema["type"].(type) {
	case nil: // anything
	case string:
		require.Contains(t, []string{"object", "array", "string", "integer", "number", "boolean", "null"}, kind)
		require.Equal(t, kind == "array", schema["items"] != nil, "%v", schema)
	default:
		require.IsType(t, []any{}, kind)
	}
	required, _ := schema["required"].([]any)
	properties, described := schema["properties"].(obj)
	for _, name := range required {
		if described {
			require.Contains(t, properties, name)
		}
	}
}

func TestTheDocumentIsReadByPeople(t *testing.T) {
	s := start(t, func(set *settings) { set.Tokens = []string{"secret"} })
	page := s.send("GET", "/v1/docs", nil)
	require.Equal(t, 200, page.status)
	require.Contains(t, page.header.Get("Content-Type"), "text/html")
	require.Contains(t, page.header.Get("Content-Security-Policy"), "script-src 'sha256-")
	require.NotRegexp(t, `(src|href)="?https?:`, string(page.body), "the page needs nobody else")
	require.Equal(t, 200, s.send("GET", "/v1/openapi.yaml", nil).status)
	require.Contains(t, string(s.send("GET", "/v1/openapi.yaml", nil).body), "openapi: 3.1.0")
	schema := s.send("GET", "/v1/schema/flow.json", nil)
	require.Equal(t, "application/schema+json", schema.header.Get("Content-Type"))
	require.True(t, json.Valid(schema.body))
	require.Equal(t, 401, s.send("GET", "/v1/info", nil).status)
	require.Equal(t, 200, s.send("GET", "/v1/info", nil, "Authorization", "Bearer secret").status)
}

func TestMetricsHaveALabelPerRoute(t *testing.T) {
	s := start(t)
	s.refused(404, "path.task", "GET", "/v1/tasks/none", nil)
	s.refused(404, "path", "GET", "/v1/none", nil)
	metrics := string(s.send("GET", "/metrics", nil).body)
	for _, route := range []string{"/v1/tasks/{task}", "/v1/"} {
		require.Contains(t, metrics, `troupe_http_request_duration_seconds_count{method="GET",route="`+route+`",status="404"} 1`)
	}
}

// Programs that embed Troupe may have their own API based on the same framework.
func TestTheFrameworkStaysAsItIs(t *testing.T) {
	start(t)
	require.IsType(t, &huma.ErrorModel{}, huma.NewError(http.StatusTeapot, "no coffee"))
	require.IsType(t, &huma.ErrorModel{}, huma.NewErrorWithContext(nil, http.StatusTeapot, "no coffee"))
	require.True(t, huma.DefaultArrayNullable)
}

func TestDocumentsAreSentCompressed(t *testing.T) {
	s := start(t)
	for _, path := range []string{"/v1/openapi.json", "/v1/openapi.yaml", "/v1/schema/flow.json"} {
		plain := s.send("GET", path, nil)
		require.Empty(t, plain.header.Get("Content-Encoding"), path)
		packed := s.send("GET", path, nil, "Accept-Encoding", "gzip")
		require.Equal(t, "gzip", packed.header.Get("Content-Encoding"), path)
		require.Less(t, len(packed.body), len(plain.body)/3, path)
		unpacked, err := gzip.NewReader(bytes.NewReader(packed.body))
		require.NoError(t, err, path)
		text, err := io.ReadAll(unpacked)
		require.NoError(t, err, path)
		require.Equal(t, string(plain.body), string(text), path)
	}
}
