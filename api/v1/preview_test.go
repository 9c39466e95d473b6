package v1_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestValuesAreCutToPreviews(t *testing.T) {
	onBothStores(t, func(s *server) {
		id := s.task(waits, obj{"small": 1})
		large := strings.Repeat("é", 3000)
		s.call(200, "POST", "/v1/tasks/"+id+"/signal", obj{"key": "other", "value": large})
		task := s.get("/v1/tasks/" + id + "?values=preview")
		require.Equal(t, obj{"bytes": 11.0, "value": obj{"small": 1.0}}, task["params"])
		shown := task["shared"].(obj)["other"].(obj)
		require.Equal(t, []any{6002.0, true}, []any{shown["bytes"], shown["truncated"]})
		require.Equal(t, `"`+strings.Repeat("é", 1023), shown["preview"], "it is cut between characters")
		require.Equal(t, obj{"bytes": 6002.0}, s.get("/v1/tasks/" + id + "?values=none")["shared"].(obj)["other"])
		require.Equal(t, large, s.get("/v1/tasks/" + id)["shared"].(obj)["other"])
		for _, list := range []string{"/events", "/runs", "/steps"} {
			answer := s.send("GET", "/v1/tasks/"+id+list+"?values=preview", nil)
			require.Equal(t, 200, answer.status)
			require.NotContains(t, string(answer.body), large)
		}
	})
}

func TestAValueIsReadByRange(t *testing.T) {
	s := start(t)
	id := s.task(waits, obj{"rows": []any{obj{"a/b": 1}, 2}})
	path := "/v1/tasks/" + id + "/value?of=params"
	whole := s.send("GET", path, nil)
	require.JSONEq(t, `{"rows":[{"a/b":1},2]}`, string(whole.body))
	part := s.send("GET", path, nil, "Range", "bytes=0-7")
	require.Equal(t, http.StatusPartialContent, part.status)
	require.Equal(t, string(whole.body[:8]), string(part.body))
	require.Equal(t, http.StatusNotModified, s.send("GET", path, nil, "If-None-Match", whole.header.Get("ETag")).status)
	var pointed int
	require.NoError(t, json.Unmarshal(s.send("GET", path+"&pointer=/rows/0/a~1b", nil).body, &pointed))
	require.Equal(t, 1, pointed)
	s.refused(404, "query.pointer", "GET", path+"&pointer=/rows/7", nil)
	s.refused(400, "query.pointer", "GET", path+"&pointer=rows", nil)
	s.refused(404, "query.of", "GET", "/v1/tasks/"+id+"/value?of=result", nil)
	s.refused(404, "query.key", "GET", "/v1/tasks/"+id+"/value?of=shared&key=no", nil)
	s.refused(400, "query.step", "GET", "/v1/tasks/"+id+"/value?of=output", nil)
	s.refused(404, "path.task", "GET", "/v1/tasks/no/value?of=params", nil)
}

func TestAValueOfAStepIsRead(t *testing.T) {
	s := start(t)
	id := s.reviewing(obj{"plan": "basic"})
	path := "/v1/tasks/" + id + "/value?"
	require.Equal(t, `["a","b"]`, string(s.send("GET", path+"of=output&step=fetch", nil).body))
	require.Equal(t, `["a","b"]`, string(s.send("GET", path+"of=output&step=fetch&unit=0", nil).body))
	require.Equal(t, `["a","b"]`, string(s.send("GET", path+"of=output&step=fetch&visit=1&unit=0&attempt=1", nil).body))
	require.Equal(t, `"b"`, string(s.send("GET", path+"of=input&step=list&unit=1", nil).body))
	s.refused(404, "query.unit", "GET", path+"of=input&step=list&unit=2", nil)
	s.refused(404, "query.step", "GET", path+"of=output&step=no", nil)
	s.refused(404, "query.attempt", "GET", path+"of=output&step=fetch&visit=1&attempt=7", nil)
}
