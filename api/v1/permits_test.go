package v1_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAWaitForAKeyShowsTheKeyAndThePosition(t *testing.T) {
	onBothStores(t, func(s *server) {
		const node = `{"start":"a","nodes":{"a":{"exec_type":"queue","service":"paint","concurrency":{"name":%q,"key":"$params.color","limit":1}}}}`
		definition := fmt.Sprintf(node, "brush")
		var ids []string
		for range 3 {
			ids = append(ids, s.task(definition, obj{"color": "red"}))
		}
		s.until("/v1/tasks/"+ids[0]+"/waiting", func(v obj) bool { return v["waits"].([]any)[0].(obj)["kind"] == "job" })
		for before, id := range ids[1:] {
			v := s.until("/v1/tasks/"+id+"/waiting", func(v obj) bool { return v["waits"].([]any)[0].(obj)["ahead"] == float64(before) })
			wait := v["waits"].([]any)[0].(obj)
			require.Equal(s, []any{"permit", "jobs:brush:red"}, []any{wait["kind"], wait["key"]})
			require.Equal(s, fmt.Sprintf("it waits for jobs:brush:red, of which 1 may be under "+
				"way at once (%d before it)", before), wait["text"])
			require.Equal(s, wait, items(s.get("/v1/tasks/" + id + "/steps"))[0]["wait"])
			require.Equal(s, wait, s.get("/v1/tasks/" + id)["active"].([]any)[0].(obj)["wait"])
		}
		s.call(200, "POST", "/v1/tasks/"+ids[0]+"/cancel", nil)
		s.until("/v1/tasks/"+ids[1]+"/waiting", func(v obj) bool { return v["waits"].([]any)[0].(obj)["kind"] == "job" })

		held := s.task(`{"concurrency":{"name":"brush","limit":1},`+definition[1:], obj{"color": "blue"})
		s.until("/v1/tasks/"+held+"/waiting", func(v obj) bool { return v["waits"].([]any)[0].(obj)["kind"] == "job" })
		second := s.task(`{"concurrency":{"name":"brush","limit":1},`+definition[1:], obj{"color": "green"})
		v := s.get("/v1/tasks/" + second + "/waiting")
		require.Equal(s, "pending", v["state"])
		require.Equal(s, "tasks:brush", v["waits"].([]any)[0].(obj)["key"])
	})
}
