package v1_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTwoVersionsOfAFlowAreCompared(t *testing.T) {
	onBothStores(t, func(s *server) {
		const one = `{"start":"a","nodes":{"a":{"exec_type":"queue","service":"bank"}}}`
		slug := s.publish(one)
		path := "/v1/flows/" + slug + "/diff"
		s.refused(404, "query.from", "GET", path, nil)
		s.call(201, "POST", "/v1/tasks", obj{"flow": slug})
		s.call(201, "PUT", "/v1/flows/"+slug, obj{"start": "a", "nodes": obj{"a": obj{"exec_type": "queue", "service": "till"}}})
		d := s.get(path)
		require.Equal(t, []any{1.0, 2.0, 1.0}, []any{d["from"], d["to"], d["running_tasks"].(obj)["count"]})
		changes := d["changes"].([]any)
		require.Len(t, changes, 1)
		require.Equal(t, obj{"kind": "node", "change": "changed", "node": "a", "field": "handler",
			"old": `{"service":"bank"}`, "new": `{"service":"till"}`}, changes[0])
		require.Len(t, s.get("/v1/tasks?" + d["running_tasks"].(obj)["query"].(string))["items"], 1, "the number and its list agree")
		require.Equal(t, `{"service":"till"}`, s.get(path + "?from=2&to=1")["changes"].([]any)[0].(obj)["old"])
		require.Empty(t, s.get(path + "?from=2&to=2")["changes"])
		s.refused(404, "query.to", "GET", path+"?to=9", nil)
		s.refused(404, "query.from", "GET", path+"?from=9", nil)
		s.refused(404, "path.flow", "GET", "/v1/flows/no/diff", nil)
	})
}

func TestTheVersionBeforeMayHaveAnyLowerNumber(t *testing.T) {
	s := start(t)
	id := s.call(200, "POST", "/api/flows", obj{"Name": "numbered"})["id"].(string)
	for _, number := range []int{2, 7} {
		s.call(200, "POST", "/api/flows/version", obj{"FlowID": id, "Version": number, "Status": "published", "DefinitionJSON": atOnce})
	}
	d := s.get("/v1/flows/" + id + "/diff")
	require.Equal(t, []any{2.0, 7.0}, []any{d["from"], d["to"]})
	s.refused(404, "query.from", "GET", "/v1/flows/"+id+"/diff?to=2", nil)
}
