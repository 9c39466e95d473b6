package flow_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/internal/testing/flowtest"
)

func TestQueueServicesAreListed(t *testing.T) {
	p := flowtest.Plan(t, `
profile: pgflow
nodes:
  a: {}
  f: {each: {items: {service: rows}}, exec_type: queue, service: score}
  d: {route: direct}
  p: {service: pushed, route: push}
  b: {kind: branch, flow: {nodes: {x: {}}}}
  g: {kind: branch, flow: {start: y, nodes: {y: {service: inner, exec_type: queue}}}, compensate: u}
  u: {service: undo}
`)
	require.Equal(t, []string{"a", "inner", "rows", "score", "undo", "x"}, p.QueueServices())
}
