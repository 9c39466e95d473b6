package v1_test

import (
	"compress/gzip"
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/flow"
)

func TestADigestShowsTheProgressOfEachNode(t *testing.T) {
	onBothStores(t, func(s *server) {
		id := s.reviewing(obj{"plan": "basic"})
		d := s.get("/v1/tasks/" + id + "/digest")
		require.Equal(t, []any{"running", "dag", id}, []any{d["state"], d["mode"], d["task"]})
		root := d["scopes"].([]any)[0].(obj)
		require.Equal(t, []any{"fetch", "list", "gate:B", "B/sign", "B", "out"}, root["nodes"])
		require.Equal(t, []any{2.0, 1.0, 0.0, 0.0, 0.0, 0.0}, root["state"])
		require.Equal(t, []any{1.0, 1.0, 0.0, 0.0, 0.0, 0.0}, root["visit"])
		require.Equal(t, []any{1.0, 2.0, 0.0, 0.0, 0.0, 0.0}, root["total"])
		require.Equal(t, []any{0.0, 2.0, 0.0, 0.0, 0.0, 0.0}, root["in_flight"])
		require.NotContains(t, root, "failed", "a count that nobody has is absent")
		require.Equal(t, -1.0, root["ended_ms"].([]any)[1])
		require.GreaterOrEqual(t, root["ended_ms"].([]any)[0], root["entered_ms"].([]any)[0])
		require.Equal(t, "manual", d["waits"].([]any)[0].(obj)["kind"])
		s.refused(404, "query.scope", "GET", "/v1/tasks/"+id+"/digest?scope=no%231", nil)
		s.refused(404, "path.task", "GET", "/v1/tasks/no/digest", nil)
	})
}

func TestADigestIsFollowed(t *testing.T) {
	onBothStores(t, func(s *server) {
		id := s.reviewing(obj{"plan": "basic"})
		channel := "digest:" + id
		k := s.socket()
		k.subscribeChannel(channel, "")
		k.nextOf(channel, wire.StreamSubscribed)
		whole := said[wire.Digest](t, k.nextOf(channel, wire.StreamDigest))
		require.Equal(t, []int{2, 1, 0, 0, 0, 0}, whole.Scopes[0].State)
		state := whole.Scopes[0].State
		for unit := range 2 {
			s.call(200, "POST", "/v1/tasks/"+id+"/complete", obj{"step": "list", "unit": unit, "output": unit})
		}
		for ended := false; !ended; {
			m := k.next()
			switch m.Event {
			case wire.StreamChanges:
				changes := said[wire.DigestChanges](t, m)
				for _, sc := range changes.Scopes {
					for i, at := range sc.Indexes {
						state[at] = sc.State[i]
					}
				}
			case wire.StreamEnd:
				require.Equal(t, "completed", said[wire.TaskEnd](t, m).State)
				ended = true
			}
		}
		require.Equal(t, []int{2, 2, 4, 4, 4, 2}, state, "the changes lead where a new digest begins")
		now := s.get("/v1/tasks/" + id + "/digest")
		require.Equal(t, []any{2.0, 2.0, 4.0, 4.0, 4.0, 2.0}, now["scopes"].([]any)[0].(obj)["state"])
		require.Equal(t, "condition_unmet", now["scopes"].([]any)[0].(obj)["reason"].(obj)["2"])
	})
}

func TestADigestHasScopesInsideAndThatInWhichATaskCloses(t *testing.T) {
	s := start(t)
	slug := s.publish(`
start: order
on_error: fail
finally: bye
nodes:
  order: {kind: subflow, flow: {start: pay, nodes: {pay: {exec_type: queue, service: pay}}}}
  bye: {exec_type: queue, service: bye}
`)
	id := s.call(201, "POST", "/v1/tasks", obj{"flow": slug})["id"].(string)
	job := s.claim("pay").Job
	inside := "order%231"
	d := s.get("/v1/tasks/" + id + "/digest?scope=/&scope=" + inside)
	require.Len(t, d["scopes"], 2)
	require.Equal(t, []any{"pay"}, d["scopes"].([]any)[1].(obj)["nodes"])
	require.Equal(t, []any{1.0}, d["scopes"].([]any)[1].(obj)["state"])
	require.NoError(t, s.endJob(job.ID(), flow.Report{Error: "refused"}))
	s.claim("bye")
	d = s.get("/v1/tasks/" + id + "/digest")
	require.Equal(t, "~", d["scopes"].([]any)[1].(obj)["scope"])
	require.Equal(t, []any{1.0}, d["scopes"].([]any)[1].(obj)["state"])
	d = s.get("/v1/tasks/" + id + "/digest?scope=" + inside)
	require.Equal(t, []any{3.0}, d["scopes"].([]any)[0].(obj)["state"], "also of a scope that is over")
	require.Equal(t, "refused", d["scopes"].([]any)[0].(obj)["error"].(obj)["0"])
}

