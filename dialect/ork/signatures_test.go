package ork_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/dialect/ork"
)

// TestWorkflowFilesAcceptTheTypesOfSignatures exists because users copy them.
func TestWorkflowFilesAcceptTheTypesOfSignatures(t *testing.T) {
	s := ork.Signatures{Types: json.RawMessage(`{"Order":{"id":"int","at":"date?"}}`),
		Functions: json.RawMessage(
			`{"main":{"input_type":{"orders":["types.Order?"],"title":"str?","other":null},"required":["orders"],"output_type":["float?"]}}`)}
	const want = `types:
  Order:
    id: int
    at: date?
functions:
  main:
    input_type:
      orders: ["types.Order?"]
      title: str?
      other: ~ # there is no word for this type
    required: [orders]
    output_type: ["float?"]
`
	require.Equal(t, want, s.YAML())
	const file = `name: copied
types:
  Order:
    id: int
    at: date?
tasks:
  main:
    executor: process
    command: ls
    input_type:
      orders: ["types.Order?"]
      title: str?
    output_type: ["float?"]
`
	_, problems := ork.Translate([]byte(file), ork.Options{Root: "/srv/flows"})
	require.NoError(t, problems.Err())
}
