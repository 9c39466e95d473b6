package v1_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

const declares = `
name: declares
inputs:
  amount: int (in cents)
  limit: int = 3
  note: optional text
start: x
result: out
nodes:
  x: {exec_type: local_func, func: upper, prep: {input_key: $params.note}, post: {output_key: out}}
`

// declaredSchema is the JSON Schema from which clients build forms.
var declaredSchema = obj{"type": "object", "additionalProperties": false, "required": []any{"amount"}, "properties": obj{
	"amount": obj{"type": "integer", "description": "in cents"},
	"limit":  obj{"type": "integer", "default": 3.0}, "note": obj{"type": "string"}}}

func TestInputsOfAFlowAreReturnedAsAJSONSchema(t *testing.T) {
	s := start(t)
	published := s.call(201, "PUT", "/v1/flows/declares", declares, "Content-Type", "application/yaml")
	require.Equal(t, declaredSchema, published["version"].(obj)["inputs"])
	require.Equal(t, declaredSchema, s.get("/v1/flows/declares")["inputs"])
	v := s.get("/v1/flows/declares/versions/latest")
	require.Equal(t, declaredSchema, v["inputs"])
	require.Equal(t, obj{"amount": "int (in cents)", "limit": "int = 3", "note": "optional text"},
		v["definition"].(obj)["inputs"], "as it was written")
	require.NotContains(t, s.get("/v1/flows/"+s.publish(atOnce)), "inputs")
}

func TestInputsThatDoNotFitAreRefusedAllAtOnce(t *testing.T) {
	s := start(t)
	s.call(201, "PUT", "/v1/flows/declares", declares, "Content-Type", "application/yaml")
	p := s.refused(422, "body.params", "POST", "/v1/tasks", obj{"flow": "declares", "params": obj{"limit": "x", "amuont": 1}})
	require.Equal(t, "invalid", p["code"])
	require.Equal(t, "the params do not match the inputs that the flow declares", p["message"])
	require.Equal(t, "GET /v1/flows/declares returns the inputs of the flow", p["hint"])
	require.Equal(t, []any{
		obj{"field": "$params.amount", "message": "is missing: an int was declared (in cents)"},
		obj{"field": "$params.amuont", "message": "is not declared: did you mean amount?"},
		obj{"field": "$params.limit", "message": `is text "x", an int was declared`},
	}, p["errors"])
	require.Empty(t, items(s.get("/v1/tasks")), "nothing is stored")
}

func TestDefaultsAreAmongTheParamsOfTheTask(t *testing.T) {
	s := start(t)
	s.call(201, "PUT", "/v1/flows/declares", declares, "Content-Type", "application/yaml")
	request := obj{"flow": "declares", "params": obj{"amount": 7, "note": "a"}, "idempotency_key": "k", "wait_ms": 60_000}
	answer := s.call(201, "POST", "/v1/tasks", request)
	task := answer["task"].(obj)
	require.Equal(t, obj{"amount": 7.0, "limit": 3.0, "note": "a"}, task["params"])
	require.Equal(t, "A", task["result"])
	again := s.call(200, "POST", "/v1/tasks", request)
	require.Equal(t, answer["id"], again["id"], "what is filled in is no part of the request")
}
