package v1_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/persistence"
)

// say makes a claimed job print lines.
func (s *server) say(j obj, from int, lines ...obj) {
	s.Helper()
	s.call(200, "POST", "/v1/workers/painter/heartbeat",
		obj{"claims": []obj{{"job": j["id"], "token": j["token"], "lines": lines, "lines_from": from}}})
}

func texts(list []obj) (texts []string) {
	for _, e := range list {
		text := e["text"].(string)
		if e["stream"] != "log" {
			text = e["stream"].(string) + " " + text
		}
		texts = append(texts, text)
	}
	return texts
}

func TestTheLogsOfATaskAreReadInPagesAndParts(t *testing.T) {
	s := start(t)
	id := s.task(queueList, obj{"list": []int{1, 2}})
	path := "/v1/tasks/" + id + "/logs"
	require.Empty(t, items(s.get(path)))
	jobs := s.jobs(2, obj{"services": []string{"paint"}})
	a, b := jobs[0], jobs[1]
	s.say(a, 0, obj{"text": "one"}, obj{"text": "two", "stream": "stderr"})
	s.say(b, 0, obj{"text": "three", "stream": "stdout", "at": "2026-01-02T03:04:05.678Z"}, obj{"text": "half", "part": true})
	s.say(a, 2, obj{"text": "four"})

	all := items(s.get(path))
	require.Equal(t, []string{"one", "stderr two", "stdout three", "half", "four"}, texts(all))
	require.Equal(t, []any{"1.0", a["id"], "e", 1.0, "2026-01-02T03:04:05.678Z", true},
		[]any{all[0]["id"], all[0]["job"], all[0]["node"], all[0]["attempt"], all[2]["at"], all[3]["part"]})
	unit := func(j obj) string {
		n, _ := j["unit"].(float64) // absent = 0
		return fmt.Sprint(n)
	}
	for query, want := range map[string][]string{
		"?limit=2":                              {"one", "stderr two"},
		"?after=1.0&limit=2":                    {"stderr two", "stdout three"},
		"?after=2":                              {"four"},
		"?stream=stderr":                        {"stderr two"},
		"?unit=" + unit(a):                      {"one", "stderr two", "four"},
		"?unit=" + unit(b) + "&stream=log":      {"half"},
		"?attempt=2":                            nil,
		"?node=e&attempt=1&after=2.1":           {"four"},
		"?node=other":                           nil,
		"?job=" + b["id"].(string):              {"stdout three", "half"},
		"?job=" + a["id"].(string) + "&after=1": {"four"},
	} {
		require.Equal(t, want, texts(items(s.get(path+query))), query)
	}
	require.Equal(t, "1.1", s.get(path + "?limit=2")["next"])
	require.Nil(t, s.get(path)["next"])
	s.refused(404, "path.task", "GET", "/v1/tasks/nope/logs", nil)
	s.refused(404, "query.job", "GET", path+"?job=nope", nil)
	s.refused(400, "query.after", "GET", path+"?after=x", nil)
}

func TestCutLogsAreMarked(t *testing.T) {
	s := start(t)
	id := s.task(queued)
	job := s.job("paint")["id"].(string)
	for n := range int64(5) {
		chunk := persistence.LogChunk{Task: id, Job: job, Source: "painter", Number: n + 1,
			Lines: []persistence.LogLine{{Stream: "log", Text: fmt.Sprintf("line %d\n", n)}}}
		require.NoError(t, s.store.AppendLog(t.Context(), []persistence.LogChunk{chunk}, 14))
	}
	list := items(s.get("/v1/tasks/" + id + "/logs"))
	require.Equal(t, []string{"line 3", "line 4"}, texts(list))
	require.Equal(t, []any{obj{"lines": 3.0, "characters": 21.0}, nil}, []any{list[0]["omitted"], list[1]["omitted"]})
	require.Equal(t, "… cut here: the first 21 characters (3 lines) are not kept\nline 3\nline 4\n",
		s.get("/v1/jobs/" + job + "/log")["content"])
}

func TestLogsAreFollowedToTheEndOfTheirTask(t *testing.T) {
	s := start(t)
	id := s.task(queued)
	job := s.job("paint")
	s.say(job, 0, obj{"text": "stirring"})
	path := "/v1/tasks/" + id + "/logs/stream"
	st := s.streamOf(path)
	m := st.next()
	require.Equal(t, []any{"stirring", "1.0", "q", job["id"]}, []any{m.data["text"], m.id, m.data["node"], m.data["job"]})
	s.say(job, 1, obj{"text": "drying"}, obj{"text": "waiting"})
	for _, want := range []string{"drying", "waiting"} {
		require.Equal(t, want, st.next().data["text"])
	}
	s.call(200, "POST", "/v1/jobs/"+job["id"].(string)+"/complete", obj{"token": job["token"], "log": "done"})
	lines, end := st.untilEnd()
	require.Equal(t, "done", lines[0].data["text"])
	require.Equal(t, []any{id, "completed"}, []any{end.data["task"], end.data["state"]})

	lines, _ = s.streamOf(path, "Last-Event-ID", "2.0").untilEnd()
	require.Equal(t, []any{"2.1", "3.0"}, ids(lines))
	lines, _ = s.streamOf(path + "?stream=stdout").untilEnd()
	require.Empty(t, lines)
	s.refused(404, "path.task", "GET", "/v1/tasks/nope/logs/stream", nil)
}