func TestAnswersAreCompressedForClientsThatAcceptGzip(t *testing.T) {
	s := start(t)
	for range 10 {
		s.task(waits)
	}
	ask := func(path, accepts string) *http.Response {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.base+path, nil)
		require.NoError(t, err)
		req.Header.Set("Accept-Encoding", accepts)
		answer, err := s.http.Do(req)
		require.NoError(t, err)
		t.Cleanup(func() { _ = answer.Body.Close() })
		return answer
	}
	answer := ask("/v1/tasks", "br, gzip;q=0.5")
	require.Equal(t, "gzip", answer.Header.Get("Content-Encoding"))
	require.Contains(t, answer.Header.Values("Vary"), "Accept-Encoding")
	body, err := gzip.NewReader(answer.Body)
	require.NoError(t, err)
	var page obj
	require.NoError(t, json.NewDecoder(body).Decode(&page))
	require.Len(t, page["items"], 10)
	require.Empty(t, ask("/v1/tasks", "gzip;q=0").Header.Get("Content-Encoding"))
	require.Empty(t, ask("/v1/tasks", "identity").Header.Get("Content-Encoding"))
	require.Empty(t, ask("/v1/tasks?limit=1", "gzip").Header.Get("Content-Encoding"), "a short answer passes as it is")
	require.Equal(t, 404, ask("/v1/tasks/no", "gzip").StatusCode)
}

// said decodes the data of a message.
func said[T any](t *testing.T, m wire.StreamMessage) (what T) {
	t.Helper()
	require.NoError(t, json.Unmarshal(m.Data, &what), "%s", m.Data)
	return what
}

func TestAGraphHasTheNodesOfItsDigest(t *testing.T) {
	s := start(t)
	text := "mode: dag\nnodes:\n  fetch: {service: fetch, compensate: undo}\n  B:\n    kind: " +
		"branch\n    depends_on: [fetch]\n    when: {expr: run.n > 1}\n    flow:\n      " +
		"nodes:\n        sign: {route: direct}\n  undo: {service: fetch}\n"
	drawn := s.call(200, "POST", "/v1/validate?graph=true", text, "Content-Type", "application/yaml")
	require.Equal(t, true, drawn["valid"])
	nodes := drawn["graph"].(obj)["nodes"].([]any)
	require.Equal(t, []any{3.0, 3.0}, []any{nodes[0].(obj)["line"], nodes[0].(obj)["column"]})
	id := s.task(text)
	task := s.get("/v1/tasks/" + id)
	graph := s.get("/v1/flows/" + task["flow"].(string) + "/versions/latest/graph")
	require.Equal(t, []any{task["flow"], 1.0, "dag"}, []any{graph["flow"], graph["version"], graph["mode"]})
	d := s.get("/v1/tasks/" + id + "/digest")
	var keys []any
	root := graph["scopes"].([]any)[0].(obj)
	for _, n := range graph["nodes"].([]any)[:int(root["node_count"].(float64))] {
		keys = append(keys, n.(obj)["key"])
	}
	require.Equal(t, d["scopes"].([]any)[0].(obj)["nodes"], keys)
	s.refused(404, "path.version", "GET", "/v1/flows/"+task["flow"].(string)+"/versions/9/graph", nil)
	broken := s.call(200, "POST", "/v1/validate?graph=true",
		"mode: dag\nnodes:\n  a: {service: s, depends_on: [b]}\n", "Content-Type", "application/yaml")
	require.Equal(t, false, broken["valid"])
	require.Len(t, broken["graph"].(obj)["nodes"], 1, "what can be understood is drawn")
}
