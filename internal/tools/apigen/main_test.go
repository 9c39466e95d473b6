package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// written returns a document in TypeScript.
func written(t *testing.T, document string) string {
	t.Helper()
	dir := t.TempDir()
	in, out := filepath.Join(dir, "openapi.json"), filepath.Join(dir, "api.gen.ts")
	require.NoError(t, os.WriteFile(in, []byte(document), 0o600))
	require.NoError(t, generateFile([]string{in, out}))
	text, err := os.ReadFile(out)
	require.NoError(t, err)
	return string(text)
}

func TestASchemaBecomesAnInterface(t *testing.T) {
	text := written(t, `{"components": {"schemas": {"Step": {"type": "object", "required": ["state", "node"], "properties": {
		"node": {"type": "string", "description": "slug of the node"},
		"state": {"type": "string", "enum": ["created", "completed"]},
		"list": {"type": "array", "items": {"type": ["integer", "null"]}},
		"labels": {"type": "object", "additionalProperties": {"type": "string"}},
		"due-at": {"type": "string", "format": "date-time"},
		"output": {},
		"units": {"$ref": "#/components/schemas/Units"}}}}}}`)
	require.Contains(t, text, `export interface Step {
  'due-at'?: string
  labels?: { [key: string]: string }
  list?: (number | null)[]
  /** slug of the node */
  node: string
  output?: unknown
  state: "created" | "completed"
  units?: Units
}
`)
}

func TestAnOperationBecomesARow(t *testing.T) {
	text := written(t, `{"paths": {"/v1/tasks/{task}/steps": {"get": {"summary": "List a task's steps", "parameters": [
		{"name": "task", "in": "path", "required": true, "schema": {"type": "string"}},
		{"name": "limit", "in": "query", "schema": {"type": "integer"}}],
		"responses": {"200": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/PageStep"}}}}}}},
		"/v1/workers/{worker}": {"delete": {"parameters": [{"name": "worker", "in": "path", "required": true, "schema": {"type": "string"}}], "responses": {"204": {}}},
			"put": {"requestBody": {"required": true, "content": {"application/json": {"schema": {"type": "boolean"}}}}, "responses": {"200": {}}}}}}`)
	require.Contains(t, text, `export interface Routes {
  /** List a task's steps */
  'GET /v1/tasks/{task}/steps': {
    path: {
      task: string
    }
    query?: {
      limit?: number
    }
    answer: PageStep
  }
  'PUT /v1/workers/{worker}': {
    body: boolean
    answer: void
  }
  'DELETE /v1/workers/{worker}': {
    path: {
      worker: string
    }
    answer: void
  }
}
`)
}

func TestUnreadableDocumentIsReported(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "openapi.json")
	require.NoError(t, os.WriteFile(file, []byte(`{"paths": 7}`), 0o600))
	require.ErrorContains(t, generateFile([]string{file, filepath.Join(dir, "out.ts")}), "reading "+file)
	require.ErrorContains(t, generateFile([]string{file}), "usage")
	require.NoError(t, os.WriteFile(file, []byte(`{"paths": {"/x": {"get": {}}}}`), 0o600))
	require.ErrorContains(t, generateFile([]string{file, filepath.Join(dir, "out.ts")}), "get /x: it has no responses")
}

func TestRolesOfOperationsAreInATable(t *testing.T) {
	text := written(t, `{"paths": {"/v1/flows": {"get": {"x-roles": ["viewer", "admin"], `+
		`"responses": {"200": {}}}, "post": {"responses": {"200": {}}}}}}`)
	require.Contains(t, text, `export const roles: Partial<Record<keyof Routes, string>> = {
  'GET /v1/flows': 'viewer admin',
}
`)
}
