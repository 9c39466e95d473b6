package v1_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// writeValues makes a claimed job write values to a stream. number counts all values of the writer.
func (s *server) writeValues(j obj, stream string, number int, values ...any) obj {
	s.Helper()
	return s.call(200, "POST", "/v1/jobs/"+j["id"].(string)+"/streams", obj{"token": j["token"],
		"writes": []obj{{"stream": stream, "writer": "w", "number": number, "step": "q", "values": values}}})
}

// valuesOf returns the values of a page of a stream.
func valuesOf(page obj) (values []any) {
	for _, v := range page["values"].([]any) {
		values = append(values, v.(obj)["value"])
	}
	return values
}

func TestAStreamIsReadFromAnyOffset(t *testing.T) {
	s := start(t)
	id := s.task(queued)
	path := "/v1/tasks/" + id + "/streams"
	require.Empty(t, items(s.get(path)))
	require.Equal(t, obj{"values": []any{}, "next": 0.0, "ended": false}, s.get(path+"/answer"))
	job := s.job("paint")
	require.Equal(t, obj{"items": []any{obj{"stream": "answer"}}}, s.writeValues(job, "answer", 2, "one", obj{"two": nil}))
	s.writeValues(job, "answer", 3, obj{"two": nil}, 3) // the first one is known
	s.writeValues(job, "rows", 1, nil)

	page := s.get(path + "/answer")
	require.Equal(t, []any{"one", obj{"two": nil}, 3.0}, valuesOf(page))
	require.Equal(t, []any{3.0, false}, []any{page["next"], page["ended"]})
	first := page["values"].([]any)[0].(obj)
	require.Equal(t, []any{0.0, "q", 1.0, "w"}, []any{first["offset"], first["step"], first["attempt"], first["writer"]})
	require.NotEmpty(t, first["at"])
	require.Equal(t, []any{obj{"two": nil}}, valuesOf(s.get(path+"/answer?from=1&limit=1")))
	require.Equal(t, 2.0, s.get(path + "/answer?from=1&limit=1")["next"])
	require.Equal(t, []any{nil}, valuesOf(s.get(path+"/rows")))
	require.Equal(t, []any{obj{"name": "answer", "length": 3.0, "bytes": 23.0, "ended": false},
		obj{"name": "rows", "length": 1.0, "bytes": 6.0, "ended": false}}, s.get(path)["items"])

	s.call(200, "POST", "/v1/jobs/"+job["id"].(string)+"/complete", obj{"token": job["token"]})
	require.Equal(t, true, s.get(path + "/answer")["ended"])
	require.Equal(t, false, s.get(path + "/answer?limit=2")["ended"], "a value follows")
	require.Equal(t, true, items(s.get(path))[0]["ended"])
}

func TestAStreamIsFollowedUntilItIsClosed(t *testing.T) {
	s := start(t)
	id := s.task(queued)
	job := s.job("paint")
	path := "/v1/tasks/" + id + "/streams/answer"
	st := s.streamOf(path, "Accept", "text/event-stream")
	for n, word := range []string{"it", "is", "on"} {
		s.writeValues(job, "answer", n+1, word)
		m := st.next()
		require.Equal(t, []any{word, float64(n)}, []any{m.data["value"], m.data["offset"]})
	}
	s.call(200, "POST", "/v1/jobs/"+job["id"].(string)+"/streams", obj{"token": job["token"],
		"writes": []obj{{"stream": "answer", "writer": "w", "number": 4, "values": []string{"way"}, "ends": true}}})
	values, end := st.untilEnd()
	require.Equal(t, []any{"3"}, ids(values))
	require.Equal(t, obj{"task": id, "stream": "answer", "next": 4.0, "state": "running"}, end.data)

	values, _ = s.streamOf(path, "Accept", "text/event-stream", "Last-Event-ID", "1").untilEnd()
	require.Equal(t, []any{"2", "3"}, ids(values))
	values, _ = s.streamOf(path+"?from=3", "Accept", "text/event-stream").untilEnd()
	require.Equal(t, []any{"3"}, ids(values))
}

func TestAStreamThatNothingClosesEndsWithItsTask(t *testing.T) {
	s := start(t)
	id := s.task(queued)
	job := s.job("paint")
	st := s.streamOf("/v1/tasks/"+id+"/streams/answer", "Accept", "text/event-stream")
	s.writeValues(job, "answer", 1, "one")
	s.call(200, "POST", "/v1/jobs/"+job["id"].(string)+"/complete", obj{"token": job["token"]})
	values, end := st.untilEnd()
	require.Equal(t, []any{"0"}, ids(values))
	require.Equal(t, "completed", end.data["state"])
}

func TestOnlyTheWorkerThatHasAJobWritesToItsStreams(t *testing.T) {
	s := start(t)
	id := s.task(queued)
	job := s.job("paint")
	path := "/v1/jobs/" + job["id"].(string) + "/streams"
	body := func(token, stream string, values ...string) obj {
		return obj{"token": token, "writes": []obj{{"stream": stream, "writer": "w", "number": len(values), "values": values}}}
	}
	s.refused(409, "body.token", "POST", path, body("another", "answer", "x"))
	s.refused(409, "body.token", "POST", path, body("", "answer", "x"))
	s.refused(404, "path.job", "POST", "/v1/jobs/nope/streams", body("x", "answer", "x"))
	s.refused(400, "body.writes[0].values", "POST", path, body(job["token"].(string), "answer", strings.Repeat("x", 1<<20)))
	s.call(200, "POST", "/v1/jobs/"+job["id"].(string)+"/complete", obj{"token": job["token"]})
	s.refused(409, "path.job", "POST", path, body(job["token"].(string), "answer", "x"))
	require.Empty(t, s.get("/v1/tasks/" + id + "/streams/answer")["values"])
	s.refused(404, "path.task", "GET", "/v1/tasks/nope/streams", nil)
	s.refused(404, "path.task", "GET", "/v1/tasks/nope/streams/answer", nil)
	s.refused(400, "header.Last-Event-ID", "GET", "/v1/tasks/"+id+"/streams/answer", nil, "Last-Event-ID", "x")
}
